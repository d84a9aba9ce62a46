package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/money"
	"market/internal/plan"
	"market/internal/postgres/pgtest"
	"market/internal/upstream"
)

var plans = plan.BuiltIn(500, 24*time.Hour)

// account makes an account on a plan.
func (s shelf) account(t *testing.T, name string) uuid.UUID {
	t.Helper()
	id := call.NewID()
	const newSQL = `INSERT INTO accounts (id, wallet, plan) VALUES ($1, $2, $3)`
	if _, err := s.db.Exec(t.Context(), newSQL, id, append(id[:], 0, 0, 0, 0), name); err != nil {
		t.Fatal(err)
	}
	return id
}

// listFor lists one more service, for an account.
func (s shelf) listFor(t *testing.T, slug string, owner uuid.UUID) catalog.Service {
	t.Helper()
	d, err := catalog.ParseDraft([]byte(`{"slug":"`+slug+`","name":"x","base_url":"https://api.weather.example","probe":{"path":"/healthz","statuses":["200"]},
		"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	d.Owner = owner
	var made catalog.Service
	err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		made, err = catalog.Store{}.Create(t.Context(), tx, d)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The fee of a call is that of its service's owner, and with what the provider gets it is the price, whatever the plan and the price.
func TestPath_LimitsOf_ShareAndFeeAreThePriceWhoeverOwnsTheService(t *testing.T) {
	t.Parallel()
	on := map[uuid.UUID]string{call.NewID(): "", call.NewID(): "pro", call.NewID(): "scale", call.NewID(): "gone"}
	p := &Path{Config: Config{Plans: plan.NewTerms(plans, 700, time.Hour), PlanOf: func(account uuid.UUID) string { return on[account] }}}
	on[uuid.UUID{}] = "nobody"
	fees := map[string]int{"": 500, "pro": 300, "scale": 200, "gone": 500, "nobody": 700}
	for owner, name := range on {
		fee := p.limitsOf(&catalog.Service{OwnerID: owner}).FeeBPS
		if fee != fees[name] {
			t.Errorf("a service of an account on %q has a fee of %d, want %d", name, fee, fees[name])
		}
		for _, units := range []uint64{0, 1, 19, 20, 33, 34, 2_000, 9_999, 10_000, 123_456_789, 1<<63 + 1} {
			price := money.FromUnits(units)
			if share, ours := price.Split(fee); share.Add(ours).Cmp(price) != 0 || ours.Cmp(price) > 0 {
				t.Errorf("a price of %s at %d bps: %s and %s", price, fee, share, ours)
			}
		}
	}
}

func TestPath_RankOf_IsThatOfThePlanAndTheHighestForTheOperatorsOwn(t *testing.T) {
	t.Parallel()
	ids := map[string]uuid.UUID{"": call.NewID(), "pro": call.NewID(), "scale": call.NewID(), "gone": call.NewID()}
	p := &Path{Config: Config{Plans: plan.NewTerms(plans, 500, time.Hour), PlanOf: func(account uuid.UUID) string {
		for name, id := range ids {
			if id == account {
				return name
			}
		}
		return ""
	}}}
	for name, want := range map[string]int{"": 0, "pro": 1, "scale": 2, "gone": 0} {
		if got := p.rankOf(&catalog.Service{OwnerID: ids[name]}); got != want {
			t.Errorf("a service of an account on %q has rank %d, want %d", name, got, want)
		}
	}
	if got := p.rankOf(&catalog.Service{}); got != 2 {
		t.Errorf("the operator's own has rank %d, want the highest", got)
	}
}

// Each service is asked as often as the plan of its owner says: on the moment, and not just before. Two replicas ask it once.
func TestRounds_AServiceIsAskedAsOftenAsItsOwnersPlanSays(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for slug, on := range map[string]string{"free": "", "pro": "pro", "scale": "scale", "gone": "gone"} {
		s.listFor(t, slug, s.account(t, on))
	}
	r := Rounds{Every: time.Hour, Checks: 100, After: time.Hour, Plans: plans}
	at := time.Duration(0)
	for _, step := range []struct {
		at   time.Duration
		want []string
	}{
		{5*time.Minute - time.Microsecond, nil},
		{5 * time.Minute, []string{"scale"}},
		{10*time.Minute - time.Microsecond, nil},
		{15*time.Minute - time.Microsecond, []string{"scale"}},
		{15 * time.Minute, []string{"pro"}},
		{60*time.Minute - time.Microsecond, []string{"pro", "scale"}},
		{60 * time.Minute, []string{"free", "gone", "weather"}}, // weather is the operator's own
	} {
		pgtest.Shift(t, s.db, step.at-at)
		at = step.at
		asked := make(chan string, 10)
		for range 2 {
			err := r.walk(t.Context(), s.db, s.snapshot(t), func(_ context.Context, of *catalog.Service) (upstream.Verdict, error) {
				asked <- of.Slug
				return awake, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		close(asked)
		var got []string
		for slug := range asked {
			got = append(got, slug)
		}
		slices.Sort(got)
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("after %s: asked %v, want %v", step.at, got, step.want)
		}
	}
}

// A round begins a moment after its tick, once later and once sooner: a check is not one tick late because the one before it was a little late. Two replicas
// whose ticks lie apart ask once.
func TestPath_Walk_AServiceIsAskedAtTheTickOfItsPlanHoweverLateARoundBegins(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	made := s.listFor(t, "scale", s.account(t, "scale"))
	p := &Path{Config: Config{DB: s.db, Catalog: catalog.New(time.Now, time.Minute), Plans: plan.NewTerms(plans, 500, time.Hour), OnError: func(err error) { t.Error(err) }}}
	every, now := int(plans.Of("scale").ProbeEvery/walkEvery), time.Duration(0)
	roundAt := func(at time.Duration) (asked bool) {
		t.Helper()
		pgtest.Shift(t, s.db, at-now)
		now = at
		p.round(t.Context())
		const askedSQL = `SELECT coalesce((SELECT checked_at = market_now() FROM service_probes WHERE service_id = $1), false)`
		if err := s.db.QueryRow(t.Context(), askedSQL, made.ID).Scan(&asked); err != nil {
			t.Fatal(err)
		}
		return asked
	}
	for tick := 1; tick <= 4*every; tick++ {
		late := time.Millisecond
		if tick/every%2 == 1 {
			late = 200 * time.Millisecond
		}
		if asked := roundAt(time.Duration(tick)*walkEvery + late); asked != (tick%every == 0) {
			t.Errorf("at tick %d of a plan of %d ticks it is asked: %t", tick, every, asked)
		}
		if roundAt(time.Duration(tick)*walkEvery + 25*time.Second) {
			t.Errorf("after tick %d another replica asks it as well", tick)
		}
	}
}

func TestPath_Walk_ARoundThatIsFullIsToldOf(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	var full, told int
	p := &Path{Config: Config{DB: s.db, Catalog: catalog.New(time.Now, time.Minute), OnFullRound: func() { full++ }, OnError: func(err error) {
		if told++; !errors.Is(err, errFull) {
			t.Error(err)
		}
	}}}
	const crowdSQL = `
INSERT INTO services
SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'slug', 'crowd-' || n))).*
  FROM services s, generate_series($1::int, $2::int) n WHERE slug = 'weather'`
	crowd := 0
	for _, round := range []struct{ services, want int }{{walkMax - 1, 0}, {walkMax, 1}} {
		if _, err := s.db.Exec(t.Context(), crowdSQL, crowd+1, round.services-1); err != nil {
			t.Fatal(err)
		}
		crowd = round.services - 1
		pgtest.Shift(t, s.db, time.Hour)
		if p.round(t.Context()); full != round.want || told != round.want {
			t.Errorf("a round of %d services: full %d times, told %d times, want %d", round.services, full, told, round.want)
		}
	}
}

// The answer of a served call is kept for as long as its delivery says, and where it does not, as the configuration says.
func TestRecorder_AnAnswerIsKeptAsLongAsThePlanSays(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for kept, want := range map[time.Duration]time.Duration{0: time.Hour, 72 * time.Hour: 72 * time.Hour, time.Minute: time.Minute} {
		d := s.asked(t)
		d.sealed, d.kept, d.Refund, d.Status = []byte{1}, kept, nil, 200
		if err := s.recorder.Record(t.Context(), d.end(call.OK, "")); err != nil {
			t.Fatal(err)
		}
		const leftSQL = `SELECT expires_at - market_now() FROM answers WHERE call_id = $1`
		var left time.Duration
		if err := s.db.QueryRow(t.Context(), leftSQL, d.Call).Scan(&left); err != nil || left != want {
			t.Errorf("with %s it is kept for %s (%v), want %s", kept, left, err, want)
		}
	}
}
