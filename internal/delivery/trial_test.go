package delivery

import (
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/plan"
	"market/internal/postgres/pgtest"
)

// trials lets callers ask for a trial at once and returns how many got one.
func (s shelf) trials(t *testing.T, callers, perDay int) (taken int) {
	t.Helper()
	var (
		wg  sync.WaitGroup
		got atomic.Int32
	)
	for range callers {
		wg.Go(func() {
			one, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, sharing(perDay), somebody)
			if err != nil {
				t.Error(err)
			}
			if one.taken {
				got.Add(1)
			}
		})
	}
	wg.Wait()
	return int(got.Load())
}

func TestTakeTrial_TheLastOneOfTheDayIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	if got := s.trials(t, 2, 3); got != 2 {
		t.Fatalf("%d of 2 trials were taken", got)
	}
	if got := s.trials(t, 20, 3); got != 1 {
		t.Errorf("20 callers took %d trials where one was left", got)
	}
	if got := s.trials(t, 20, 3); got != 0 {
		t.Errorf("20 callers took %d trials where none was left", got)
	}
	if got := s.trials(t, 1, 0); got != 0 {
		t.Error("an endpoint without trials gave one")
	}
	if got := s.trials(t, 2, 4); got != 1 {
		t.Errorf("%d more were taken where a listing gave one more", got)
	}
}

func TestGiveTrialBack_OfTheDayOnWhichItWasTaken(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, sharing(1), somebody)
	if err != nil || !first.taken {
		t.Fatalf("taken = %v, %v", first.taken, err)
	}
	pgtest.Shift(t, s.db, 24*time.Hour)
	if got := s.trials(t, 1, 1); got != 1 {
		t.Fatalf("%d trials were taken a day later, want one", got)
	}
	for range 2 { // the second finds nothing to give back
		if err := giveTrialBack(t.Context(), s.db, s.endpoint.ID, first.askedAt, somebody); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.trials(t, 1, 1); got != 0 {
		t.Error("a trial of another day was given back")
	}
	if err := giveTrialBack(t.Context(), s.db, s.endpoint.ID, first.askedAt.Add(24*time.Hour), somebody); err != nil {
		t.Fatal(err)
	}
	if got := s.trials(t, 2, 1); got != 1 {
		t.Errorf("%d trials were taken after one was given back, want one", got)
	}
}

func TestTakeTrial_TheDayIsUTC(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	midnight := s.opened.Truncate(24 * time.Hour).Add(24 * time.Hour)
	pgtest.Shift(t, s.db, midnight.Sub(s.opened)-time.Microsecond)
	if got := s.trials(t, 2, 1); got != 1 {
		t.Fatalf("%d trials were taken just before midnight, want 1", got)
	}
	pgtest.Shift(t, s.db, time.Microsecond)
	if got := s.trials(t, 2, 1); got != 1 {
		t.Errorf("%d trials were taken at midnight, want 1", got)
	}
	pgtest.Shift(t, s.db, 24*time.Hour-time.Microsecond)
	if got := s.trials(t, 2, 1); got != 0 {
		t.Errorf("%d trials were taken at the end of that day, want none", got)
	}
}

func TestTakeTrial_NoneIsTakenWhereTheServiceIsNotAsked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, s shelf)
		want    standing // without the instant
	}{
		"resting": {func(t *testing.T, s shelf) { s.fail(t) }, standing{listed: true, cooling: true, rest: rest}},
		"delisted": {func(t *testing.T, s shelf) {
			if err := s.delist(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, standing{}},
		"its endpoint is retired": {retireEndpoint, standing{}},
		"retired": {func(t *testing.T, s shelf) {
			if _, err := (catalog.Store{}).Retire(t.Context(), s.db, s.service.ID, catalog.AdminToken, "withdrawn"); err != nil {
				t.Fatal(err)
			}
		}, standing{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			tt.prepare(t, s)
			got, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, sharing(3), somebody)
			if err != nil || got.taken {
				t.Errorf("taken = %v, %v; want none taken", got.taken, err)
			}
			if got.listed != tt.want.listed || got.cooling != tt.want.cooling || got.rest != tt.want.rest {
				t.Errorf("standing = %+v, want %+v", got, tt.want)
			}
			if got := s.trialRows(t); got != (trialRows{}) {
				t.Errorf("rows %+v, want none", got)
			}
		})
	}
}

var somebody = trialCaller{network: call.Network(source)}

// sharing are the limits of an endpoint whose callers share the day among them as they come.
func sharing(perDay int) trialLimits { return trialLimits{perDay: perDay, perCaller: perDay} }

// trialRows are the rows that count trial calls, and what they add up to.
type trialRows struct{ Days, Used, Networks, ByNetwork, Wallets, ByWallet int }

