package app_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/delivery"
)

const (
	// chaosCalls is how many calls a run makes beside all other tests; MARKET_CHAOS_CALLS asks for another number.
	chaosCalls   = 200
	chaosCallers = 64
	chaosPayers  = 20
	// chaosLife is how many seconds of the chain an authorization lives here: it mines a block for most calls.
	chaosLife = 400
	// chaosDepth is at which depth a transfer is final. What the weather takes back is less deep, however fast blocks come.
	chaosDepth = 8
	// settleDown is how long it may take, after everything is honest again, until one more call or refund has ended.
	settleDown = 3 * time.Minute
)

// Hundreds of calls beside all other tests, and as many as one asks for alone, while the chain stops and takes blocks back, time jumps, services and facilitators fail and lie, callers leave and come
// back, and one of two replicas is killed now and then. After it, and at every look meanwhile, the books add up; in the end they are what the
// chain says, and nobody was served twice, or for nothing, or refunded for what was served.
//
// MARKET_CHAOS_SEED repeats the plan of a run; what meets what is up to the machine.
func TestChaos_TheBooksAreWhatTheChainSays(t *testing.T) {
	t.Parallel()
	calls, seed := numberFrom(t, "MARKET_CHAOS_CALLS", chaosCalls), numberFrom(t, "MARKET_CHAOS_SEED", rand.Uint64())
	t.Logf("MARKET_CHAOS_SEED=%d MARKET_CHAOS_CALLS=%d", seed, calls)
	started := time.Now()
	s := newStorm(t, seed)

	over := make(chan struct{})
	var weather errgroup.Group
	weather.Go(func() error { s.rage(t, over); return nil })
	var calling errgroup.Group
	calling.SetLimit(chaosCallers)
	for i := range calls {
		calling.Go(func() error { s.call(t, i); return nil })
	}
	_ = calling.Wait()
	close(over)
	_ = weather.Wait()
	called := time.Since(started)
	if head, err := s.Chain.Head(t.Context()); err == nil {
		t.Logf("block %s, %d s ahead of the clock", head.Number, int64(head.Time)-time.Now().Unix())
	}
	s.calm(t)
	t.Logf("calls took %s, everything else %s", called.Round(time.Second), (time.Since(started) - called).Round(time.Second))
	s.checkBooks(t)
	s.checkChain(t)
	s.checkCallers(t)
	s.report(t, calls, time.Since(started))
}

