package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"market/internal/catalog"
)

// forbidden are addresses that no stranger's service may have. B111: in whatever form they come.
var forbidden = map[string]string{
	"private 10":                        "10.0.0.1",
	"private 172.16":                    "172.16.0.1",
	"the end of private 172.16":         "172.31.255.255",
	"private 192.168":                   "192.168.1.1",
	"loopback":                          "127.0.0.1",
	"loopback elsewhere in its range":   "127.255.255.254",
	"link-local":                        "169.254.0.1",
	"the metadata of clouds":            "169.254.169.254",
	"the metadata of containers":        "169.254.170.2",
	"carrier-grade NAT":                 "100.64.0.1",
	"the metadata of a cloud in it":     "100.100.100.200",
	"this network":                      "0.0.0.0",
	"this network, another host":        "0.1.2.3",
	"protocol assignments":              "192.0.0.1",
	"NAT64 discovery":                   "192.0.0.170",
	"the metadata of a cloud in them":   "192.0.0.192",
	"documentation 1":                   "192.0.2.1",
	"documentation 2":                   "198.51.100.1",
	"documentation 3":                   "203.0.113.5",
	"6to4 relays":                       "192.88.99.1",
	"benchmarks":                        "198.18.0.1",
	"the end of benchmarks":             "198.19.255.255",
	"AS112":                             "192.31.196.1",
	"AS112, direct":                     "192.175.48.1",
	"AMT":                               "192.52.193.1",
	"multicast":                         "224.0.0.1",
	"multicast, organization":           "239.255.255.250",
	"reserved":                          "240.0.0.1",
	"broadcast":                         "255.255.255.255",
	"unspecified IPv6":                  "::",
	"IPv6 loopback":                     "::1",
	"loopback, mapped":                  "::ffff:127.0.0.1",
	"metadata, mapped":                  "::ffff:a9fe:a9fe",
	"private, mapped":                   "::ffff:10.0.0.1",
	"unspecified, mapped":               "::ffff:0.0.0.0",
	"loopback, IPv4-compatible":         "::7f00:1",
	"a public address, IPv4-compatible": "::5db8:d822",
	"loopback, translated":              "::ffff:0:7f00:1",
	"loopback behind NAT64":             "64:ff9b::7f00:1",
	"a public address behind NAT64":     "64:ff9b::5db8:d822",
	"metadata behind NAT64":             "64:ff9b::169.254.169.254",
	"loopback behind local NAT64":       "64:ff9b:1::7f00:1",
	"discard":                           "100::1",
	"IETF protocols":                    "2001::",
	"Teredo":                            "2001:0:53aa:64c::1",
	"benchmarks IPv6":                   "2001:2::1",
	"AMT IPv6":                          "2001:3::1",
	"AS112 IPv6":                        "2001:4:112::1",
	"ORCHID":                            "2001:10::1",
	"ORCHID 2":                          "2001:20::1",
	"documentation IPv6":                "2001:db8::1",
	"loopback in 6to4":                  "2002:7f00:1::1",
	"a public address in 6to4":          "2002:5db8:d822::1",
	"AS112 IPv6, direct":                "2620:4f:8000::1",
	"documentation IPv6, the new one":   "3fff::1",
	"SRv6":                              "5f00::1",
	"not given out":                     "4000::1",
	"unique local, not given out":       "fc00::1",
	"unique local":                      "fd00::1",
	"the metadata of a cloud, IPv6":     "fd00:ec2::254",
	"link-local IPv6":                   "fe80::1",
	"site-local":                        "fec0::1",
	"multicast IPv6":                    "ff02::1",
	"multicast IPv6, global":            "ff0e::1",
	"a zone":                            "fe80::1%eth0",
	"a zone at loopback":                "::1%lo",
	"a zone at a mapped public one":     "::ffff:93.184.216.34%eth0",
	"a zone at a public address":        "2606:2800:220:1::1%eth0",
}

// open are addresses that a service may have, some of them next to a forbidden range.
var open = []string{
	"1.1.1.1", "9.255.255.255", "11.0.0.0", "93.184.216.34", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1", "169.253.255.255",
	"169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.167.255.255", "192.169.0.0", "198.17.255.255",
	"198.20.0.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
	"2001:200::1", "2001:4860:4860::8888", "2606:2800:220:1::1", "2a00:1450::1", "2620:4f:8001::1",
}

