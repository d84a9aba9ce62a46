package delivery

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
)

// trialCallers come from so many networks, each of them without a wallet and with each of so many.
func trialCallers(networks, wallets int) (callers []trialCaller) {
	for n := range networks {
		network := call.Network(netip.AddrFrom4([4]byte{192, 0, byte(n), 1}))
		for w := range wallets + 1 {
			who := trialCaller{network: network}
			if w > 0 {
				who.wallet = common.Address{0xca, byte(w)}
			}
			callers = append(callers, who)
		}
	}
	return callers
}

// A counted is what callers took, counted beside the database.
type counted struct {
	mu        sync.Mutex
	all       int
	byNetwork map[netip.Prefix]int
	byWallet  map[common.Address]int
	refused   map[trialCaller]bool
}

func newCounted() *counted {
	return &counted{byNetwork: map[netip.Prefix]int{}, byWallet: map[common.Address]int{}, refused: map[trialCaller]bool{}}
}

// took counts n more of a caller.
func (c *counted) took(who trialCaller, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += n
	c.byNetwork[who.network] += n
	if who.wallet != (common.Address{}) {
		c.byWallet[who.wallet] += n
	}
}

func (c *counted) of(who trialCaller) trialUse {
	return trialUse{day: c.all, network: c.byNetwork[who.network], wallet: c.byWallet[who.wallet]}
}

// check compares with the limits and with what the database has.
func (c *counted) check(t *testing.T, s shelf, l trialLimits) {
	t.Helper()
	want := trialRows{Used: c.all, ByNetwork: c.all}
	if c.all > l.perDay {
		t.Errorf("%d were taken, want at most %d", c.all, l.perDay)
	}
	for network, n := range c.byNetwork {
		if n > l.perCaller {
			t.Errorf("network %s took %d, want at most %d", network, n, l.perCaller)
		}
		if n > 0 {
			want.Networks++
		}
	}
	for wallet, n := range c.byWallet {
		if n > l.perCaller {
			t.Errorf("wallet %s took %d, want at most %d", wallet, n, l.perCaller)
		}
		if n > 0 {
			want.Wallets++
		}
		want.ByWallet += n
	}
	got := s.trialRows(t)
	if want.Days = got.Days; got != want {
		t.Errorf("rows %+v, want %+v", got, want)
	}
}

// atOnce has several workers go through the same list of callers.
func atOnce(callers []trialCaller, work func(who trialCaller)) {
	var (
		wg   sync.WaitGroup
		next atomic.Int64
	)
	for range 8 {
		wg.Go(func() {
			for n := next.Add(1) - 1; int(n) < len(callers); n = next.Add(1) - 1 {
				work(callers[n])
			}
		})
	}
	wg.Wait()
}

// shuffled is a list of callers, each of them so often.
func shuffled(callers []trialCaller, times int) (list []trialCaller) {
	for range times {
		list = append(list, callers...)
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// trialCases are limits, and those who run into them.
var trialCases = map[string]struct {
	limits                   trialLimits
	networks, wallets, times int
}{
	"the day is short":                 {trialLimits{5, 5}, 4, 2, 3},
	"one for each caller":              {trialLimits{20, 1}, 6, 3, 3},
	"a caller's share is short":        {trialLimits{1000, 3}, 3, 4, 4},
	"all from one network":             {trialLimits{1000, 4}, 1, 5, 3},
	"one wallet from everywhere":       {trialLimits{1000, 4}, 8, 1, 4},
	"all of them run out":              {trialLimits{9, 3}, 3, 3, 3},
	"nobody comes in vain":             {trialLimits{100, 50}, 3, 2, 2},
	"the day is shorter than a share":  {trialLimits{2, 50}, 5, 2, 2},
	"callers who never signed in":      {trialLimits{7, 2}, 4, 0, 6},
	"more wallets than the day allows": {trialLimits{6, 2}, 2, 12, 2},
}

// Whoever comes at once, from whatever network and with whatever wallet, to whichever replica: no limit is exceeded, and whoever was refused had
// nothing left. Taken out of one statement, the three would let a caller use up the day's place that it does not get.
func TestTakeTrial_NoLimitIsExceededAndNothingThatFitsIsLeft(t *testing.T) {
	t.Parallel()
	for name, tt := range trialCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newShelf(t), newCounted()
			atOnce(shuffled(trialCallers(tt.networks, tt.wallets), tt.times), func(who trialCaller) {
				got, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, tt.limits, who)
				switch {
				case err != nil:
					t.Error(err)
				case got.taken:
					c.took(who, 1)
				default:
					c.mu.Lock()
					c.refused[who] = true
					c.mu.Unlock()
				}
			})
			c.check(t, s, tt.limits)
			for who := range c.refused { // nothing was given back, so what is left now was left then
				if left := tt.limits.left(c.of(who)); left > 0 {
					t.Errorf("%+v was refused and has %d left", who, left)
				}
			}
		})
	}
}

