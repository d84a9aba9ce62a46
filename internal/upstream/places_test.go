package upstream

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/catalog"
)

func TestPlaces_WhereAServiceWasReachedIsRememberedForADay(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &catalog.Service{ID: uuid.New(), BaseURL: "https://a.example"}
	moved, other := *s, &catalog.Service{ID: uuid.New(), BaseURL: "https://a.example"}
	moved.BaseURL = "https://b.example"
	at, mapped := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("::ffff:203.0.113.9")
	for name, tt := range map[string]struct {
		service *catalog.Service
		at      netip.Addr
		later   time.Duration
		want    bool
	}{
		"there and then":                       {s, at, 0, true},
		"written as IPv6":                      {s, mapped, 0, true},
		"its neighbour":                        {s, at.Next(), 0, false},
		"just before a day is over":            {s, at, placeLife - time.Microsecond, true},
		"a day later":                          {s, at, placeLife, false},
		"under another base URL":               {&moved, at, 0, false},
		"another service with the same one":    {other, at, 0, false},
		"where nobody is known to have called": {s, netip.Addr{}, 0, false},
	} {
		p := &places{of: map[uuid.UUID]placed{}}
		p.reached(s, mapped, start)
		if got := p.found(tt.service, tt.at, start.Add(tt.later)); got != tt.want {
			t.Errorf("%s: found = %v, want %v", name, got, tt.want)
		}
	}
}

func TestPlaces_AMoveForgetsWhereTheServiceWas(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &places{of: map[uuid.UUID]placed{}}
	before := &catalog.Service{ID: uuid.New(), BaseURL: "https://a.example"}
	after := *before
	after.BaseURL = "https://b.example"
	old, fresh := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("198.51.100.9")
	p.reached(before, old, start)
	p.reached(&after, fresh, start)
	if p.found(&after, old, start) || p.found(before, old, start) || !p.found(&after, fresh, start) {
		t.Errorf("remembered are %v", p.of[before.ID])
	}
}

// In development callers and services share a machine, and each caller would be every provider.
func TestPlaces_TheAddressesOfEveryLocalCallerNameNobody(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &places{of: map[uuid.UUID]placed{}}
	s := &catalog.Service{ID: uuid.New()}
	for text, want := range map[string]bool{"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "127.0.0.2": true} {
		at := netip.MustParseAddr(text)
		p.reached(s, at, start)
		if got := p.found(s, at, start); got != want {
			t.Errorf("%s: found = %v, want %v", text, got, want)
		}
	}
}

func TestPlaces_TheOldestAddressMakesRoomAndWhatIsOldIsSwept(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := &places{of: map[uuid.UUID]placed{}}
	s, gone := &catalog.Service{ID: uuid.New()}, &catalog.Service{ID: uuid.New()}
	p.reached(gone, netip.MustParseAddr("192.0.2.1"), start)
	address := func(n int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("203.0.113.%d", n)) }
	for n := range placesMax + 1 {
		p.reached(s, address(n), start.Add(time.Duration(n)*time.Second))
	}
	now := start.Add(time.Minute)
	if len(p.of[s.ID].at) != placesMax || p.found(s, address(0), now) || !p.found(s, address(placesMax), now) {
		t.Errorf("%d addresses are remembered, the first: %v, the last: %v", len(p.of[s.ID].at), p.found(s, address(0), now), p.found(s, address(placesMax), now))
	}
	p.reached(s, address(1), start.Add(placeLife))
	if _, known := p.of[gone.ID]; known || len(p.of) != 1 {
		t.Errorf("after a day %d services are remembered", len(p.of))
	}
}

// A name may lead to its callers' addresses as well, and something may listen there: only where the service proves its name is it.
func TestClient_FoundAt_IsWhereTheServiceProvedItsNameAndNotWhereItsNameLeads(t *testing.T) {
	t.Parallel()
	ours, others := newAuthority(t), newAuthority(t)
	at, named := netip.MustParseAddr("127.0.0.53"), netip.MustParseAddr("127.0.0.54")
	for name, tt := range map[string]struct {
		by    *authority
		found bool
	}{
		"the service itself":                      {ours, true},
		"somebody else that takes the connection": {others, false},
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server.Listener = listenAt(t, at, server.Listener)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{tt.by.issue(t, publicHost, nil)}}
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		_, port, err := net.SplitHostPort(server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s := serviceAt(t, publicURL+":"+port, nil)
		for way, ask := range map[string]func(*Client) call.Reason{
			"a probe": func(c *Client) call.Reason { return c.look(t.Context(), s).reason },
			"a call":  func(c *Client) call.Reason { return c.Ask(t.Context(), requestTo(s)).Reason },
		} {
			c := ours.trusting(New(Options{AllowPrivate: true, Resolver: several{at, named}}))
			t.Cleanup(c.Close)
			if c.FoundAt(s, at) {
				t.Errorf("%s: it was found before %s", name, way)
			}
			reason := ask(c)
			if got := c.FoundAt(s, at); got != tt.found {
				t.Errorf("%s: after %s (%s) found = %v, want %v", name, way, reason, got, tt.found)
			}
			if c.FoundAt(s, named) {
				t.Errorf("%s: after %s it is where its name leads too, and where nobody answered", name, way)
			}
		}
	}
}

// several is a resolver whose every name leads to the same addresses.
type several []netip.Addr

func (s several) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return s, nil }

// listenAt listens at an address instead of where a listener does.
func listenAt(t *testing.T, at netip.Addr, instead net.Listener) net.Listener {
	t.Helper()
	_ = instead.Close()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	return l
}