func numberFrom(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text, set := os.LookupEnv(variable)
	if !set || text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// newStorm starts two replicas with one service, and payers that hold enough.
func newStorm(t *testing.T, seed uint64) *storm {
	t.Helper()
	s := &storm{seed: seed, heard: map[string]*heard{}, did: map[string]int{}}
	f, _ := newFaulty(t, honest)
	f.choose = s.faultOf
	wrap := app.WithSettler(func(_ string, engine delivery.Settler) delivery.Settler {
		return &faultyEngine{faulty: f, engine: engine}
	})
	s.World = apptest.StartWith(t, apptest.Setup{Burst: 10_000_000, Conns: 20, Confirmations: chaosDepth, Quiet: true, Options: []app.Option{wrap}},
		"MARKET_STRIKE_LIMIT=100", "MARKET_STRIKE_WINDOW=1s", "MARKET_COOLDOWN=20ms", "MARKET_GRACE=30s")
	s.replicas[0], s.replicas[1] = s.World, s.Replica(t)
	s.service = s.List(t, "stormy", s.work, nil)
	s.terms = s.Challenge(t, apptest.Ask(s.service.URL))
	for range chaosPayers {
		s.payers = append(s.payers, s.Payer(t, 1_000_000*apptest.PriceUnits))
	}
	if err := s.Chain.Mine(t.Context(), chaosDepth); err != nil { // what they hold is not taken back
		t.Fatal(err)
	}
	return s
}

const openSQL = `
SELECT (SELECT count(*) FROM calls WHERE state IN ('settling', 'unknown', 'rejected', 'expired', 'settled', 'asked') OR payment_state IN ('sent', 'mined'))
     + (SELECT count(*) FROM refunds WHERE state NOT IN ('confirmed', 'void'))`

// calm lets every authorization lapse that was never sent, and waits until every call and every refund has ended.
func (s *storm) calm(t *testing.T) {
	t.Helper()
	s.honest.Store(true)
	s.Chain.Resume()
	if err := s.Chain.Mine(t.Context(), chaosLife+10); err != nil {
		t.Fatal(err)
	}
	var open int
	last := time.Now()
	for fewest, since := math.MaxInt, last; ; {
		if err := s.DB.QueryRow(t.Context(), openSQL).Scan(&open); err != nil {
			t.Fatal(err)
		}
		if open == 0 {
			return
		}
		if open < fewest {
			fewest, since = open, time.Now()
		}
		if time.Since(since) > settleDown {
			t.Fatalf("%d calls and refunds are open; MARKET_CHAOS_SEED=%d", open, s.seed)
		}
		if time.Since(last) > 2*time.Second { // past leases, the grace and the pauses between looks
			last = time.Now()
			s.freeJobs(t)
			s.Shift(t, 2*time.Minute)
			if err := s.Chain.Mine(t.Context(), chaosDepth); err != nil {
				t.Fatal(err)
			}
		}
		s.promise(t)
		wait(t, 200*time.Millisecond)
	}
}

// The queue gives jobs of a process that died free after 90 s of real time, which nothing shortens. Running one of them twice does no harm.
const freeJobsSQL = `
UPDATE river_job SET state = 'discarded', finalized_at = now() WHERE state = 'running' AND kind = 'refund' AND attempted_at < now() - interval '10 seconds'`

func (s *storm) freeJobs(t *testing.T) {
	t.Helper()
	if _, err := s.DB.Exec(t.Context(), freeJobsSQL); err != nil {
		t.Fatal(err)
	}
}

// promise checks our first promise at this instant.
func (s *storm) promise(t *testing.T) {
	t.Helper()
	figures, err := delivery.PromiseOne(t.Context(), s.DB)
	if err != nil {
		t.Error(err)
		return
	}
	if !figures.Balanced() {
		t.Errorf("%s; MARKET_CHAOS_SEED=%d", figures, s.seed)
	}
}

const (
	unendedSQL = `
SELECT count(*) FROM calls c LEFT JOIN deliveries d ON d.call_id = c.id
 WHERE (c.state IN ('served', 'refused', 'failed', 'cooldown_refused') AND c.state IS DISTINCT FROM d.outcome)
    OR (c.state = 'released' AND d.id IS NOT NULL)
    OR (c.state NOT IN ('served', 'refused', 'failed', 'cooldown_refused', 'released'))`
	// Every payer here can pay and uses a nonce once, so nobody may be told that it could not.
	blamedSQL = `SELECT count(*) FROM deliveries WHERE reason IN ('settle_rejected', 'late_settlement')`
	// Money that arrived and bought nothing is on its way back, and nothing else is.
	wrongRefundSQL = `
SELECT count(*) FROM calls c JOIN deliveries d ON d.call_id = c.id LEFT JOIN refunds r ON r.call_id = c.id
 WHERE (r.call_id IS NOT NULL) <> (c.transaction IS NOT NULL AND d.outcome <> 'served' AND d.reason <> 'settlement_lost')
    OR (r.state = 'void') <> (r.call_id IS NOT NULL AND c.payment_state = 'lost')`
)

func (s *storm) checkBooks(t *testing.T) {
	t.Helper()
	s.promise(t)
	for what, sql := range map[string]string{"calls did not end as their delivery says": unendedSQL, "refunds are missing or too many": wrongRefundSQL,
		"payers are blamed": blamedSQL} {
		var n int
		if err := s.DB.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != 0 {
			t.Errorf("%d %s; MARKET_CHAOS_SEED=%d", n, what, s.seed)
		}
	}
}

const (
	paidSQL     = `SELECT encode(transaction, 'hex'), amount::bigint FROM calls WHERE payment_state = 'final'`
	refundedSQL = `SELECT encode(transaction, 'hex'), amount::bigint FROM refunds WHERE state = 'confirmed'`
)

// checkChain compares transfer by transfer what the chain and the books say.
func (s *storm) checkChain(t *testing.T) {
	t.Helper()
	in, out := s.Transfers(t, s.Treasury)
	for what, side := range map[string]struct {
		moved []apptest.Transfer
		sql   string
	}{"payments": {in, paidSQL}, "refunds": {out, refundedSQL}} {
		onChain, inBooks := map[string]uint64{}, map[string]uint64{}
		for _, m := range side.moved {
			onChain[hex.EncodeToString(m.Transaction[:])] += m.Units
		}
		rows, err := s.DB.Query(t.Context(), side.sql)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var (
				transaction string
				units       uint64
			)
			if err := rows.Scan(&transaction, &units); err != nil {
				t.Fatal(err)
			}
			inBooks[transaction] += units
		}
		if rows.Err() != nil || !maps.Equal(onChain, inBooks) {
			t.Errorf("%s: the chain has %d and the books %d, or they are not the same (%v); MARKET_CHAOS_SEED=%d", what, len(onChain), len(inBooks), rows.Err(), s.seed)
		}
	}
	if got, want := s.Balance(t, s.Treasury), uint64(len(in)-len(out))*apptest.PriceUnits; got != want {
		t.Errorf("the treasury has %d units, %d payments and %d refunds leave %d", got, len(in), len(out), want)
	}
}

