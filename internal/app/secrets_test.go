package app_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/app/apptest"
	"market/internal/catalog"
	"market/internal/secretbox"
)

// A keeper is a service that wants to see its own key, and writes down what it was shown.
type keeper struct {
	*httptest.Server
	mu   sync.Mutex
	seen map[string]http.Header // by path, the newest
	work http.HandlerFunc
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{seen: map[string]http.Header{}, work: apptest.Works}
	k.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		k.seen[r.URL.Path] = r.Header
		work := k.work
		k.mu.Unlock()
		if r.URL.Path == "/work" {
			work(w, r)
		}
	}))
	t.Cleanup(k.Close)
	return k
}

// shown is what the newest request to a path carried under a name.
func (k *keeper) shown(path, name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.seen[path].Values(name), " + ")
}

func (k *keeper) do(work http.HandlerFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.work = work
}

// listing puts a keeper on the shelf and returns its endpoint's URL and the secret that its provider was shown.
func (k *keeper) list(t *testing.T, w *apptest.World, slug string, headers map[string]any) (url, secret string) {
	t.Helper()
	body := draft(slug, map[string]any{
		"base_url": k.URL, "headers": headers, "probe": map[string]any{"path": "/healthz", "statuses": []string{"200"}},
		"endpoints": []any{map[string]any{"method": "POST", "path": "/work", "price_usd": "0.002", "trial_calls_per_day": 1000}},
	})
	status, made := w.Admin(t, http.MethodPost, "/api/v1/services", body)
	if status != http.StatusCreated {
		t.Fatalf("list %s: %d %v", slug, status, made)
	}
	if checked := k.shown("/healthz", "Market-Secret"); checked == "" {
		t.Error("the probe that the owner sees the result of came without what every other probe has")
	}
	member, _ := made["secret"].(map[string]any)
	secret, _ = member["value"].(string)
	return w.URL + "/s/" + slug + "/work", secret
}