// Each limit is kept against who looked before the one before it was committed: its look says that there is one left, and there is none. The day's place
// that it would have taken stays for somebody else.
func TestTakeTrial_OneThatLookedTooEarlyGetsNoneAndTakesNone(t *testing.T) {
	t.Parallel()
	here, there := netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.0.3.0/24")
	wallet := common.Address{0xca}
	for name, tt := range map[string]struct {
		limits        trialLimits
		first, second trialCaller
	}{
		"the day":     {trialLimits{1, 1}, trialCaller{network: here}, trialCaller{network: there}},
		"the network": {trialLimits{5, 1}, trialCaller{network: here}, trialCaller{network: here, wallet: wallet}},
		"the wallet":  {trialLimits{5, 1}, trialCaller{network: here, wallet: wallet}, trialCaller{network: there, wallet: wallet}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			tx, err := s.db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			if got, err := takeTrial(t.Context(), tx, s.service.ID, s.endpoint.ID, tt.limits, tt.first); err != nil || !got.taken {
				t.Fatalf("the first: taken %v, %v", got.taken, err)
			}
			var (
				wg     sync.WaitGroup
				second takenTrial
				failed error
			)
			wg.Go(func() {
				second, failed = takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, tt.limits, tt.second)
			})
			s.awaitWaiting(t)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			if failed != nil || second.taken {
				t.Errorf("the second: taken %v, %v; want none", second.taken, failed)
			}
			got := s.trialRows(t)
			if got.Days != 1 || got.Used != 1 || got.ByNetwork != 1 || got.ByWallet > 1 {
				t.Errorf("rows %+v, want those of the first alone", got)
			}
		})
	}
}

// awaitWaiting waits until a statement waits for the row of another one.
func (s shelf) awaitWaiting(t *testing.T) {
	t.Helper()
	for waiting := false; !waiting; {
		const waitingSQL = `
SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%trial_days%')`
		if err := s.db.QueryRow(t.Context(), waitingSQL).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
}

// What is given back is whole again: for the day, the network and the wallet, and no row stays of who gave back all that it had.
func TestGiveTrialBack_WhatIsGivenBackFitsAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range trialCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := newShelf(t), newCounted()
			callers := trialCallers(tt.networks, tt.wallets)
			atOnce(shuffled(callers, tt.times), func(who trialCaller) {
				got, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, tt.limits, who)
				if err != nil {
					t.Error(err)
				}
				if !got.taken {
					return
				}
				if rand.IntN(3) == 0 {
					c.took(who, 1)
					return
				}
				if err := giveTrialBack(t.Context(), s.db, s.endpoint.ID, got.askedAt, who); err != nil {
					t.Error(err)
				}
			})
			c.check(t, s, tt.limits)
			for _, who := range callers { // one after the other now: each gets just what is left for it
				want := tt.limits.left(c.of(who))
				for n := range want + 1 {
					got, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, tt.limits, who)
					if err != nil || got.taken != (n < want) || got.left != max(0, want-n-1) {
						t.Fatalf("%+v, call %d of %d: taken %v, %d left, %v", who, n+1, want, got.taken, got.left, err)
					}
				}
				c.took(who, want)
			}
			c.check(t, s, tt.limits)
		})
	}
}
