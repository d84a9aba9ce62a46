package app_test

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/app/apptest"
	"market/internal/identity"
	"market/internal/notify"
)

// Who a caller is decides whether its failures are evidence. It is who our own side of the connection says, not who the request says.
func TestOrigins_OnlyOutsideTrafficIsEvidence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env            []string
		header         http.Header
		origin, source string
		strikes        int
	}{
		"in development loopback is a caller like any other": {nil, nil, "external", "127.0.0.1", 1},
		"our own addresses move nothing":                     {[]string{"MARKET_OWN_SOURCES=127.0.0.0/8"}, nil, "own", "127.0.0.1", 0},
		"a peer that forwards and is no proxy counts, and is not believed": {[]string{"MARKET_OWN_SOURCES=198.51.100.0/24"},
			http.Header{"X-Forwarded-For": {"198.51.100.7"}}, "unattributed", "127.0.0.1", 1},
		"even one of our own addresses that forwards": {[]string{"MARKET_OWN_SOURCES=127.0.0.0/8"},
			http.Header{"Forwarded": {"for=198.51.100.7"}}, "unattributed", "127.0.0.1", 1},
		"behind a proxy of ours the forwarded address is the caller": {[]string{"MARKET_TRUSTED_PROXIES=127.0.0.0/8"},
			http.Header{"X-Forwarded-For": {"192.0.2.1, 198.51.100.7"}}, "external", "198.51.100.7", 1},
		"behind a proxy of ours our own scanner is our own": {[]string{"MARKET_TRUSTED_PROXIES=127.0.0.0/8", "MARKET_OWN_SOURCES=198.51.100.0/24"},
			http.Header{"X-Forwarded-For": {"198.51.100.7"}}, "own", "198.51.100.7", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.Start(t, tt.env...)
			s := w.List(t, "origin", apptest.Fails, map[string]any{"trial_calls_per_day": 10})
			payer := w.Payer(t, 2*apptest.PriceUnits)
			paid, trial := apptest.Ask(s.URL), apptest.Ask(s.URL).Trial()
			paid.Header, trial.Header = tt.header, tt.header
			// Two failures of our own traffic; of other traffic the second is refused in the cooldown that the first began.
			second, code := http.StatusBadGateway, "upstream_5xx"
			if tt.strikes > 0 {
				second, code = http.StatusServiceUnavailable, "in_cooldown"
			}
			a := w.Pay(t, payer, w.Challenge(t, paid), paid)
			expect(t, "a failure", a, http.StatusBadGateway, "upstream_5xx")
			b := w.Send(t, trial, "")
			expect(t, "a trial after it", b, second, code)
			for what, answer := range map[string]apptest.Answer{"paid": a, "trial": b} {
				if d := w.Delivery(t, answer.Call()); d.Origin != tt.origin || d.Source != tt.source {
					t.Errorf("%s: recorded as %s from %s, want %s from %s", what, d.Origin, d.Source, tt.origin, tt.source)
				}
			}
			if open := w.OpenStrikes(t, s.Slug); len(open) != tt.strikes {
				t.Errorf("open strikes %v, want %d", open, tt.strikes)
			}
			if rest := w.Rest(t, s.Slug); (rest > 0) != (tt.strikes > 0) {
				t.Errorf("it rests for %s", rest)
			}
			if w.AwaitRefund(t, a.Call()) == "" {
				t.Error("a failure is refunded wherever the call came from")
			}
			w.App.LookAtTraffic(t.Context())
			open, err := notify.Store{}.Open(t.Context(), w.DB, notify.UnattributedTraffic)
			if err != nil || len(open) != 0 { // a header costs nothing: what one caller sends is no news
				t.Errorf("notices of unattributed traffic: %+v (%v)", open, err)
			}
		})
	}
}