func TestGuard_AForbiddenAddressIsRefusedWhereverItComesUp(t *testing.T) {
	t.Parallel()
	for name, text := range forbidden {
		address := netip.MustParseAddr(text)
		if catalog.PublicAddress(address) {
			t.Errorf("%s: %s counts as public", name, text)
		}
		// Registration, where it stands in a URL.
		host := text
		if address.Is6() {
			host = "[" + strings.Replace(text, "%", "%25", 1) + "]"
		}
		if stored, err := catalog.ParseBaseURL("https://"+host+"/v1", catalog.Rules{}); err == nil {
			t.Errorf("%s: it can be listed as %s", name, stored)
		}
		// The dial, where a URL has it or a name leads to it.
		for kind, d := range map[string]*dialer{"as an address": newDialer(nil, false), "behind a name": newDialer(leading{address}, false)} {
			d.connect = func(_ context.Context, _, to string) (net.Conn, error) {
				t.Errorf("%s, %s: connects to %s", name, kind, to)
				return nil, errors.New("no")
			}
			to := publicHost
			if kind == "as an address" {
				to = text
			}
			_, err := d.DialContext(t.Context(), "tcp", net.JoinHostPort(to, "443"))
			if _, refused := errors.AsType[*forbiddenAddressError](err); !refused {
				t.Errorf("%s, %s: %v, want a refusal of the address", name, kind, err)
			}
		}
		// The connection itself, whatever came before.
		network := map[bool]string{true: "tcp4", false: "tcp6"}[address.Is4()]
		if guard(t.Context(), network, net.JoinHostPort(text, "443"), nil) == nil {
			t.Errorf("%s: the guard lets a connection to %s pass", name, text)
		}
	}
}

// leading is a resolver whose every name leads to one address.
type leading struct{ to netip.Addr }

func (l leading) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{l.to}, nil
}

func TestGuard_APublicAddressIsLetThrough(t *testing.T) {
	t.Parallel()
	for _, text := range open {
		address := netip.MustParseAddr(text)
		host, network := text, "tcp4"
		if address.Is6() {
			host, network = "["+text+"]", "tcp6"
		}
		if _, err := catalog.ParseBaseURL("https://"+host, catalog.Rules{}); err != nil {
			t.Errorf("%s cannot be listed: %v", text, err)
		}
		if err := guard(t.Context(), network, net.JoinHostPort(text, "443"), nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		// The resolver gives IPv4 addresses mapped, too.
		if peers, err := newDialer(leading{netip.AddrFrom16(address.As16())}, false).peers(t.Context(), publicHost, 443); err != nil ||
			len(peers) != 1 || peers[0].Addr() != address {
			t.Errorf("%s behind a name: %v, %v", text, peers, err)
		}
	}
}

// Spellings of inner addresses that some resolvers and libraries read, and names for them.
func TestGuard_NoSpellingOfAnInnerHostCanBeListed(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]string{
		"one number":                            "2130706433",
		"one number, metadata":                  "2852039166",
		"one number past the last":              "4294967297",
		"hexadecimal":                           "0x7f000001",
		"hexadecimal in capitals":               "0X7F000001",
		"hexadecimal without a digit":           "0x",
		"hexadecimal parts":                     "0x7f.0x0.0x0.0x1",
		"hexadecimal last part":                 "127.0.0.0x1",
		"octal":                                 "017700000001",
		"octal parts":                           "0177.0.0.01",
		"leading zeros":                         "127.000.000.001",
		"a mix":                                 "0x7f.1",
		"two parts":                             "127.1",
		"three parts":                           "127.0.1",
		"one part":                              "127",
		"five parts":                            "127.0.0.0.1",
		"zero":                                  "0",
		"a part too large":                      "127.0.0.256",
		"a dot at the end":                      "127.0.0.1.",
		"a name with a dot at the end":          "localhost.",
		"a public name with a dot at the end":   "api.weather.example.",
		"two dots":                              "127..1",
		"full-width digits":                     "１２７.0.0.1",
		"circled digits":                        "①②⑦.⓪.⓪.①",
		"an ideographic full stop":              "127。0。0。1",
		"an escape":                             "127.0.0.%31",
		"an escaped dot":                        "127%2e0.0.1",
		"full-width letters":                    "ｌocalhost",
		"a soft hyphen":                         "local\u00adhost",
		"letters outside ASCII":                 "exämple.com",
		"localhost":                             "localhost",
		"localhost in capitals":                 "LOCALHOST",
		"below localhost":                       "api.localhost",
		"a single label":                        "intranet",
		"an address after a user":               "user@10.0.0.1",
		"a host that looks like one, then user": "api.weather.example@10.0.0.1",
		"IPv6 without brackets":                 "::1",
		"a bracket too few":                     "[::1",
		"IPv6 in IPv6 brackets of a name":       "[localhost]",
		"IPv4 in brackets":                      "[127.0.0.1]",
		"IPvFuture":                             "[v1.fe80::a]",
		"a public address, mapped":              "[::ffff:93.184.216.34]",
		"a port inside":                         "10.0.0.1:443:443",
		"a space":                               "127.0.0.1 .example",
		"a tab":                                 "127.0.0.1\t.example",
		"U+0000":                                "127.0.0.1\x00.example",
		"nothing":                               "",
	} {
		for _, scheme := range []string{"https://", "http://"} {
			if stored, err := catalog.ParseBaseURL(scheme+host+"/", catalog.Rules{}); err == nil {
				t.Errorf("%s: %s%s can be listed as %s", name, scheme, host, stored)
			}
		}
	}
}

