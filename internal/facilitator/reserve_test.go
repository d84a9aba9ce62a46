package facilitator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/facilitator/remote"
	"market/internal/postgres/pgtest"
	"market/internal/source"
)

// A counter counts what facilitators are asked, in the database of the ground.
type counter struct {
	*ground
	registry *source.Registry
}

const nameA, nameB = "facilitator/a", "facilitator/b"

func (g *ground) counter(t *testing.T) *counter {
	t.Helper()
	of := func(name string, floor int64) source.Source {
		return source.Source{Name: name, Kind: source.KindFacilitator, RunsOut: source.Prepaid, Guard: source.Guard{Floor: floor}}
	}
	return &counter{g, source.New(g.db, time.Now, []source.Source{of(nameA, 1000), of(nameB, 1000)}, source.Hooks{OnError: func(err error) { t.Error(err) }})}
}

// link is the teller as one that is counted under a name.
func (c *counter) link(t *testing.T, name string, d *teller) Link {
	t.Helper()
	meter := c.registry.Of(name)
	client, err := remote.New(remote.Options{Name: name[len("facilitator/"):], URL: d.URL, Resource: "https://market.example", Source: meter.Source(), Meter: meter})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if err := client.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	return Link{Remote: client}
}

// refuses has a source refuse us for so long.
func (c *counter) refuses(t *testing.T, name string, wait time.Duration) {
	t.Helper()
	grant, err := c.registry.Of(name).Reserve(t.Context(), source.Other, 0)
	if err != nil {
		t.Fatal(err)
	}
	grant.Report(t.Context(), source.Verdict{Kind: source.Refused, Wait: wait})
}

// used returns the units of today, after what was given back is written.
func (c *counter) used(t *testing.T, name string) (n int64) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.registry.Run(ended)
	const usedSQL = `SELECT coalesce(sum(used), 0)::bigint FROM source_days WHERE source = $1`
	if err := c.db.QueryRow(t.Context(), usedSQL, name).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (c *counter) wantUsed(t *testing.T, when string, a, b int64) {
	t.Helper()
	if gotA, gotB := c.used(t, nameA), c.used(t, nameB); gotA != a || gotB != b {
		t.Errorf("%s: %d and %d units are used, want %d and %d", when, gotA, gotB, a, b)
	}
}

func limitOf(err error) source.LimitError {
	if limit, out := errors.AsType[*source.LimitError](err); out {
		return *limit
	}
	return source.LimitError{}
}

func TestFailover_Reserve_TheFirstThatTakesWorkElseWhoIsToBeAskedFirst(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	c := g.counter(t)
	pgtest.Freeze(t, g.db)
	d := newTeller(t, says{})
	a, b := c.link(t, nameA, d), c.link(t, nameB, d)
	f := g.failover(a, b)
	reserve := func(want string) {
		t.Helper()
		r, err := f.ReserveCall(t.Context(), 0, 2)
		if err != nil || r.of.source() != want || f.Limited() != nil {
			t.Errorf("%+v, %v, limited %v; want %s", r, err, f.Limited(), want)
		}
		r.End()
	}
	reserve(nameA)
	c.refuses(t, nameA, 3*time.Hour)
	reserve(nameB)
	c.refuses(t, nameB, 2*time.Hour)
	_, err := f.ReserveCall(t.Context(), 0, 2)
	if got, known := limitOf(err), limitOf(f.Limited()); got.Source != nameB || got.Why != source.Exhausted || got.Until != known.Until {
		t.Errorf("%v, known from memory %v; want that b is to be asked first", err, f.Limited())
	}
	if err := f.Ready(t.Context()); err != nil {
		t.Errorf("ready says %v, though nothing but the limits holds them up", err)
	}
	c.wantUsed(t, "everything was given back", 0, 0)
	own := g.failover(a, Link{Engine: g.engine(t, g.node, nil)})
	if r, err := own.ReserveCall(t.Context(), 0, 2); err != nil || r.of.source() != "" || own.Limited() != nil || own.Ready(t.Context()) != nil {
		t.Errorf("our own engine: %+v, %v, limited %v", r, err, own.Limited())
	}
}