// A provider that calls its own service can neither clear its strikes nor get one: who calls from where the service answers is its provider.
// It is known from our own probes, so it holds for the first call after a start as well.
func TestOrigins_AProvidersOwnCallsMoveNothing(t *testing.T) {
	t.Parallel()
	const home = "127.0.0.61"
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.1/32")
	s := w.ListAt(t, home, "athome", apptest.Fails, map[string]any{"trial_calls_per_day": 20})
	from := func(w *apptest.World, address string) apptest.Asking {
		a := w.At(t, apptest.Ask(s.URL))
		a.Header = http.Header{"X-Forwarded-For": {address}}
		return a
	}
	fresh := w.Replica(t)
	terms := w.Challenge(t, from(w, "192.0.2.1"))
	payer := w.Payer(t, 10*apptest.PriceUnits)
	origin := func(what string, a apptest.Answer, want string, strikes int) {
		t.Helper()
		if d := w.Delivery(t, a.Call()); d.Origin != want {
			t.Errorf("%s is recorded as %s from %s, want %s", what, d.Origin, d.Source, want)
		}
		if open := w.OpenStrikes(t, s.Slug); len(open) != strikes {
			t.Errorf("after %s there are %d open strikes, want %d", what, len(open), strikes)
		}
	}
	a := fresh.Send(t, from(fresh, home).Trial(), "")
	expect(t, "the provider's trial", a, http.StatusBadGateway, "upstream_5xx")
	origin("the provider's trial", a, "provider", 0)
	a = w.Pay(t, payer, terms, from(w, home))
	expect(t, "the provider's call", a, http.StatusBadGateway, "upstream_5xx")
	origin("the provider's call", a, "provider", 0)
	if rest := w.Rest(t, s.Slug); rest != 0 {
		t.Errorf("after its provider's failures it rests for %s", rest)
	}
	if w.AwaitRefund(t, a.Call()) == "" {
		t.Error("a provider that pays for a failure is refunded like anybody")
	}

	// Its neighbour is somebody: what counts is the address, not the network that it is in.
	a = w.Pay(t, payer, terms, from(w, "127.0.0.62"))
	expect(t, "a neighbour's call", a, http.StatusBadGateway, "upstream_5xx")
	origin("a neighbour's call", a, "external", 1)
	w.Shift(t, restOver)
	s.Do(apptest.Works)
	a = w.Pay(t, payer, terms, from(w, home))
	if a.Status != http.StatusOK {
		t.Fatalf("the provider's call: %d %s", a.Status, a.Body)
	}
	origin("the provider's success", a, "provider", 1)
	// A stranger's word is not believed, whatever it says.
	stranger := w.ReplicaWith(t, nil, "MARKET_TRUSTED_PROXIES=10.0.0.0/8")
	a = stranger.Pay(t, payer, terms, from(stranger, home))
	if a.Status != http.StatusOK {
		t.Fatalf("a stranger's call: %d %s", a.Status, a.Body)
	}
	origin("a stranger's success", a, "unattributed", 0)
}

// A success of our own proves nothing either.
func TestOrigins_OurOwnSuccessClearsNothing(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8", "MARKET_OWN_SOURCES=198.51.100.0/24")
	s := w.List(t, "flattered", apptest.Fails, map[string]any{"trial_calls_per_day": 10})
	outside, own := apptest.Ask(s.URL).Trial(), apptest.Ask(s.URL).Trial()
	outside.Header = http.Header{"X-Forwarded-For": {"192.0.2.1"}}
	own.Header = http.Header{"X-Forwarded-For": {"198.51.100.7"}}
	expect(t, "a failure", w.Send(t, outside, ""), http.StatusBadGateway, "upstream_5xx")
	w.Shift(t, restOver)
	s.Do(apptest.Works)
	if a := w.Send(t, own, ""); a.Status != http.StatusOK || a.Outcome() != "served" {
		t.Fatalf("our own call: %d %s", a.Status, a.Body)
	}
	if open := w.OpenStrikes(t, s.Slug); len(open) != 1 {
		t.Errorf("open strikes after our own success: %v, want the one", open)
	}
	if a := w.Send(t, outside, ""); a.Status != http.StatusOK {
		t.Fatalf("somebody's call: %d %s", a.Status, a.Body)
	}
	if open := w.OpenStrikes(t, s.Slug); len(open) != 0 {
		t.Errorf("open strikes after somebody's success: %v", open)
	}
}