// B114: user names, schemes and ports. More of them stand in package catalog.
func TestGuard_APortIsCheckedWhenListedAndAtEveryConnection(t *testing.T) {
	t.Parallel()
	for port, want := range map[string]bool{
		"443": true, "8443": true, "80": false, "8080": false, "22": false, "25": false, "5432": false, "6379": false, "2375": false,
		"9200": false, "0": false, "65535": false,
	} {
		if _, err := catalog.ParseBaseURL("https://"+publicHost+":"+port, catalog.Rules{}); (err == nil) != want {
			t.Errorf("port %s can be listed: %v, want %v", port, err == nil, want)
		}
		if err := guard(t.Context(), "tcp4", net.JoinHostPort(publicAddress, port), nil); (err == nil) != want {
			t.Errorf("port %s is connected to: %v, want %v", port, err == nil, want)
		}
		if _, err := newDialer(nil, false).peers(t.Context(), publicAddress, portNumber(t, port)); (err == nil) != want {
			t.Errorf("port %s is dialled: %v, want %v", port, err == nil, want)
		}
	}
	for _, text := range []string{"https://user:pw@api.weather.example", "https://@api.weather.example", "file:///etc/passwd", "gopher://api.weather.example",
		"ftp://api.weather.example", "unix:///run/docker.sock", "ws://api.weather.example", "javascript:alert(1)", "https://api.weather.example#@10.0.0.1/"} {
		if stored, err := catalog.ParseBaseURL(text, catalog.Rules{}); err == nil {
			t.Errorf("%s can be listed as %s", text, stored)
		}
	}
}

func portNumber(t *testing.T, text string) uint16 {
	t.Helper()
	n, err := net.LookupPort("tcp", text)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(n) //nolint:gosec // a port
}

func TestGuard_RefusesWhatIsNotAPublicTCPAddress(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ network, address string }{
		"a name":        {"tcp4", "host.example:443"},
		"a datagram":    {"udp4", publicPeer},
		"a socket file": {"unix", "/run/docker.sock"},
		"no port":       {"tcp4", publicAddress},
	} {
		err := guard(t.Context(), tt.network, tt.address, nil)
		if _, refused := errors.AsType[*forbiddenAddressError](err); !refused {
			t.Errorf("%s: error = %v, want a refusal of the address", name, err)
		}
	}
}

// Should the check of a name's answer ever let something pass, the connection is still not made.
func TestDialer_TheConnectionIsGuardedByItself(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	d := newDialer(leading{netip.MustParseAddr("127.0.0.1")}, false)
	d.vet = func(netip.AddrPort) error { return nil }
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_, err = d.DialContext(t.Context(), "tcp", net.JoinHostPort(publicHost, port))
	if _, refused := errors.AsType[*forbiddenAddressError](err); !refused {
		t.Errorf("error = %v, want a refusal of the address", err)
	}
}
