package upstream

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A network is what connections meet, by address: how long until they stand or fail. It belongs into a synctest bubble.
type network struct {
	hosts map[string]host
	mu    sync.Mutex
	start time.Time
	tried []string
	at    []time.Duration
	open  int // connections that stand
}

type host struct {
	after time.Duration
	err   error
}

func (n *network) connect(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.tried, n.at = append(n.tried, address), append(n.at, time.Since(n.start))
	n.mu.Unlock()
	h := n.hosts[address]
	timer := time.NewTimer(h.after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
	}
	if h.err != nil {
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", h.err)}
	}
	n.mu.Lock()
	n.open++
	n.mu.Unlock()
	return &standing{n: n, to: address}, nil
}

// A standing connection is one that nothing is sent over.
type standing struct {
	net.Conn
	n  *network
	to string
}

func (s *standing) Close() error {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	s.n.open--
	return nil
}

const (
	v6a = "[2606:2800:220:1::1]:443"
	v6b = "[2606:2800:220:1::2]:443"
	v4a = "93.184.216.34:443"
	v4b = "93.184.216.35:443"
)

func TestConnectAny_TheFamiliesAreTriedBesideEachOther(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	for name, tt := range map[string]struct {
		peers []string
		hosts map[string]host
		want  string // empty: no connection
		err   syscall.Errno
		took  time.Duration
		tried []string
	}{
		"the first is there":            {[]string{v6a, v4a}, map[string]host{v6a: {after: 200 * time.Millisecond}}, v6a, 0, 200 * time.Millisecond, []string{v6a}},
		"the first is slow":             {[]string{v6a, v4a}, map[string]host{v6a: {after: never}, v4a: {after: 50 * time.Millisecond}}, v4a, 0, 350 * time.Millisecond, []string{v6a, v4a}},
		"the first fails at once":       {[]string{v6a, v4a}, map[string]host{v6a: {err: syscall.ENETUNREACH}}, v4a, 0, 0, []string{v6a, v4a}},
		"the second of a family":        {[]string{v4a, v4b}, map[string]host{v4a: {err: syscall.ECONNREFUSED}}, v4b, 0, 0, []string{v4a, v4b}},
		"a family in turn":              {[]string{v6a, v4a, v6b}, map[string]host{v6a: {err: syscall.ECONNREFUSED}, v6b: {after: 10 * time.Millisecond}}, v6b, 0, 10 * time.Millisecond, []string{v6a, v6b}},
		"the first address is dead":     {[]string{v4a, v4b}, map[string]host{v4a: {after: never}}, v4b, 0, 5 * time.Second, []string{v4a, v4b}},
		"all refuse":                    {[]string{v4a, v6a}, map[string]host{v4a: {err: syscall.ECONNREFUSED}, v6a: {err: syscall.ECONNRESET}}, "", syscall.ECONNREFUSED, 0, []string{v4a, v6a}},
		"one refuses, one has no route": {[]string{v6a, v4a}, map[string]host{v6a: {err: syscall.ENETUNREACH}, v4a: {err: syscall.ECONNREFUSED}}, "", syscall.ECONNREFUSED, 0, []string{v6a, v4a}},
		"no route anywhere":             {[]string{v6a, v4a}, map[string]host{v6a: {err: syscall.ENETUNREACH}, v4a: {err: syscall.EHOSTUNREACH}}, "", syscall.ENETUNREACH, 0, []string{v6a, v4a}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), dialTimeout)
				defer cancel()
				n := &network{hosts: tt.hosts, start: time.Now()}
				conn, err := connectAny(ctx, parsePeers(tt.peers), n.connect)
				if took := time.Since(n.start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				synctest.Wait()
				if !slices.Equal(n.tried, tt.tried) {
					t.Errorf("tried %q at %v, want %q", n.tried, n.at, tt.tried)
				}
				s, ok := conn.(*standing)
				switch {
				case tt.want == "":
					if !errors.Is(err, tt.err) || n.open != 0 {
						t.Errorf("error = %v with %d connections open, want %v with none", err, n.open, tt.err)
					}
				case err != nil || !ok || s.to != tt.want || n.open != 1:
					t.Errorf("connection = %+v, %v, %d open, want the one to %s alone", s, err, n.open, tt.want)
				}
			})
		})
	}
}

func TestConnectAny_WhatComesSecondIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{start: time.Now(), hosts: map[string]host{}}
		// Both stand at the same moment, and neither looks at its context any more.
		both := func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == v6a {
				timer := time.NewTimer(fallbackDelay)
				<-timer.C
			}
			return n.connect(context.WithoutCancel(ctx), network, address)
		}
		conn, err := connectAny(t.Context(), parsePeers([]string{v6a, v4a}), both)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n.open != 1 {
			t.Errorf("%d connections are open, want 1", n.open)
		}
		_ = conn.Close()
	})
}

func TestConnectAny_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), dialTimeout)
		defer cancel()
		n := &network{start: time.Now(), hosts: map[string]host{v6a: {after: time.Hour}, v4a: {after: time.Hour}, v4b: {after: time.Hour}}}
		_, err := connectAny(ctx, parsePeers([]string{v6a, v4a, v4b}), n.connect)
		if took := time.Since(n.start); !isTimeout(err) || took != dialTimeout {
			t.Errorf("error = %v after %v, want a timeout after %v", err, took, dialTimeout)
		}
	})
}

func parsePeers(texts []string) (peers []netip.AddrPort) {
	for _, text := range texts {
		peers = append(peers, netip.MustParseAddrPort(text))
	}
	return peers
}