// A key that only reads may be with a dashboard or an accountant, whose calls are those of anybody.
func TestOrigins_WhereAKeyOnlyReadsIsNotWhereItsProviderIs(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.1/32")
	owner := account(t, w, "")
	for from, key := range map[string]string{
		"198.51.100.7": keyWith(t, w, owner, identity.ServicesRead, identity.AccountRead), "203.0.113.77": keyWith(t, w, owner, identity.Scopes()...),
	} {
		if a := w.SendBytes(t, http.MethodGet, "/api/v1/provider/services", "", "Authorization: Bearer "+key, "X-Forwarded-For: "+from); a.Status != http.StatusOK {
			t.Fatalf("from %s: %d %s", from, a.Status, a.Body)
		}
	}
	var seen []string
	if err := w.DB.QueryRow(t.Context(), `SELECT array_agg(host(address)) FROM account_addresses WHERE account_id = $1`, owner).Scan(&seen); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || seen[0] != "203.0.113.77" {
		t.Errorf("the account was seen at %v, want where a key that may change services was used", seen)
	}
}

const ownedSQL = `
WITH account AS (INSERT INTO accounts (id, wallet) VALUES ($1, $2)), seen AS (
	INSERT INTO account_addresses (account_id, address, seen_at) SELECT $1, address, market_now() - ago
	  FROM unnest($3::inet[], $4::interval[]) AS a (address, ago)
)
UPDATE services SET owner_id = $1 WHERE slug = $5`

// A provider is one, too, by the wallet that its account is and by where that was used in the last 30 days: it can neither clear its strikes nor get one
// by calls from anywhere else than its server. What it knows of that, the paid path has in memory.
func TestOrigins_AnOwnersCallsMoveNothing(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.1/32")
	const office, longAgo, elsewhere = "203.0.113.77", "203.0.113.88", "198.51.100.7"
	key, wallet := apptest.NewKey(t)
	w.Mint(t, wallet.Address(), 10*apptest.PriceUnits)
	stranger := w.Payer(t, 10*apptest.PriceUnits)
	s := w.List(t, "owned", apptest.Fails, map[string]any{"trial_calls_per_day": 20})
	other := w.List(t, "anothers", apptest.Fails, map[string]any{"trial_calls_per_day": 20})
	address := wallet.Address()
	_, err := w.DB.Exec(t.Context(), ownedSQL, uuid.New(), address[:], []string{office, longAgo}, []time.Duration{29 * 24 * time.Hour, 31 * 24 * time.Hour}, s.Slug)
	if err != nil {
		t.Fatal(err)
	}
	at := w.Replica(t) // it has read who owns what before it is asked
	asking := func(s *apptest.Service, address string) apptest.Asking {
		return from(at.At(t, apptest.Ask(s.URL)), address)
	}
	terms := w.Challenge(t, asking(s, elsewhere))
	recorded := func(what string, a apptest.Answer, want string) {
		t.Helper()
		expect(t, what, a, http.StatusBadGateway, "upstream_5xx")
		if d := w.Delivery(t, a.Call()); d.Origin != want {
			t.Errorf("%s is recorded as %s from %s, want %s", what, d.Origin, d.Source, want)
		}
	}
	trial := func(s *apptest.Service, address string, signed bool) apptest.Answer {
		a := asking(s, address).Trial()
		if signed {
			a.Header.Set("SIGN-IN-WITH-X", signIn(t, w.URL, key, wallet.Address().Hex()))
		}
		return at.Send(t, a, "")
	}
	recorded("a call that the owner's wallet pays", at.Pay(t, wallet, terms, asking(s, elsewhere)), "provider")
	recorded("a trial call that it signs in to", trial(s, elsewhere, true), "provider")
	recorded("a trial call from the owner's office", trial(s, office, false), "provider")
	recorded("a call from there with anybody's wallet", at.Pay(t, stranger, terms, asking(s, office)), "provider")
	if open, rest := w.OpenStrikes(t, s.Slug), w.Rest(t, s.Slug); len(open) != 0 || rest != 0 {
		t.Errorf("the owner's calls moved something: strikes %v, rest %s", open, rest)
	}
	recorded("the owner's trial of another's service", trial(other, office, true), "external")
	recorded("a trial call from where the owner was too long ago", trial(s, longAgo, false), "external")
	if open := w.OpenStrikes(t, s.Slug); len(open) != 1 {
		t.Fatalf("open strikes after somebody's call: %v, want one", open)
	}
	w.Shift(t, restOver)
	s.Do(apptest.Works)
	if a := trial(s, elsewhere, true); a.Status != http.StatusOK || len(w.OpenStrikes(t, s.Slug)) != 1 {
		t.Errorf("the owner's success: %d, open strikes %v; want the one", a.Status, w.OpenStrikes(t, s.Slug))
	}
}

