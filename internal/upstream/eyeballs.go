package upstream

import (
	"context"
	"net"
	"net/netip"
	"time"
)

const (
	// fallbackDelay is what the family of the first address gets before the other one is tried beside it (RFC 8305, as net.Dialer does it).
	fallbackDelay = 300 * time.Millisecond
	connectMin    = 2 * time.Second // for one of several addresses, where so much is left
)

type connectFunc func(ctx context.Context, network, address string) (net.Conn, error)

type connected struct {
	conn net.Conn
	err  error
}

// connectAny connects to the first of several addresses that answers: those of one family one after the other, the two families beside each
// other. net.Dialer does the same, but only with addresses that it looked up itself.
func connectAny(ctx context.Context, peers []netip.AddrPort, connect connectFunc) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the other racer; a connection that was made outlives it
	first, second := byFamily(peers)
	results := make(chan connected, 2)
	start := func(peers []netip.AddrPort) {
		conn, err := connectInTurn(ctx, peers, connect)
		results <- connected{conn, err}
	}
	go start(first)
	running := 1
	delay := time.NewTimer(fallbackDelay)
	defer delay.Stop()
	var failure error
	for {
		select {
		case <-delay.C:
		case r := <-results:
			running--
			if r.err == nil {
				go closeOthers(results, running)
				return r.conn, nil
			}
			failure = moreTelling(failure, r.err)
		}
		if len(second) > 0 {
			go start(second)
			second = nil
			running++
		}
		if running == 0 {
			return nil, failure
		}
	}
}

// closeOthers closes a connection that came second.
func closeOthers(results <-chan connected, running int) {
	for range running {
		if r := <-results; r.conn != nil {
			_ = r.conn.Close()
		}
	}
}

func byFamily(peers []netip.AddrPort) (first, second []netip.AddrPort) {
	for _, p := range peers {
		if p.Addr().Is4() == peers[0].Addr().Is4() {
			first = append(first, p)
		} else {
			second = append(second, p)
		}
	}
	return first, second
}

// connectInTurn shares the time that is left between the addresses that are left.
func connectInTurn(ctx context.Context, peers []netip.AddrPort, connect connectFunc) (net.Conn, error) {
	var failure error
	for i, p := range peers {
		conn, err := connectOne(ctx, p, len(peers)-i, connect)
		if err == nil {
			return conn, nil
		}
		failure = moreTelling(failure, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failure
}

func connectOne(ctx context.Context, peer netip.AddrPort, left int, connect connectFunc) (net.Conn, error) {
	if deadline, bounded := ctx.Deadline(); bounded {
		share := max(time.Until(deadline)/time.Duration(left), connectMin)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, share)
		defer cancel()
	}
	return connect(ctx, "tcp", peer.String())
}

// moreTelling returns the earlier of two errors, unless it is only about this machine: a family without a route here says nothing about a
// service whose other address refuses.
func moreTelling(earlier, later error) error {
	if earlier == nil || (isOurs(earlier) && !isOurs(later)) {
		return later
	}
	return earlier
}
