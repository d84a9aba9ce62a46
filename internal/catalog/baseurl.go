package catalog

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const baseURLLenMax = 300

var (
	hostForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	// Some resolvers read such names as addresses in octal, hexadecimal or one number.
	numericForm = regexp.MustCompile(`^(0x[0-9a-f]*|[0-9]+)$`)
)

// ParseBaseURL reads where a service is, and returns the form that is stored and used: scheme, host, port, path prefix, put together
// from the parsed parts. Where a host name leads is not asked here: package upstream looks it up before a listing is stored, and at every dial.
func ParseBaseURL(text string, rules Rules) (string, error) {
	if len(text) > baseURLLenMax {
		return "", fmt.Errorf("must not be longer than %d characters", baseURLLenMax)
	}
	// Checked before parsing, because parsing takes the first one away: what follows it may look like the host to people.
	if strings.ContainsAny(text, "#?\\") {
		return "", errors.New("must not have a query, a fragment or a backslash")
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" {
		return "", errors.New("is not a URL")
	}
	switch {
	case u.Scheme == "https":
	case u.Scheme == "http" && rules.AllowPrivate:
	default:
		return "", errors.New("must be an https URL")
	}
	if u.User != nil {
		return "", errors.New("must not have a user name or password")
	}
	host, err := checkHost(u, rules)
	if err != nil {
		return "", err
	}
	if rules.ours(u, host) {
		return "", errors.New("must not lead back to this market")
	}
	prefix := strings.TrimRight(u.EscapedPath(), "/")
	if prefix != "" {
		t, err := ParseTemplate(prefix)
		if err != nil {
			return "", fmt.Errorf("has a path that %w", err)
		}
		if strings.Contains(t.Shape(), "{}") {
			return "", errors.New("must not have parameters")
		}
	}
	return u.Scheme + "://" + host + prefix, nil
}

// ours says whether a base URL is where this market itself is.
func (r Rules) ours(u *url.URL, host string) bool {
	if r.AllowPrivate {
		return slices.Contains(r.Own, host) // one machine has us and everybody else
	}
	name := strings.ToLower(u.Hostname())
	if address, err := netip.ParseAddr(name); err == nil {
		name = address.String()
	}
	return slices.Contains(r.Own, name)
}

// checkHost returns the host as stored: lower case, without a port that the scheme implies.
func checkHost(u *url.URL, rules Rules) (string, error) {
	name := strings.ToLower(u.Hostname())
	if name == "" {
		return "", errors.New("must have a host")
	}
	host := name
	if address, err := netip.ParseAddr(name); err == nil {
		switch {
		case address.Zone() != "":
			return "", errors.New("must not have an address with a zone")
		case address.Is4In6() && !rules.AllowPrivate:
			return "", errors.New("must not have an IPv4 address in the form of an IPv6 one")
		case !PublicAddress(address) && !rules.AllowPrivate:
			return "", fmt.Errorf("must have a public address; %s is not one", address)
		}
		if address.Is6() {
			host = "[" + address.String() + "]"
		}
	} else {
		labels := strings.Split(name, ".")
		if len(name) > 253 || !hostForm.MatchString(name) || numericForm.MatchString(labels[len(labels)-1]) {
			return "", errors.New("must have a host name in ASCII, or an address")
		}
		if !rules.AllowPrivate && (len(labels) < 2 || labels[len(labels)-1] == "localhost") {
			return "", errors.New("must have a public host name")
		}
	}
	port := u.Port()
	if port == "" && strings.HasSuffix(u.Host, ":") {
		return "", errors.New("must not end its host with a colon")
	}
	if port == "" {
		return host, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' {
		return "", errors.New("must have a port from 1 to 65535")
	}
	if !rules.AllowPrivate && !PublicPort(uint16(n)) {
		return "", errors.New("must have port 443 or 8443")
	}
	if (u.Scheme == "https" && n == 443) || (u.Scheme == "http" && n == 80) {
		return host, nil
	}
	return host + ":" + port, nil
}
