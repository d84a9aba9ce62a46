package catalog_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
)

var store catalog.Store

// draft returns a checked listing with one priced endpoint at each path.
func draft(t *testing.T, slug string, paths ...string) catalog.Draft {
	t.Helper()
	body := `{"slug":"` + slug + `","name":"Weather","tags":["data"],"base_url":"https://api.weather.example/v1","probe":{"path":"/healthz","statuses":["200-399"]},"endpoints":[`
	for i, path := range paths {
		if i > 0 {
			body += ","
		}
		body += `{"method":"POST","path":"` + path + `","price_usd":"0.002","served_statuses":[404],"input_schema":{"type":"object","required":["city"]},
			"input_example":{"city":"Lima"},"output_schema":{"type":"object"},"timeout_ms":1500,"trial_calls_per_day":3}`
	}
	d, err := catalog.ParseDraft([]byte(body+"]}"), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// inTx runs f in a transaction of its own and commits it if f succeeds.
func inTx(t *testing.T, db *pgxpool.Pool, f func(pgx.Tx) error) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), db, f)
}

func create(t *testing.T, db *pgxpool.Pool, d catalog.Draft) catalog.Service {
	t.Helper()
	var s catalog.Service
	err := inTx(t, db, func(tx pgx.Tx) (err error) {
		s, err = store.Create(t.Context(), tx, d)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func reasonOf(err error) call.Reason {
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		return no.Reason
	}
	return ""
}

func constraintOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.ConstraintName
	}
	return ""
}

