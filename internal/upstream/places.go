package upstream

import (
	"context"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"market/internal/catalog"
)

const (
	placeLife  = 24 * time.Hour // how long it is remembered that a service answered at an address
	placesMax  = 32             // addresses of one service
	placedMax  = 50_000         // services; one more is not remembered, and its provider's calls are anybody's
	placeFresh = time.Minute    // an address that was seen so lately is not written down again
)

// places remember at which addresses services were reached: the ends of connections that a request went out on, over TLS after the service had
// proved its name there. An address that a name merely leads to is not enough: whoever owns the name could name its callers' addresses
// beside its own, and their failures would count for nothing. It is a hint of one process, and costs nobody a look-up.
type places struct {
	mu    sync.Mutex
	of    map[uuid.UUID]placed
	swept time.Time
}

// placed is where a service was reached since it is at its base URL.
type placed struct {
	baseURL string
	at      map[netip.Addr]time.Time
}

// local are the addresses that every caller on our own machine has, in development, when a service runs there too.
var local = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}

// reached writes down where a request to a service went.
func (p *places) reached(s *catalog.Service, at netip.Addr, now time.Time) {
	at = at.Unmap().WithZone("")
	if slices.Contains(local, at) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(now)
	was, known := p.of[s.ID]
	switch {
	case known && was.baseURL == s.BaseURL:
	case !known && len(p.of) >= placedMax:
		return
	default:
		was = placed{s.BaseURL, map[netip.Addr]time.Time{}}
		p.of[s.ID] = was
	}
	if seen, known := was.at[at]; known && now.Sub(seen) < placeFresh {
		return
	}
	was.at[at] = now
	if len(was.at) > placesMax {
		oldest := at
		for a, seen := range was.at {
			if seen.Before(was.at[oldest]) {
				oldest = a
			}
		}
		delete(was.at, oldest)
	}
}

// found says whether a service was reached at an address lately.
func (p *places) found(s *catalog.Service, at netip.Addr, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.of[s.ID]
	seen, known := was.at[at.Unmap().WithZone("")]
	return known && was.baseURL == s.BaseURL && now.Sub(seen) < placeLife
}

// sweep forgets what is old, now and then. p.mu is held.
func (p *places) sweep(now time.Time) {
	if now.Sub(p.swept) < sweepEvery {
		return
	}
	p.swept = now
	for id, was := range p.of {
		for a, seen := range was.at {
			if now.Sub(seen) >= placeLife {
				delete(was.at, a)
			}
		}
		if len(was.at) == 0 {
			delete(p.of, id)
		}
	}
}

// placing makes a request to a service write down where it went.
func (c *Client) placing(ctx context.Context, s *catalog.Service) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if end, err := netip.ParseAddrPort(info.Conn.RemoteAddr().String()); err == nil {
			c.places.reached(s, end.Addr(), c.now())
		}
	}})
}

// FoundAt says whether a service, as it is listed, answered our requests at an address within a day: whoever calls from there is its provider, or
// sits where its provider does. Nothing is looked up for it.
func (c *Client) FoundAt(s *catalog.Service, at netip.Addr) bool {
	return c.places.found(s, at, c.now())
}