func (s shelf) trialRows(t *testing.T) trialRows {
	t.Helper()
	rows, err := s.db.Query(t.Context(), `
SELECT (SELECT count(*) FROM trial_days), (SELECT coalesce(sum(used), 0) FROM trial_days), (SELECT count(*) FROM trial_networks),
       (SELECT coalesce(sum(used), 0) FROM trial_networks), (SELECT count(*) FROM trial_wallets), (SELECT coalesce(sum(used), 0) FROM trial_wallets)`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[trialRows])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTakeTrial_TheLimitThatIsReachedIsNamed(t *testing.T) {
	t.Parallel()
	who := trialCaller{network: netip.MustParsePrefix("192.0.2.0/24"), wallet: common.Address{0xca}}
	l := trialLimits{perDay: 5, perCaller: 2}
	for name, tt := range map[string]struct {
		use   trialUse
		words string
		n     int
	}{
		"the day":                       {trialUse{5, 1, 1}, "all callers together have", 5},
		"the network":                   {trialUse{4, 2, 1}, "your network 192.0.2.0/24 has", 2},
		"the wallet":                    {trialUse{4, 1, 2}, "your wallet 0xca00000000000000000000000000000000000000 has", 2},
		"the network before its wallet": {trialUse{4, 2, 2}, "your network 192.0.2.0/24 has", 2},
		"the day before the network":    {trialUse{5, 2, 2}, "all callers together have", 5},
		"lost to another one":           {trialUse{4, 1, 1}, "all callers together have", 5},
		"beyond a limit that fell":      {trialUse{4, 9, 0}, "your network 192.0.2.0/24 has", 2},
	} {
		if limit, n := l.reached(tt.use); !strings.EqualFold(limit.whose(who), tt.words) || n != tt.n {
			t.Errorf("%s: %s %d, want %s %d", name, limit.whose(who), n, tt.words, tt.n)
		}
	}
}

// Another plan or another listing holds from the next call on, and what was used before still counts.
func TestTakeTrial_LimitsThatChangeHoldAtOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	take := func(l trialLimits, want bool) {
		t.Helper()
		got, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, l, somebody)
		if err != nil || got.taken != want {
			t.Errorf("with %+v: taken %v, %v; want %v", l, got.taken, err, want)
		}
	}
	for range 3 {
		take(trialLimits{perDay: 10, perCaller: 3}, true)
	}
	take(trialLimits{perDay: 10, perCaller: 3}, false)
	take(trialLimits{perDay: 10, perCaller: 2}, false) // less than what was used
	take(trialLimits{perDay: 10, perCaller: 4}, true)
	take(trialLimits{perDay: 3, perCaller: 10}, false)
	take(trialLimits{perDay: 5, perCaller: 5}, true)
	take(trialLimits{perDay: 0, perCaller: 0}, false)
}

func TestForgetTrials_PastDaysAreForgottenAndTodayIsNot(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	signedIn := trialCaller{network: somebody.network, wallet: common.Address{0xca}}
	take := func() {
		t.Helper()
		if got, err := takeTrial(t.Context(), s.db, s.service.ID, s.endpoint.ID, sharing(3), signedIn); err != nil || !got.taken {
			t.Fatalf("taken %v, %v", got.taken, err)
		}
	}
	for range 3 { // today, and two days before
		take()
		pgtest.Shift(t, s.db, 24*time.Hour)
	}
	take()
	for _, want := range []int{3, 2, 1, 1} { // the oldest first, one of each kind at a time
		if err := forgetTrials(t.Context(), s.db, 1); err != nil {
			t.Fatal(err)
		}
		if got := s.trialRows(t); got != (trialRows{want, want, want, want, want, want}) {
			t.Fatalf("rows %+v, want %d of each", got, want)
		}
	}
	take() // the second of today
}

func TestTrialLimits_ThePlanOfTheOwnerBoundsWhatItsListingOffers(t *testing.T) {
	t.Parallel()
	owner := uuid.New()
	for name, tt := range map[string]struct {
		perDay, perCaller, plan int
		owner                   uuid.UUID
		want                    trialLimits
	}{
		"nobody's listing has no plan":     {500, 0, 10, uuid.UUID{}, trialLimits{500, 500}},
		"less than the plan":               {5, 0, 10, owner, trialLimits{5, 5}},
		"just the plan":                    {10, 0, 10, owner, trialLimits{10, 10}},
		"more than the plan":               {11, 0, 10, owner, trialLimits{10, 10}},
		"a share less than the plan":       {500, 3, 10, owner, trialLimits{10, 3}},
		"a share beyond the plan":          {500, 50, 10, owner, trialLimits{10, 10}},
		"a plan without trial calls":       {500, 50, 0, owner, trialLimits{0, 0}},
		"an endpoint without trial calls":  {0, 0, 10, owner, trialLimits{0, 0}},
		"a share that outlived its number": {2, 5, 10, owner, trialLimits{2, 2}},
	} {
		table := plan.Table{{Name: "small", Limits: plan.Limits{TrialCallsPerDay: tt.plan}}}
		p := &Path{Config: Config{Plans: plan.NewTerms(table, 0, 0), PlanOf: func(uuid.UUID) string { return "small" }}}
		s, e := &catalog.Service{OwnerID: tt.owner}, &catalog.Endpoint{TrialCallsPerDay: tt.perDay, TrialCallsPerCaller: tt.perCaller}
		if got := p.trialLimitsOf(s, e); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
