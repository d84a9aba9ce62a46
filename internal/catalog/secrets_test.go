package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/config"
	"market/internal/postgres/pgtest"
	"market/internal/secretbox"
)

func headers(t *testing.T, merge bool, members string) catalog.HeaderChange {
	t.Helper()
	change, err := catalog.ParseHeaders([]byte(members), merge)
	if err != nil {
		t.Fatal(err)
	}
	return change
}

func setHeaders(t *testing.T, db *pgxpool.Pool, s catalog.Secrets, service uuid.UUID, c catalog.HeaderChange) ([]catalog.ServiceHeader, error) {
	t.Helper()
	var set []catalog.ServiceHeader
	err := inTx(t, db, func(tx pgx.Tx) (err error) {
		set, err = s.SetHeaders(t.Context(), tx, service, c)
		return err
	})
	return set, err
}

func newSecret(t *testing.T, db *pgxpool.Pool, s catalog.Secrets, service uuid.UUID, after time.Duration) (config.Secret, time.Time) {
	t.Helper()
	var value config.Secret
	var since time.Time
	err := inTx(t, db, func(tx pgx.Tx) (err error) {
		value, since, err = s.NewSecret(t.Context(), tx, service, after)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value, since
}

// loaded is a service as a request finds it.
func loaded(t *testing.T, db *pgxpool.Pool, s catalog.Secrets, id uuid.UUID) *catalog.Service {
	t.Helper()
	service, ok := load(t, catalog.New(time.Now, time.Minute).Opening(s), db).Service(id)
	if !ok {
		t.Fatal("the service is not there")
	}
	return service
}

// plain is what a service's requests get, by name.
func plain(s *catalog.Service) map[string]string {
	values := map[string]string{}
	for _, h := range s.Headers {
		values[h.Name] = h.Value.Reveal()
	}
	return values
}

func TestSecrets_SetHeaders_ReplacesOrMergesAndOnlyASnapshotHasTheValues(t *testing.T) {
	t.Parallel()
	db, secrets := pgtest.New(t), catalog.NewSecrets(secretbox.RandomBox())
	s := create(t, db, draft(t, "weather", "/"))
	for _, step := range []struct {
		what, members string
		merge         bool
		want          string // as fmt prints it
	}{
		{"the first", `{"x-api-key":"one","Authorization":"Bearer two"}`, false, "map[Authorization:Bearer two X-Api-Key:one]"},
		{"a change of one", `{"X-API-KEY":"three"}`, true, "map[Authorization:Bearer two X-Api-Key:three]"},
		{"one removed, one added", `{"Authorization":null,"Cookie":"a=b"}`, true, "map[Cookie:a=b X-Api-Key:three]"},
		{"nothing", `{}`, true, "map[Cookie:a=b X-Api-Key:three]"},
		{"another set", `{"Apikey":"four"}`, false, "map[Apikey:four]"},
		{"none any more", `{}`, false, "map[]"},
	} {
		set, err := setHeaders(t, db, secrets, s.ID, headers(t, step.merge, step.members))
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		got := loaded(t, db, secrets, s.ID)
		if shown := fmt.Sprint(plain(got)); shown != step.want || got.Broken != "" {
			t.Errorf("%s: a snapshot has %s (%s), want %s", step.what, shown, got.Broken, step.want)
		}
		found, err := store.Find(t.Context(), db, "weather")
		if err != nil {
			t.Fatal(err)
		}
		for _, listed := range [][]catalog.ServiceHeader{set, found.Headers} {
			same := slices.EqualFunc(listed, got.Headers, func(a, b catalog.ServiceHeader) bool { return a.Name == b.Name && a.SetAt.Equal(b.SetAt) })
			if !same || slices.ContainsFunc(listed, func(h catalog.ServiceHeader) bool { return h.Value.Reveal() != "" || h.SetAt.IsZero() }) {
				t.Errorf("%s: listed as %+v, want the names and times of %+v and no value", step.what, listed, got.Headers)
			}
		}
	}
}

func TestSecrets_SetHeaders_CountsWhatAMergeWouldLeave(t *testing.T) {
	t.Parallel()
	db, secrets := pgtest.New(t), catalog.NewSecrets(secretbox.RandomBox())
	s := create(t, db, draft(t, "weather", "/"))
	many := map[string]any{}
	for i := range 10 {
		many[fmt.Sprintf("X-%d", i)] = "v"
	}
	ten, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("v", 2048)
	large := `{"A":"` + long + `","B":"` + long + `","C":"` + long + `","D":"` + long[:2044] + `"}`
	for what, tt := range map[string]struct {
		first, then string
		taken       bool
	}{
		"an eleventh":           {string(ten), `{"X-10":"v"}`, false},
		"another for a removed": {string(ten), `{"X-10":"v","X-0":null}`, true},
		"a byte too much":       {large, `{"D":"` + long[:2045] + `"}`, false},
		"a byte for a byte":     {large, `{"D":"` + long[:2043] + `","C":"` + long + `"}`, true},
	} {
		if _, err := setHeaders(t, db, secrets, s.ID, headers(t, false, tt.first)); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(plain(loaded(t, db, secrets, s.ID)))
		_, err := setHeaders(t, db, secrets, s.ID, headers(t, true, tt.then))
		if (err == nil) != tt.taken || (err != nil && reasonOf(err) != call.InvalidRequest) {
			t.Errorf("%s: %v, want taken %v", what, err, tt.taken)
		}
		if after := fmt.Sprint(plain(loaded(t, db, secrets, s.ID))); !tt.taken && after != before {
			t.Errorf("%s: a refused change left something", what)
		}
	}
}

// Two changes at once see each other, so together they do not leave more than a service may have.
func TestSecrets_SetHeaders_ConcurrentChangesKeepTheLimit(t *testing.T) {
	t.Parallel()
	db, secrets := pgtest.New(t), catalog.NewSecrets(secretbox.RandomBox())
	s := create(t, db, draft(t, "weather", "/"))
	const changes = 3
	var wg, begun sync.WaitGroup
	begun.Add(changes)
	var taken atomic.Int32
	for i := range changes {
		members := map[string]any{}
		for j := range 6 {
			members[fmt.Sprintf("X-%d-%d", i, j)] = "v"
		}
		body, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		change := headers(t, true, string(body))
		wg.Go(func() {
			err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
				begun.Done()
				begun.Wait()
				_, err := secrets.SetHeaders(t.Context(), tx, s.ID, change)
				return err
			})
			if err == nil {
				taken.Add(1)
			}
		})
	}
	wg.Wait()
	if got := len(loaded(t, db, secrets, s.ID).Headers); taken.Load() != 1 || got != 6 {
		t.Errorf("%d changes were taken and left %d headers, want one and 6", taken.Load(), got)
	}
}