// everythingStored is the whole database as text, binary columns in hex.
func everythingStored(t *testing.T, w *apptest.World) string {
	t.Helper()
	rows, err := w.DB.Query(t.Context(), `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if err := rows.Err(); err != nil || !slices.Contains(tables, "service_headers") || !slices.Contains(tables, "deliveries") {
		t.Fatalf("tables %v, %v", tables, err)
	}
	var all strings.Builder
	for _, name := range tables {
		var text string
		if err := w.DB.QueryRow(t.Context(), `SELECT coalesce(string_agg(x::text, ' '), '') FROM "`+name+`" x`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		all.WriteString(text)
	}
	return all.String()
}

// B98: what a provider entrusts to us is sent to its service with every request, and shown to nobody, however the service repeats it.
func TestSecrets_AServiceGetsItsKeyAndNobodyElseDoes(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	k := newKeeper(t)
	const key = "sk_live_of-the-provider"
	url, secret := k.list(t, w, "keeper", map[string]any{"authorization": "Bearer " + key})
	ask := apptest.Asking{Method: http.MethodPost, URL: url, Body: `{}`, Header: http.Header{"Authorization": {"Bearer of-the-caller"}}}
	payer := w.Payer(t, 10*apptest.PriceUnits)
	terms := w.Challenge(t, ask)
	answers := map[string]apptest.Answer{"served": w.Pay(t, payer, terms, ask), "a trial": w.Send(t, ask.Trial(), "")}
	for name, a := range answers {
		if a.Status != http.StatusOK || len(secret) != 47 {
			t.Fatalf("%s: %d %s, with a secret of %d characters", name, a.Status, a.Body, len(secret))
		}
	}
	for _, path := range []string{"/work", "/healthz"} {
		if k.shown(path, "Authorization") != "Bearer "+key || k.shown(path, "Market-Secret") != secret {
			t.Errorf("%s: the service was shown %q and %q, want its key and its secret", path, k.shown(path, "Authorization"), k.shown(path, "Market-Secret"))
		}
	}

	k.do(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Debug", r.Header.Get("Authorization"))
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(rw, `{"error":"your key %s and your secret %s do not go together"}`, key, r.Header.Get("Market-Secret"))
	})
	answers["refused"] = w.Pay(t, payer, terms, ask)
	if said := fmt.Sprint(answers["refused"].JSON["service_answer"]); said != "map[error:your key [hidden] and your secret [hidden] do not go together]" {
		t.Errorf("the service said %s", said)
	}
	k.do(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, key, http.StatusInternalServerError) })
	answers["failed"] = w.Pay(t, payer, terms, ask)
	answers["its record"] = w.Record(t, answers["refused"].Call())
	answers["its page"] = w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/calls/" + answers["refused"].Call(), Header: http.Header{"Accept": {"text/html"}}}, "")
	answers["the listing"] = w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/keeper"}, "")
	answers["the list"] = w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services"}, "")
	admin := http.Header{"Authorization": {"Bearer " + apptest.AdminToken}}
	answers["the owner's listing"] = w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/keeper", Header: admin}, "")
	answers["an unreadable change"] = w.Send(t, apptest.Asking{Method: http.MethodPut, URL: w.URL + "/api/v1/services/keeper/headers", Header: admin,
		Body: `{"Authorization":"Bearer ` + key + `","Host":"` + key + `","X-Bad":"` + key + `\n"}`}, "")
	for name, a := range answers {
		for header, values := range a.Header {
			if text := strings.Join(values, " "); strings.Contains(text, key) || strings.Contains(text, secret) {
				t.Errorf("%s: %s shows a secret: %s", name, header, text)
			}
		}
		if text := string(a.Body); strings.Contains(text, key) || strings.Contains(text, secret) {
			t.Errorf("%s shows a secret: %s", name, text)
		}
	}
	if owner := string(answers["the owner's listing"].Body); !strings.Contains(owner, `"headers":[{"name":"Authorization","set_at":"`) ||
		strings.Contains(string(answers["the listing"].Body), "Authorization") {
		t.Errorf("the owner sees %s, anybody %s", owner, answers["the listing"].Body)
	}
	if fields := fieldsOf(answers["an unreadable change"].JSON); !slices.Equal(fields, []string{"/Host", "/X-Bad"}) {
		t.Errorf("the fields that are wrong are %v", fields)
	}
	stored := everythingStored(t, w)
	for _, text := range []string{key, secret, hex.EncodeToString([]byte(key)), hex.EncodeToString([]byte(secret))} {
		if strings.Contains(stored, text) {
			t.Errorf("the database holds %s", text)
		}
	}
}

func TestSecrets_HeadersAreReplacedAndChangedWhileTheServiceSells(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	k := newKeeper(t)
	url, _ := k.list(t, w, "keeper", map[string]any{"X-Api-Key": "the first key"})
	trial := apptest.Asking{Method: http.MethodPost, URL: url, Body: `{}`}.Trial()
	const path = "/api/v1/services/keeper/headers"
	for _, step := range []struct {
		method string
		body   map[string]any
		status int
		want   [2]string // X-Api-Key and Cookie
	}{
		{http.MethodPatch, map[string]any{"Cookie": "session=mine"}, 200, [2]string{"the first key", "session=mine"}},
		{http.MethodPatch, map[string]any{"x-api-key": "the second key", "Cookie": nil}, 200, [2]string{"the second key", ""}},
		{http.MethodPut, map[string]any{"Cookie": "session=other"}, 200, [2]string{"", "session=other"}},
		{http.MethodPut, map[string]any{"Cookie": nil}, 422, [2]string{"", "session=other"}},
		{http.MethodPut, map[string]any{}, 200, [2]string{"", ""}},
	} {
		status, answer := w.Admin(t, step.method, path, step.body)
		if a := w.Send(t, trial, ""); a.Status != http.StatusOK {
			t.Fatalf("a trial: %d %s", a.Status, a.Body)
		}
		got := [2]string{k.shown("/work", "X-Api-Key"), k.shown("/work", "Cookie")}
		if status != step.status || got != step.want {
			t.Errorf("%s %v: %d %v, then the service is shown %q, want %d and %q", step.method, step.body, status, answer, got, step.status, step.want)
		}
	}
	if status, _ := w.Admin(t, http.MethodPut, "/api/v1/services/none/headers", map[string]any{}); status != http.StatusNotFound {
		t.Errorf("a service that does not exist: %d", status)
	}
}

// A provider that takes the old and the new secret for a while refuses no call of ours at any moment.
func TestSecrets_TheSecretOfAServiceChangesWithoutAGap(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	k := newKeeper(t)
	url, first := k.list(t, w, "keeper", map[string]any{})
	trial := apptest.Asking{Method: http.MethodPost, URL: url, Body: `{}`}.Trial()
	shown := func() string {
		t.Helper()
		if a := w.Send(t, trial, ""); a.Status != http.StatusOK {
			t.Fatalf("a trial: %d %s", a.Status, a.Body)
		}
		return k.shown("/work", "Market-Secret")
	}
	status, made := w.Admin(t, http.MethodPost, "/api/v1/services/keeper/secret", map[string]any{"after_seconds": 600})
	second, _ := made["value"].(string)
	if status != http.StatusCreated || second == "" || second == first {
		t.Fatalf("%d %v", status, made)
	}
	if got := shown(); got != first {
		t.Errorf("before its time the service is shown another secret than the first")
	}
	_, list := w.Admin(t, http.MethodGet, "/api/v1/services/keeper/revisions", nil)
	if kept := fmt.Sprint(list); !strings.Contains(kept, "by:admin token") || !strings.Contains(kept, fmt.Sprint("sent_from:", made["sent_from"])) || strings.Contains(kept, second) {
		t.Errorf("of the new secret the revisions say %s", kept)
	}
	w.Shift(t, 601*time.Second)
	apptest.Eventually(t, "the second secret is sent", func() bool { return shown() == second })

	// A service of an earlier version has no secret until its provider asks for one, and then at once.
	if _, err := w.DB.Exec(t.Context(), `DELETE FROM service_secrets`); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "no secret is sent", func() bool { return shown() == "" })
	_, made = w.Admin(t, http.MethodPost, "/api/v1/services/keeper/secret", nil)
	if got := shown(); got == "" || got != made["value"] {
		t.Errorf("the first secret of a service is not sent at once")
	}
}

func TestSecrets_TheOperatorsKeyChangesWithoutAGapAndALostOneCostsNobodyMoney(t *testing.T) {
	t.Parallel()
	key := func() string {
		b := make([]byte, 32)
		_, _ = rand.Read(b)
		return hex.EncodeToString(b)
	}
	path := func(keys ...string) string {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(strings.Join(keys, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := func(keys ...string) string { return "MARKET_SECRETS_KEY_FILE=" + path(keys...) }
	before, after := key(), key()
	w := apptest.Start(t, file(before))
	k := newKeeper(t)
	url, secret := k.list(t, w, "keeper", map[string]any{"X-Api-Key": "of-the-provider"})
	ask := apptest.Asking{Method: http.MethodPost, URL: url, Body: `{}`}
	calls := func(what string, at *apptest.World) {
		t.Helper()
		a := at.Send(t, at.At(t, ask.Trial()), "")
		if a.Status != http.StatusOK || k.shown("/work", "X-Api-Key") != "of-the-provider" || k.shown("/work", "Market-Secret") != secret {
			t.Errorf("%s: %d %s, and the service was shown %q", what, a.Status, a.Body, k.shown("/work", "X-Api-Key"))
		}
	}
	calls("with the old key", w)
	calls("with both", w.Replica(t, file(after, before)))
	alone := w.Replica(t, file(after))
	calls("without the old key", alone)

	foreign := key()
	if err := w.Refuses(t, file(foreign)); err == nil || !strings.Contains(err.Error(), "MARKET_SECRETS_KEY_FILE") {
		t.Errorf("a program whose keys open nothing that is entrusted to it starts: %v", err)
	}
	entrust(t, w, "other", path(foreign))
	lost := w.Replica(t, file(foreign))
	payer := w.Payer(t, apptest.PriceUnits)
	header := w.Sign(t, payer, w.Challenge(t, alone.At(t, ask)))
	a := lost.Send(t, lost.At(t, ask), header)
	expect(t, "without any key", a, http.StatusServiceUnavailable, "not_listed")
	if a.Header.Get("Retry-After") == "" || strings.Contains(string(a.Body), "provider") {
		t.Errorf("what is the operator's trouble is told as %s, Retry-After %q", a.Body, a.Header.Get("Retry-After"))
	}
	if w.Balance(t, payer.Address()) != apptest.PriceUnits {
		t.Error("a service that can't be asked was paid for")
	}
}

// entrust lists a service whose secret the keys of a file open and no others.
func entrust(t *testing.T, w *apptest.World, slug, keyFile string) {
	t.Helper()
	s := w.List(t, slug, apptest.Works, nil)
	box, err := secretbox.OpenKeys(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), w.DB, func(tx pgx.Tx) error {
		var id uuid.UUID
		if err := tx.QueryRow(t.Context(), `SELECT id FROM services WHERE slug = $1`, s.Slug).Scan(&id); err != nil {
			return err
		}
		_, _, err := catalog.NewSecrets(box).NewSecret(t.Context(), tx, id, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
