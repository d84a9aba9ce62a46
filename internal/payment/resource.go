package payment

import (
	"net/url"
	"strings"
)

// sameResource says whether two URLs name one service path. The query is the call's input and no part of what is sold; a default port, the case of
// the host, a slash at the end and the spelling of percent-encoding do not matter. Dot segments are not resolved: ours has none, so
// a URL with some is another one.
func sameResource(a, b string) bool {
	x, okX := identity(a)
	y, okY := identity(b)
	return okX && okY && x == y
}

type resourceIdentity struct{ scheme, host, port, path string }

func identity(s string) (resourceIdentity, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return resourceIdentity{}, false
	}
	id := resourceIdentity{
		scheme: strings.ToLower(u.Scheme),
		host:   strings.ToLower(u.Hostname()),
		port:   u.Port(),
		path:   strings.TrimSuffix(canonicalEscapes(u.EscapedPath()), "/"),
	}
	if id.port == "80" && id.scheme == "http" || id.port == "443" && id.scheme == "https" {
		id.port = ""
	}
	return id, true
}

// canonicalEscapes decodes the escapes of unreserved characters (RFC 3986, 6.2.2.2) and writes the others in upper case. Its input is the
// escaped path of a parsed URL, so that two digits follow every percent sign.
func canonicalEscapes(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' {
			b.WriteByte(path[i])
			continue
		}
		escape := strings.ToUpper(path[i : i+3])
		if plain, err := url.PathUnescape(escape); err == nil && isUnreserved(plain[0]) {
			escape = plain
		}
		b.WriteString(escape)
		i += 2
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