// A value was entrusted to us for one host. Whoever can change the listing, or the database, does not get it sent to another.
func TestSecrets_AHeaderGoesToNoOtherHostServiceOrName(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		change string
		broken bool
	}{
		"another path on the host": {`UPDATE services SET base_url = 'https://api.weather.example/v2' WHERE slug = 'weather'`, false},
		"another host":             {`UPDATE services SET base_url = 'https://evil.example/v1' WHERE slug = 'weather'`, true},
		"another port":             {`UPDATE services SET base_url = 'https://api.weather.example:8443/v1' WHERE slug = 'weather'`, true},
		"no TLS":                   {`UPDATE services SET base_url = 'http://api.weather.example/v1' WHERE slug = 'weather'`, true},
		"another name":             {`UPDATE service_headers SET name = 'X-Other'`, true},
		"another value":            {`UPDATE service_headers SET sealed = sealed || '\x00'`, true},
		"another secret":           {`UPDATE service_secrets SET sealed = sealed || '\x00'`, true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			db, secrets := pgtest.New(t), catalog.NewSecrets(secretbox.RandomBox())
			s := create(t, db, draft(t, "weather", "/"))
			if _, err := setHeaders(t, db, secrets, s.ID, headers(t, false, `{"X-Api-Key":"secretive"}`)); err != nil {
				t.Fatal(err)
			}
			newSecret(t, db, secrets, s.ID, 0)
			if _, err := db.Exec(t.Context(), tt.change); err != nil {
				t.Fatal(err)
			}
			got := loaded(t, db, secrets, s.ID)
			if (got.Broken != "") != tt.broken {
				t.Errorf("broken = %q, want broken %v", got.Broken, tt.broken)
			}
			if tt.broken && plain(got)["X-Api-Key"]+plain(got)["X-Other"] != "" && what != "another secret" {
				t.Errorf("opened as %v", plain(got))
			}
		})
	}
}