// checkCallers holds what callers and the service saw against the books.
func (s *storm) checkCallers(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, h := range s.heard {
		if h.asked > 1 {
			t.Errorf("call %s asked the service %d times", id, h.asked)
		}
		b := s.Books(t, id)
		switch {
		case h.served && (b.State != "served" || b.Refund != ""):
			t.Errorf("call %s was answered and is %+v", id, b)
		case h.mustSign && b.State == "served":
			t.Errorf("call %s was told to sign another payment and is %+v", id, b)
		case b.State == "served" && h.asked != 1:
			t.Errorf("call %s is served, and the service was asked %d times", id, h.asked)
		}
	}
}

const endsByReasonSQL = `
SELECT coalesce(d.outcome || ' · ' || d.reason, c.state), count(*) FROM calls c LEFT JOIN deliveries d ON d.call_id = c.id GROUP BY 1 ORDER BY 1`

// report prints the figures of the run, and writes them to the file that MARKET_CHAOS_RESULT names.
func (s *storm) report(t *testing.T, calls uint64, took time.Duration) {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), endsByReasonSQL)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	verdict := "every check passed"
	if t.Failed() {
		verdict = "FAILED"
	}
	fmt.Fprintf(&b, "# The last long random run\n\n`make chaos` writes this file.\n\n| | |\n|---|---|\n| commit | %s |\n| seed | %d |\n| calls | %d |\n| took | %s |\n| verdict | %s |\n\n",
		os.Getenv("MARKET_CHAOS_COMMIT"), s.seed, calls, took.Round(time.Second), verdict)
	fmt.Fprintf(&b, "| what happened meanwhile | times |\n|---|---|\n")
	for _, what := range slices.Sorted(maps.Keys(s.did)) {
		fmt.Fprintf(&b, "| %s | %d |\n", what, s.did[what])
	}
	fmt.Fprintf(&b, "\n| how calls ended | number |\n|---|---|\n")
	for rows.Next() {
		var (
			end string
			n   int
		)
		if err := rows.Scan(&end, &n); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "| %s | %d |\n", end, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
	if file := os.Getenv("MARKET_CHAOS_RESULT"); file != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil { //nolint:gosec // for everybody to read
			t.Error(err)
		}
	}
}

// faultOf is what the facilitators do with an authorization: a lie for some that they see for the first time.
func (s *storm) faultOf(signed chain.Signed) fault {
	_, seen := s.sent.LoadOrStore(signed.Nonce, true)
	if s.honest.Load() || seen {
		return honest
	}
	n := rand.New(rand.NewPCG(s.seed, uint64(signed.Nonce[31])<<8|uint64(signed.Nonce[30]))).IntN(100) //nolint:gosec // a test's dice
	lies := []fault{deaf, hasty, refuses, relents, borrowsLater, pretends, keepsSaying}
	if n < 2*len(lies) {
		s.count("lies of a facilitator")
		return lies[n/2]
	}
	return honest
}