const scannerSQL = `
WITH account AS (INSERT INTO accounts (id, wallet) VALUES ($1, $2)), role AS (INSERT INTO admins (wallet, source, granted_by) VALUES ($2, 'admin', 'a test'))
INSERT INTO api_keys (id, account_id, name, token_hash, hint, scopes) VALUES ($3, $1, 'monitoring', $4, 'AAAA', '{scanner}')`

// A scanner of ours that has no address of ours shows its key. What every process knows of the keys it has in memory, and hears of by a notification; one
// that is none is told, because its failures would count as anybody's.
func TestOrigins_AScannerIsKnownByItsKey(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_TRUSTED_PROXIES=127.0.0.0/8")
	s := w.List(t, "scanned", apptest.Fails, map[string]any{"trial_calls_per_day": 20})
	token := "mkk_" + strings.Repeat("A", 43)
	scan := func(trial bool, keys ...string) apptest.Asking {
		a := from(apptest.Ask(s.URL), "198.51.100.7")
		if trial {
			a = a.Trial()
		}
		a.Header["Market-Scanner"] = keys
		return a
	}
	refused := func(what string, a apptest.Answer) {
		t.Helper()
		expect(t, what, a, http.StatusUnauthorized, "unauthorized")
		if strings.Contains(string(a.Body), token) {
			t.Errorf("%s: the answer repeats the key: %s", what, a.Body)
		}
	}
	refused("a key that nobody made", w.Send(t, scan(true, token), ""))
	refused("no key", w.Send(t, scan(false, ""), ""))
	untouched(t, w, s)

	wallet, key, digest := common.Address{0x5c}, uuid.New(), sha256.Sum256([]byte(token))
	if _, err := w.DB.Exec(t.Context(), scannerSQL, uuid.New(), wallet[:], key, digest[:]); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the key is known", func() bool { return w.Send(t, scan(false, token), "").Status == http.StatusPaymentRequired })
	refused("two keys", w.Send(t, scan(true, token, token), ""))
	payer := w.Payer(t, apptest.PriceUnits)
	for what, a := range map[string]apptest.Answer{
		"a trial": w.Send(t, scan(true, token), ""), "a paid call": w.Pay(t, payer, w.Challenge(t, scan(false, token)), scan(false, token)),
	} {
		expect(t, what, a, http.StatusBadGateway, "upstream_5xx")
		if d := w.Delivery(t, a.Call()); d.Origin != "own" || d.Source != "198.51.100.7" {
			t.Errorf("%s is recorded as %s from %s", what, d.Origin, d.Source)
		}
	}
	if open, rest := w.OpenStrikes(t, s.Slug), w.Rest(t, s.Slug); len(open) != 0 || rest != 0 {
		t.Errorf("a scanner moved something: strikes %v, rest %s", open, rest)
	}
	if _, err := w.DB.Exec(t.Context(), `UPDATE api_keys SET revoked_at = market_now() WHERE id = $1`, key); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the key is none any more", func() bool { return w.Send(t, scan(false, token), "").Status == http.StatusUnauthorized })
}