func TestSecrets_NothingOfThemShows(t *testing.T) {
	t.Parallel()
	db, secrets := pgtest.New(t), catalog.NewSecrets(secretbox.RandomBox())
	s := create(t, db, draft(t, "weather", "/"))
	if _, err := setHeaders(t, db, secrets, s.ID, headers(t, false, `{"X-Api-Key":"secretive"}`)); err != nil {
		t.Fatal(err)
	}
	secret, _ := newSecret(t, db, secrets, s.ID, 0)
	got := loaded(t, db, secrets, s.ID)
	if plain(got)["X-Api-Key"] != "secretive" || got.Secret.Value.Reveal() != secret.Reveal() {
		t.Fatal("the snapshot has not what was set")
	}
	encoded, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var stored []byte
	if err := db.QueryRow(t.Context(), `
SELECT string_agg(convert_to(h::text, 'UTF8') || h.sealed, '') || (SELECT string_agg(convert_to(x::text, 'UTF8') || x.sealed, '') FROM service_secrets x)
  FROM service_headers h`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string][]byte{
		"printed": fmt.Appendf(nil, "%v %+v %#v", *got, *got, *got), "a header printed": fmt.Appendf(nil, "%v %+v %#v %x", got.Headers, got.Headers, got.Headers, got.Headers),
		"as JSON": encoded, "in the database": stored,
	} {
		for _, value := range []string{"secretive", secret.Reveal(), strings.TrimPrefix(secret.Reveal(), "mks_"), "736563726574697665"} {
			if bytes.Contains(text, []byte(value)) {
				t.Errorf("%s: %s shows", where, value)
			}
		}
	}
}

// A provider learns the new secret before it is sent, so it can take both, and no call between the two fails.
func TestSecrets_NewSecret_IsSentWhenItsTimeHasCome(t *testing.T) {
	t.Parallel()
	db, secrets := pgtest.New(t), catalog.NewSecrets(secretbox.RandomBox())
	pgtest.Freeze(t, db)
	s := create(t, db, draft(t, "weather", "/"))
	sent := func() catalog.ServiceSecret { t.Helper(); return loaded(t, db, secrets, s.ID).Secret }
	if got := sent(); got.Value.Reveal() != "" || !got.Since.IsZero() {
		t.Errorf("a service that never got a secret is sent %v", got)
	}

	first, since := newSecret(t, db, secrets, s.ID, time.Hour)
	if got := sent(); got.Value.Reveal() != first.Reveal() || !got.Since.Equal(since) || !got.Since.Equal(marketNow(t, db)) {
		t.Errorf("the first waits: %v", got)
	}
	if len(first.Reveal()) != len("mks_")+43 || !strings.HasPrefix(first.Reveal(), "mks_") {
		t.Errorf("the secret is %d characters long", len(first.Reveal()))
	}

	given, _ := newSecret(t, db, secrets, s.ID, time.Hour)
	second, from := newSecret(t, db, secrets, s.ID, time.Hour) // the one that waited was lost, say
	if got := sent(); got.Value.Reveal() != first.Reveal() || !got.Next.Equal(from) {
		t.Errorf("before its time the second is sent, or its time is not told: %v", got)
	}
	// The clock alone hands over: the next look at the database may be a minute away.
	if got := sent(); got.At(time.Now()).Reveal() != first.Reveal() || got.At(time.Now().Add(2*time.Hour)).Reveal() != second.Reveal() {
		t.Error("without another look at the database the second is not sent at its time")
	}
	pgtest.Shift(t, db, time.Hour-time.Microsecond)
	if got := sent(); got.Value.Reveal() != first.Reveal() {
		t.Error("a microsecond too early the second is sent")
	}
	pgtest.Shift(t, db, time.Microsecond)
	if got := sent(); got.Value.Reveal() != second.Reveal() || !got.Since.Equal(from) || !got.Next.IsZero() || got.Value.Reveal() == given.Reveal() {
		t.Errorf("at its time the second is not sent: %v", got)
	}

	third, _ := newSecret(t, db, secrets, s.ID, 0)
	if got := sent(); got.Value.Reveal() != third.Reveal() {
		t.Error("one that does not wait is not sent at once")
	}
	var kept int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM service_secrets`).Scan(&kept); err != nil || kept > 2 {
		t.Errorf("%d secrets are kept (%v), want the one that is sent and the one before at most", kept, err)
	}
}

func TestSecrets_ARetiredServiceGetsNone(t *testing.T) {
	t.Parallel()
	db, secrets := pgtest.New(t), catalog.NewSecrets(secretbox.RandomBox())
	s := create(t, db, draft(t, "weather", "/"))
	if _, err := store.Retire(t.Context(), db, s.ID, catalog.AdminToken, "withdrawn"); err != nil {
		t.Fatal(err)
	}
	if _, err := setHeaders(t, db, secrets, s.ID, headers(t, false, `{}`)); reasonOf(err) != call.Conflict {
		t.Errorf("headers: %v, want a conflict", err)
	}
	err := inTx(t, db, func(tx pgx.Tx) error {
		_, _, err := secrets.NewSecret(t.Context(), tx, s.ID, 0)
		return err
	})
	if reasonOf(err) != call.Conflict {
		t.Errorf("a secret: %v, want a conflict", err)
	}
	if _, err := setHeaders(t, db, secrets, uuid.New(), headers(t, false, `{}`)); reasonOf(err) != call.NotFound {
		t.Errorf("no such service: %v, want not_found", err)
	}
}
