package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	restMin = 5 * time.Second
	restMax = time.Minute

	// lagMax is how many blocks an endpoint may be behind the newest that any of them has shown, and still take over. Endpoints of different
	// providers are one or two apart at any moment, a slow poll of theirs included; on the fastest chains a second is four. Up to this the time of
	// the chain is wrong by some seconds, which every margin of ours covers. That a payment is not there is never concluded from it: see OneView.
	lagMax = 5
	// leapPerSecond is how many blocks a chain may grow in a second beyond lagMax: more than twice what the fastest does. An endpoint that names a
	// higher block than that allows is broken or lies, as long as no other has come as far: believed, it would shut the others out and make every
	// transaction as deep as can be.
	leapPerSecond = 10
	// newestKept is how long that block counts without being reached again. A node that names a block which does not exist, or a development chain
	// that began anew, would else shut every other endpoint out for good.
	newestKept = 10 * time.Minute
	// stuckAfter is how old the newest block of an endpoint may be before the others are looked at: from there on no network counts as ready.
	stuckAfter = time.Minute
)

// restAfter is how long an endpoint is left alone after its n-th failure in a row, where another one can be asked instead.
func restAfter(failures int) time.Duration {
	if failures < 1 {
		return 0
	}
	d := restMin
	for range failures - 1 {
		if d >= restMax/2 { // also keeps the doubling from overflowing
			return restMax
		}
		d *= 2
	}
	return d
}

// lags says whether a head is too far behind the newest one; 0 means that none is known.
func lags(head, newest uint64) bool { return newest > lagMax && head < newest-lagMax }

var (
	errLags  = errors.New("it is behind what another endpoint has shown")
	errAhead = errors.New("it is further ahead of what was shown before than the chain can have grown")
	errStuck = fmt.Errorf("its newest block is older than %s", stuckAfter)
)

// A ChainError is an endpoint that serves another chain than the one that it is configured for.
type ChainError struct {
	Network   string
	Place     int // of the endpoint in the list, from 1
	Got, Want uint64
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("%s: RPC endpoint %d serves chain %d, want %d", e.Network, e.Place, e.Got, e.Want)
}

// order returns the endpoints in the order in which a question is put to them: those that do not rest, as the list has them, and then those that do, as
// their rests end, because a try costs less than none. So an endpoint stays in use until it fails, and an earlier one of the list is gone back to when
// it has rested. Of the questions that come then, one tries it.
func (n *Node) order() []*endpoint {
	if len(n.endpoints) == 1 {
		return n.endpoints
	}
	now := n.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	order := slices.SortedStableFunc(slices.Values(n.endpoints), func(a, b *endpoint) int {
		return cmp.Compare(max(0, a.restsUntil.Sub(now)), max(0, b.restsUntil.Sub(now)))
	})
	if first := order[0]; first.failures > 0 && first != n.current && !first.restsUntil.After(now) {
		first.restsUntil = now.Add(callTime) // the others need not wait for what this one finds
	}
	return order
}

// failed puts an endpoint to rest. Of questions that were under way together only the first counts.
func (n *Node) failed(e *endpoint, began time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.failures > 0 && began.Before(e.failedAt) {
		return
	}
	now := n.now()
	e.failures++
	e.failedAt, e.restsUntil = now, now.Add(restAfter(e.failures))
}

// worked ends the failures of an endpoint that answered a question which was put after the last of them.
func (n *Node) worked(e *endpoint, began time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if began.Before(e.failedAt) {
		return
	}
	e.failures, e.restsUntil = 0, time.Time{}
}

// takeOver makes an endpoint the one in use, if it may be: it serves the right chain, and is not behind.
func (n *Node) takeOver(ctx context.Context, e *endpoint, others int) error {
	if n.inUse(e) {
		return nil
	}
	waiting, cancel := turnOf(ctx, others)
	defer cancel()
	done := e.taking.DoChan("", func() (any, error) {
		// Whoever came first may leave while others wait for the same look. The round trip has its own deadline.
		return nil, n.examine(context.WithoutCancel(ctx), e, true, 0)
	})
	select {
	case got := <-done:
		return got.Err
	case <-waiting.Done():
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &unfitError{e.place, errSlow, false}
	}
}

func (n *Node) inUse(e *endpoint) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.current == e
}

// examine asks an endpoint which chain it serves and, where it is to be used from now on, how far it is. It leaves time for the others.
func (n *Node) examine(ctx context.Context, e *endpoint, use bool, others int) error {
	var id, head hexutil.Uint64
	q := question{elements: []rpc.BatchElem{{Method: chainMethod, Result: &id}}, single: true, needed: true}
	newest := n.newestHead()
	if use && newest > 0 && len(n.endpoints) > 1 {
		q.elements, q.single = append(q.elements, rpc.BatchElem{Method: "eth_blockNumber", Result: &head}), false
	}
	q.fits = func(*endpoint) error {
		switch {
		case uint64(id) != n.network.ChainID:
			return &ChainError{Network: n.network.ID, Place: e.place, Got: uint64(id), Want: n.network.ChainID}
		case q.single:
			return nil
		case lags(uint64(head), newest):
			return errLags
		}
		return n.reaches(e, uint64(head))
	}
	if err := n.roundTrip(ctx, e, q, others); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	e.identified = true
	if use {
		n.current = e
	}
	return nil
}

// saw keeps the newest block that any endpoint has shown. Only a head of which it is known that it is of now begins the count: one that still syncs
// names one that is long past, which would have whoever is where the chain is look too far ahead.
func (n *Node) saw(head uint64, ofNow bool) {
	now := n.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	switch known := n.knownAt(now); {
	case known == 0 && ofNow, known > 0 && head > known:
		n.newest, n.raisedAt, n.newestAt = head, now, now
	case head == known:
		n.newestAt = now
	}
}

// reaches refuses a head that is further ahead of what was shown before than the chain can have grown since, unless another endpoint has come as far.
// Nobody is better than an only one.
func (n *Node) reaches(by *endpoint, head uint64) error {
	if len(n.endpoints) == 1 {
		return nil
	}
	now := n.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	by.said = head
	known := n.knownAt(now)
	if known == 0 || head <= known || head-known <= lagMax+leapPerSecond*uint64(max(0, now.Sub(n.raisedAt))/time.Second) {
		return nil
	}
	for _, e := range n.endpoints {
		if e != by && e.said >= head-lagMax {
			return nil
		}
	}
	return errAhead
}

// newestHead is the newest block that any endpoint has shown; 0 where none has for long.
func (n *Node) newestHead() uint64 {
	now := n.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.knownAt(now)
}

// knownAt is newestHead under the lock.
func (n *Node) knownAt(now time.Time) uint64 {
	if now.Sub(n.newestAt) > newestKept {
		return 0
	}
	return n.newest
}

// usable says why an endpoint with this head should not be used while others are there.
func (n *Node) usable(by *endpoint, h Head) error {
	if len(n.endpoints) == 1 {
		return nil
	}
	if err := n.reaches(by, h.Number); err != nil {
		return err
	}
	if lags(h.Number, n.newestHead()) {
		return errLags
	}
	if n.stuck(h) {
		return errStuck
	}
	return nil
}

func (n *Node) stuck(h Head) bool {
	return n.now().Unix() > int64(h.Time)+int64(stuckAfter/time.Second) //nolint:gosec // seconds, range-checked by check
}