// Our own guard stops new payments. Refunds go on: those whose unit is set aside to the last, the others as long as the cap has one.
func TestFailover_LimitedToRefund_OurOwnGuardIsForNewPayments(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	c := g.counter(t)
	pgtest.Freeze(t, g.db)
	f := g.failover(c.link(t, nameA, newTeller(t, says{500, nil, "", nil})))
	if _, err := f.ReserveCall(t.Context(), 0, 999); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReserveCall(t.Context(), 0, 2); limitOf(err).Why != source.Guarded || limitOf(f.Limited()).Why != source.Guarded {
		t.Errorf("a payment: %v, from memory %v; want the guard", err, f.Limited())
	}
	if err := f.LimitedToRefund(""); err != nil {
		t.Errorf("a refund while a unit is left: %v", err)
	}
	back, err := f.ReserveRefund(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	s := chain.Signed{Authorization: chain.Authorization{From: g.treasury.Address()}}
	if got := f.orLimited(s, chain.Settlement{Status: chain.StatusUnknown}); got.Err != nil {
		t.Errorf("a refund that was left unclear under the guard: %v", got.Err)
	}
	if back.UsesSetAside() || limitOf(f.LimitedToRefund("")).Why != source.Guarded || f.LimitedToRefund(nameA) != nil {
		t.Errorf("a refund %v, one whose unit is set aside %v", f.LimitedToRefund(""), f.LimitedToRefund(nameA))
	}
}

// Two units are set aside before a payment is claimed. What the settlement and a refund do not need comes back.
func TestFailover_Settle_ACallCostsWhatItWasShownAndWhatItsRefundWillCost(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	c := g.counter(t)
	engine := g.engine(t, g.node, nil)
	var now chain.Signed
	honest := newTeller(t, gives(map[string]any{"success": true, "network": g.network.ID}, func() common.Hash { return g.settle(t, engine, now).Transaction }))
	other := newTeller(t, says{500, nil, "", nil})
	f := g.failover(c.link(t, nameA, honest), c.link(t, nameB, other))
	settle := func(units uint64) (*Reservation, chain.Settlement) {
		t.Helper()
		r, err := f.ReserveCall(t.Context(), 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		now = g.authorize(t, units, nil)
		ctx, cancel := context.WithTimeout(r.In(t.Context()), 20*time.Second)
		defer cancel()
		return r, f.Settle(ctx, now)
	}

	r, got := settle(10)
	g.wantSettled(t, now, got)
	r.End() // served
	c.wantUsed(t, "served", 1, 0)

	r, got = settle(10)
	g.wantSettled(t, now, got)
	unitOf := r.SetAside() // to be refunded
	r.End()
	c.wantUsed(t, "to be refunded", 3, 0)
	if unitOf != nameA {
		t.Errorf("the unit is set aside with %q", unitOf)
	}
	back, err := f.ReserveRefund(t.Context(), unitOf)
	if err != nil || !back.UsesSetAside() {
		t.Fatalf("%+v, %v; want the unit that was set aside", back, err)
	}
	now = g.authorize(t, 10, nil)
	g.wantSettled(t, now, f.Settle(back.In(t.Context()), now))
	back.End()
	c.wantUsed(t, "refunded", 3, 0)

	r, got = settle(funds * 2)
	if got.Status != chain.StatusReleased || r.SetAside() != "" {
		t.Errorf("%+v, want it shown to nobody", got)
	}
	r.End()
	c.wantUsed(t, "shown to nobody", 3, 0)
	if honest.asked.Load() != 3 || other.asked.Load() != 0 {
		t.Errorf("asked %d and %d times", honest.asked.Load(), other.asked.Load())
	}
}

// The payment that finds the first facilitator out goes on to the next one, which is counted for itself, and those after it do not ask the first again. Where
// all are out that is told, with until when.
func TestFailover_Settle_WhoIsOutIsPassedOver(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	c := g.counter(t)
	engine := g.engine(t, g.node, nil)
	var now chain.Signed
	poor := newTeller(t, says{402, nil, `{"error":"out of credit"}`, nil})
	honest := newTeller(t, gives(map[string]any{"success": true, "network": g.network.ID}, func() common.Hash { return g.settle(t, engine, now).Transaction }))
	f := g.failover(c.link(t, nameA, poor), c.link(t, nameB, honest))
	for round := range 2 {
		r, err := f.ReserveCall(t.Context(), 0, 2)
		if err != nil {
			t.Fatal(err)
		}
		now = g.authorize(t, 10, nil)
		ctx, cancel := context.WithTimeout(r.In(t.Context()), 20*time.Second)
		g.wantSettled(t, now, f.Settle(ctx, now))
		cancel()
		if of := r.SetAside(); of != nameA && round == 0 || of != nameB && round == 1 {
			t.Errorf("round %d: a unit is set aside with %q", round, of)
		}
		r.End()
	}
	// A refund is counted as one, whoever reserves for it.
	if poor.asked.Load() != 1 || honest.asked.Load() != 2 {
		t.Errorf("asked %d and %d times, want once and twice", poor.asked.Load(), honest.asked.Load())
	}
	c.wantUsed(t, "both rounds", 2, 3)

	c.refuses(t, nameB, time.Hour)
	now = g.authorize(t, 10, nil)
	got := f.Settle(t.Context(), now)
	if got.Status != chain.StatusReleased || limitOf(got.Err).Until.IsZero() || poor.asked.Load() != 1 || honest.asked.Load() != 2 {
		t.Errorf("with all of them out: %+v, asked %d and %d times; want it released with a limit, and nobody asked", got, poor.asked.Load(), honest.asked.Load())
	}
}
