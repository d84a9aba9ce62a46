package corpustest

import (
	"cmp"
	"sync"
	"testing"
	"time"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/devnet"
	"market/internal/postgres"
)

// A place is a market as rows need it. Rows of one place share a market, each with a service and payers of its own.
type place struct {
	name          string
	env           []string
	confirmations int // at which depth a transfer is final; 0: 2
	options       []app.Option
	// atOnce is how many rows are played beside each other; 0: all, and they share a clock.
	atOnce int
	// stagger is after how long on the clock the next rows begin; 0: all begin at once.
	stagger time.Duration
	// advance lets the time of the clock pass.
	advance func(m *market, from, to int64)
	// passes says that the time of the clock is the market's, which passes by itself too.
	passes bool
}

// A market is one running place.
type market struct {
	*apptest.World
	t     testing.TB
	names *directory
	clock *clock // nil where the rows do not share one

	// ahead and behind are replicas whose own clocks are wrong, by more than a rest between them.
	ahead, behind func() *apptest.World
}

// skew is how wrong the clock of a replica is. A chain whose newest block seems a minute old is not settled on, which bounds it.
const skew = 45 * time.Second

// open starts the market of a place for so many rows.
func (p *place) open(t testing.TB, rows int) *market {
	t.Helper()
	m := &market{t: t, names: &directory{}}
	env := append([]string{"MARKET_TRUSTED_PROXIES=" + proxies, "MARKET_OWN_SOURCES=" + ownSources, "MARKET_REFUND_LIMIT=5/10m"}, p.env...)
	// A token that is paused is to be met by a payment, and not by the look at the network that would keep it away.
	hidden := func(t testing.TB, chain *devnet.Chain) []string {
		front := apptest.NewFront(t, chain.URL())
		front.HidePause()
		return []string{apptest.NetworksFile(t, cmp.Or(p.confirmations, 2), front.URL)}
	}
	m.World = apptest.StartWith(t, apptest.Setup{Prepare: hidden, Burst: 100_000, Confirmations: p.confirmations, Quiet: true,
		Options: append([]app.Option{app.WithResolver(m.names)}, p.options...)}, env...)
	if p.atOnce == 0 {
		var passed func() int64
		if p.passes {
			began := m.now()
			passed = func() int64 { return int64(m.now().Sub(began)) }
		}
		m.clock = newClock(rows, func(from, to int64) { p.advance(m, from, to) }, passed)
	}
	replica := func(wrong time.Duration) func() *apptest.World {
		return sync.OnceValue(func() *apptest.World {
			return m.ReplicaWith(t, []app.Option{app.WithClock(func() time.Time { return time.Now().UTC().Add(wrong).Truncate(time.Microsecond) })})
		})
	}
	m.ahead, m.behind = replica(skew), replica(-skew)
	return m
}

// now is the market's time.
func (m *market) now() time.Time {
	now, err := postgres.MarketNow(m.t.Context(), m.DB)
	if err != nil {
		m.t.Error(err)
	}
	return now
}

var (
	// moments is where nothing waits for time to pass.
	moments = &place{name: "a moment", atOnce: 8}
	// hours is where the market's time passes as the rows want it.
	hours = &place{name: "hours", stagger: 7 * time.Second, passes: true, advance: func(m *market, from, to int64) { m.Shift(m.t, time.Duration(to-from)) }}
	// unfolded is where every failure is a strike of its own.
	unfolded = &place{name: "every failure counts", env: []string{"MARKET_STRIKE_FOLD=0"}, atOnce: 4}
)
