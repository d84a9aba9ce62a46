package server

import (
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestSourceOf_BelievesConfiguredProxiesOnly(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, tt := range map[string]struct {
		peer      string
		forwarded []string
		source    string
		stranger  bool
	}{
		"a caller of its own":                         {"203.0.113.7:1", nil, "203.0.113.7", false},
		"a caller that forwards for somebody":         {"203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7", true},
		"even a loopback peer is a stranger":          {"127.0.0.1:1", []string{"198.51.100.1"}, "127.0.0.1", true},
		"behind a proxy":                              {"10.1.1.1:1", []string{"198.51.100.1"}, "198.51.100.1", false},
		"behind two proxies":                          {"10.1.1.1:1", []string{"198.51.100.1, 10.2.2.2"}, "198.51.100.1", false},
		"an invented hop to the left is not believed": {"10.1.1.1:1", []string{"192.0.2.9, 198.51.100.1"}, "198.51.100.1", false},
		"two headers are one list":                    {"10.1.1.1:1", []string{"192.0.2.9", "198.51.100.1"}, "198.51.100.1", false},
		"rubbish in the list stops at our own proxy":  {"10.1.1.1:1", []string{"198.51.100.1, unknown"}, "10.1.1.1", true},
		"a proxy that says nothing":                   {"10.1.1.1:1", nil, "10.1.1.1", true},
		"IPv4 in IPv6 is the same address":            {"[::ffff:10.1.1.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1", false},
		"IPv6 with a zone":                            {"[fd00::1%eth0]:1", []string{"2001:db8::1"}, "2001:db8::1", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = tt.peer
		for _, v := range tt.forwarded {
			r.Header.Add("X-Forwarded-For", v)
		}
		source, stranger := sourceOf(r, proxies)
		if source.String() != tt.source || stranger != tt.stranger {
			t.Errorf("%s: source %s, stranger %v, want %s, %v", name, source, stranger, tt.source, tt.stranger)
		}
		// Where an account is used from decides whose calls count, so what is a stranger's is nobody's.
		if seen := (&Server{proxies: proxies}).seenAt(r); seen.IsValid() == stranger || !stranger && seen != source {
			t.Errorf("%s: an account is seen at %s", name, seen)
		}
	}
}