func TestStore_Create_KeepsWhatAStreamMayDo(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	d := draft(t, "feed", "/v1/whole")
	streamed, err := catalog.ParseEndpointDraft([]byte(`{"method":"GET","path":"/v1/feed","price_usd":"0.002","stream":true,"timeout_ms":600000,
		"idle_timeout_ms":5000,"max_response_bytes":67108864}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	d.Endpoints = append(d.Endpoints, streamed)
	create(t, db, d)
	got, err := store.Find(t.Context(), db, "feed")
	if err != nil {
		t.Fatal(err)
	}
	if whole := got.Endpoints[0]; whole.Stream || whole.IdleTimeout != 30*time.Second {
		t.Errorf("what is no stream is kept as %+v", whole)
	}
	e := got.Endpoints[1]
	if !e.Stream || e.Timeout != 10*time.Minute || e.IdleTimeout != 5*time.Second || e.MaxResponseBytes != 64<<20 || e.MIMEType != "text/event-stream" {
		t.Errorf("a stream is kept as %+v", e)
	}
}

func TestStore_Create_KeepsTheWholeListing(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	made := create(t, db, draft(t, "weather", "/v1/current", "/v1/{id}"))

	got, err := store.Find(t.Context(), db, "weather")
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != made.ID || got.Name != "Weather" || !slices.Equal(got.Tags, []string{"data"}) || got.State != catalog.Listed ||
		got.StateReason != "created" || got.StateSince.IsZero() || got.BaseURL != "https://api.weather.example/v1" ||
		got.Probe.Path != "/healthz" || got.Probe.Statuses.String() != "200-399" || got.Broken != "" {
		t.Errorf("service = %+v", got)
	}
	if got.Probe.Body != nil {
		t.Errorf("a probe without a body has %q", got.Probe.Body)
	}
	if len(got.Endpoints) != 2 {
		t.Fatalf("%d endpoints, want 2", len(got.Endpoints))
	}
	e := got.Endpoints[0]
	price, ok := e.Price()
	if !ok || price.USD.String() != "0.002" || price.Revision != made.Endpoints[0].Prices[0].Revision {
		t.Errorf("price = %+v, want 0.002 at revision %d", price, made.Endpoints[0].Prices[0].Revision)
	}
	if e.ID != made.Endpoints[0].ID || e.ServiceID != got.ID || e.Path != "/v1/current" || e.Timeout != made.Endpoints[0].Timeout ||
		e.TrialCallsPerDay != 3 || !slices.Equal(e.ServedStatuses, []int{404}) || e.OutputExample != nil || e.Broken != "" {
		t.Errorf("endpoint = %+v", e)
	}
	if !e.MatchesExample(catalog.Input{Body: []byte(`{"city":"Lima"}`)}) {
		t.Error("the stored example is not the one that was given")
	}
	if err := e.CheckInput(catalog.Input{Body: []byte(`{}`)}); reasonOf(err) != call.InputInvalid {
		t.Errorf("the stored schema lets an empty object pass: %v", err)
	}
}

func TestStore_Create_KeepsTheBodyOfAProbeLetterByLetter(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	d := draft(t, "weather", "/")
	d.Probe.Method, d.Probe.Body = "POST", []byte(`{"b":1.0,"a":[1e2]}`)
	create(t, db, d)
	got, err := store.Find(t.Context(), db, "weather")
	if err != nil || got.Probe.Method != "POST" || string(got.Probe.Body) != string(d.Probe.Body) {
		t.Errorf("probe = %s with %s, %v, want POST with %s", got.Probe.Method, got.Probe.Body, err, d.Probe.Body)
	}
}

func TestStore_Create_ATakenSlugIsAConflictWhateverBecameOfItsService(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	if _, err := store.Retire(t.Context(), db, s.ID, catalog.AdminToken, "withdrawn by its provider"); err != nil {
		t.Fatal(err)
	}
	err := inTx(t, db, func(tx pgx.Tx) error {
		_, err := store.Create(t.Context(), tx, draft(t, "weather", "/"))
		return err
	})
	if got := reasonOf(err); got != call.Conflict {
		t.Errorf("reason = %q, want %q (%v)", got, call.Conflict, err)
	}
}

func TestStore_Create_OfManyAtOnceOneGetsTheSlug(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	d := draft(t, "weather", "/")
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
				_, err := store.Create(t.Context(), tx, d)
				return err
			})
			switch {
			case err == nil:
				won.Add(1)
			case reasonOf(err) == call.Conflict:
				lost.Add(1)
			default:
				t.Errorf("error = %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 7 {
		t.Errorf("won = %d, lost = %d, want 1 and 7", won.Load(), lost.Load())
	}
}

func TestStore_Find_RefusesWhatIsNotThere(t *testing.T) {
	t.Parallel()
	if _, err := store.Find(t.Context(), pgtest.New(t), "nobody"); reasonOf(err) != call.NotFound {
		t.Errorf("error = %v, want a refusal with not_found", err)
	}
}

func TestStore_AddEndpoint_RefusesASecondAnswerToOneRequest(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/city/{id}"))
	add := func(method, path string) error {
		d, err := catalog.ParseEndpointDraft([]byte(`{"method":"`+method+`","path":"`+path+`","price_usd":"1"}`), catalog.Rules{})
		if err != nil {
			t.Error(err)
			return err
		}
		return pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
			_, err := store.AddEndpoint(t.Context(), tx, s.ID, d, owner)
			return err
		})
	}
	if got := reasonOf(add("POST", "/city/{name}")); got != call.Conflict {
		t.Errorf("the same shape: reason = %q, want %q", got, call.Conflict)
	}
	if err := add("GET", "/city/{name}"); err != nil {
		t.Errorf("another method: %v", err)
	}
	// Two names for one shape at once: without the lock both would be added.
	var added atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if add("GET", fmt.Sprintf("/day/{p%d}", i)) == nil {
				added.Add(1)
			}
		})
	}
	wg.Wait()
	if added.Load() != 1 {
		t.Errorf("%d of one shape were added at once, want 1", added.Load())
	}
	if _, err := store.Retire(t.Context(), db, s.ID, catalog.AdminToken, "withdrawn"); err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(add("GET", "/new")); got != call.Conflict {
		t.Errorf("a retired service: reason = %q, want %q", got, call.Conflict)
	}
}

func TestStore_Delist_OfManyOneMovesAndKeepsItsReason(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	var moved atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ok, err := store.Delist(t.Context(), db, s.ID, "three strikes")
			if err != nil {
				t.Error(err)
			}
			if ok {
				moved.Add(1)
			}
		})
	}
	wg.Wait()
	got, err := store.Find(t.Context(), db, "weather")
	if err != nil {
		t.Fatal(err)
	}
	if moved.Load() != 1 || got.State != catalog.Delisted || got.StateReason != "three strikes" || got.StateSince.Before(s.StateSince) {
		t.Errorf("moved = %d, service = %s (%s), want 1, delisted", moved.Load(), got.State, got.StateReason)
	}
	if ok, err := store.Retire(t.Context(), db, s.ID, catalog.AdminToken, "withdrawn"); err != nil || !ok {
		t.Errorf("retire a delisted service = %v, %v, want true", ok, err)
	}
	if ok, err := store.Delist(t.Context(), db, s.ID, "again"); err != nil || ok {
		t.Errorf("delist a retired service = %v, %v, want false", ok, err)
	}
	if ok, err := store.Retire(t.Context(), db, s.ID, catalog.AdminToken, "again"); err != nil || ok {
		t.Errorf("retire again = %v, %v, want false", ok, err)
	}
}

func TestStore_Lock_HoldsOthersUntilTheEnd(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if state, err := store.Lock(t.Context(), tx, s.ID); err != nil || state != catalog.Listed {
		t.Fatalf("Lock = %s, %v, want listed", state, err)
	}
	if ok, err := store.Delist(t.Context(), tx, s.ID, "three strikes"); err != nil || !ok {
		t.Fatalf("Delist = %v, %v", ok, err)
	}
	seen := make(chan catalog.State, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
			state, err := store.Lock(t.Context(), tx, s.ID)
			seen <- state
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	// Whether it came before or after the commit, it must see what the first one wrote.
	if got := <-seen; got != catalog.Delisted {
		t.Errorf("the second Lock sees %s, want delisted", got)
	}
	err = inTx(t, db, func(tx pgx.Tx) error {
		_, err := store.Lock(t.Context(), tx, uuid.New())
		return err
	})
	if reasonOf(err) != call.NotFound {
		t.Errorf("lock of nobody: %v, want a refusal with not_found", err)
	}
}
