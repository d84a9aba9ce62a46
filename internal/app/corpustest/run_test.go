package corpustest

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"

	"market/internal/app/apptest"
	"market/internal/chain"
)

// A played row is what came of one.
type played struct {
	row
	title  string
	where  *place
	number int // of all rows, from 0
	nth    int // of the rows of its place, from 0
	stage  *stage
}

// marketsAtOnce is how many markets run beside each other: most of the time each waits for a block, or for a look at it.
const marketsAtOnce = 3

// batch is how many rows of a place that share a clock begin together.
const batch = 4

// numbered returns all rows, in the order of the page.
func numbered() []*played {
	var all []*played
	for _, g := range table() {
		for _, r := range g.rows {
			all = append(all, &played{row: r, title: g.title, where: g.where, number: len(all)})
		}
	}
	return all
}

// Everything that can happen ends as its row says: for the caller, in the books, at the service and on the chain. Not one row comes out otherwise.
func TestCorpus(t *testing.T) {
	t.Parallel()
	rows := numbered()
	missing := gaps(rows)
	tally := apptest.NewTally(len(rows) + len(missing)) // what has no scenario counts as one that failed
	for n, complaint := range missing {
		t.Error(complaint)
		tally.Ended(len(rows)+n, false)
	}
	places := map[*place][]*played{}
	for _, p := range rows {
		places[p.where] = append(places[p.where], p)
	}
	var (
		wg   sync.WaitGroup
		open = make(chan struct{}, marketsAtOnce)
	)
	for where, rows := range places {
		wg.Go(func() {
			open <- struct{}{}
			defer func() { <-open }()
			t.Run(where.name, func(t *testing.T) { where.play(t, rows, tally) })
		})
	}
	wg.Wait()
	fmt.Print(text(rows, tally, t.Failed()))
}

// play plays the rows of one place.
func (p *place) play(t *testing.T, rows []*played, tally *apptest.Tally) {
	var (
		m     = p.open(t, len(rows))
		queue = make(chan *played)
		wg    sync.WaitGroup
	)
	for range cmp.Or(p.atOnce, len(rows)) {
		wg.Go(func() {
			for r := range queue {
				t.Run(r.name, func(one *testing.T) {
					defer func() { tally.Ended(r.number, !one.Failed()) }()
					r.play(one, m)
				})
				if m.clock != nil {
					m.clock.leave() // also where the row was left out of the run
				}
			}
		})
	}
	for n, r := range rows {
		r.nth = n
		queue <- r
	}
	close(queue)
	wg.Wait()
	judgeAll(rows, tally, func() (in, out []apptest.Transfer) {
		if p == hours {
			m.BuryJobs(t) // of programs that have died
		}
		m.AwaitEnds(t)
		return m.Transfers(t, m.Treasury)
	})
}

// judgeAll holds the money of all rows that were played against what they say. A row that it does not come to, because the market did not come
// to rest, is otherwise: nobody knows what became of its money.
func judgeAll(rows []*played, tally *apptest.Tally, moved func() (in, out []apptest.Transfer)) {
	judged := 0
	defer func() {
		for _, r := range rows[judged:] {
			if r.stage != nil {
				tally.Ended(r.number, false)
			}
		}
	}()
	in, out := moved()
	for _, r := range rows {
		if r.stage != nil && !r.stage.judgeMoney(in, out) {
			tally.Ended(r.number, false)
		}
		judged++
	}
}

// Where the market does not come to rest, no row that was played has passed, and one that was left out stays so.
func TestJudgeAll_ARowWhoseMoneyIsNotJudgedHasNotPassed(t *testing.T) {
	t.Parallel()
	tally := apptest.NewTally(2)
	tally.Ended(0, true)
	var wg sync.WaitGroup
	wg.Go(func() {
		judgeAll([]*played{{number: 0, stage: &stage{}}, {number: 1}}, tally, func() (in, out []apptest.Transfer) {
			runtime.Goexit() // as a test that fails for good does
			return nil, nil
		})
	})
	wg.Wait()
	if tally.At(0) != apptest.Otherwise || tally.At(1) != apptest.Unrun {
		t.Errorf("the rows are %v and %v, want %v and %v", tally.At(0), tally.At(1), apptest.Otherwise, apptest.Unrun)
	}
}

// play plays one row and holds against it what can be seen at once.
func (p *played) play(t testing.TB, m *market) {
	slug := fmt.Sprintf("row-%d", p.number+1)
	host := slug + domain
	if m.clock != nil && p.where.stagger > 0 {
		// In batches: all at once want more of the machine than it has.
		m.clock.await(int64(p.nth/batch) * int64(p.where.stagger))
	}
	s := &stage{TB: t, market: m, row: p.row, number: p.number + 1, who: outside(p.number + 1), door: m.World, wallets: map[chain.Key]uint64{}}
	listing := map[string]any{"timeout_ms": 60_000, "trial_calls_per_day": 100}
	maps.Copy(listing, p.listing)
	work := p.does
	if work == nil {
		work = apptest.Works
	}
	s.service = m.ListNamed(t, host, cmp.Or(p.home, "127.0.0.1"), slug, work, listing, p.service)
	if p.looks != nil {
		m.names.lead(host, p.looks)
	}
	s.ask = apptest.Ask(s.service.URL)
	s.terms = m.Terms(t, s.service, 120)
	s.payer = s.wallet(holds)
	p.stage = s
	if p.row.play == nil {
		s.pay()
	} else {
		p.row.play(s)
	}
	s.judge()
}
