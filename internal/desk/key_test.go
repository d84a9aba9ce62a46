package desk

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"market/internal/payment"
	"market/internal/postgres/pgtest"
)

func TestKeyOf_TakesOneBearerTokenWhoseHashIsKnown(t *testing.T) {
	t.Parallel()
	keys := []Key{
		{Name: "first", SHA256: sha256.Sum256([]byte("one"))},
		{Name: "second", SHA256: sha256.Sum256([]byte("two"))},
		{Name: "nobody's", SHA256: sha256.Sum256(nil)},
	}
	tests := map[string]struct {
		authorization []string
		want          string // empty: none
	}{
		"the first":                     {[]string{"Bearer one"}, "first"},
		"the second":                    {[]string{"Bearer two"}, "second"},
		"the scheme in another case":    {[]string{"bearer two"}, "second"},
		"no header":                     {nil, ""},
		"an unknown token":              {[]string{"Bearer three"}, ""},
		"another scheme":                {[]string{"Basic one"}, ""},
		"no scheme":                     {[]string{"one"}, ""},
		"no token":                      {[]string{"Bearer "}, ""},
		"two spaces":                    {[]string{"Bearer  one"}, ""},
		"the hash instead of the token": {[]string{"Bearer 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"}, ""},
		"two headers":                   {[]string{"Bearer one", "Bearer one"}, ""},
		"a token of a megabyte":         {[]string{"Bearer " + strings.Repeat("a", 1<<20)}, ""},
	}
	for name, tt := range tests {
		k, ok := keyOf(http.Header{"Authorization": tt.authorization}, keys)
		if ok != (tt.want != "") || k.Name != tt.want {
			t.Errorf("%s: key %q, %v, want %q", name, k.Name, ok, tt.want)
		}
	}
}

func TestRecipients_AreThoseOfAnyKey(t *testing.T) {
	t.Parallel()
	one, two, three := common.Address{1}, common.Address{2}, common.Address{3}
	some := Recipients([]Key{{Recipients: []common.Address{one}}, {Recipients: []common.Address{two}}})
	if !some(one) || !some(two) || some(three) {
		t.Errorf("recipients: %v, %v, %v, want the first two", some(one), some(two), some(three))
	}
	if all := Recipients([]Key{{Recipients: []common.Address{one}}, {Anybody: true}}); !all(three) {
		t.Error("a key for anybody does not reach the third")
	}
	if none := Recipients(nil); none(one) {
		t.Error("without keys somebody is a recipient")
	}
}

// B15: a stranger has no gas of ours, and a key none for another seller than its own.
func TestDesk_WithoutTheRightKeyNothingIsJudged(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	var log bytes.Buffer
	url := g.desk(t, func(c *Config) { c.Log = zerolog.New(&log) })
	mine := g.body(payment.V2, g.authorize(t, nil), nil)
	other := newKey(t).Address().Hex()
	foreign := g.body(payment.V2, g.authorize(t, nil), func(o object) {
		o.at("paymentRequirements")["payTo"] = other
		o.at("paymentPayload", "accepted")["payTo"] = other
	})
	tests := map[string]struct {
		authorization string
		body          object
		status        int
		code          string
	}{
		"no key":                   {"", mine, http.StatusUnauthorized, "market_unauthorized"},
		"a wrong key":              {"Bearer wrong", mine, http.StatusUnauthorized, "market_unauthorized"},
		"another seller's payment": {"Bearer " + token, foreign, http.StatusForbidden, "market_recipient_not_allowed"},
	}
	for name, tt := range tests {
		for _, route := range []string{"/verify", "/settle"} {
			a := askAs(t, url+route, tt.authorization, string(encode(t, tt.body)))
			if a.status != tt.status || a.code() != tt.code || a.yes() {
				t.Errorf("%s, %s: %d %s, want %d %s", name, route, a.status, a.raw, tt.status, tt.code)
			}
			if got := a.header.Get("WWW-Authenticate"); (got != "") != (tt.status == http.StatusUnauthorized) {
				t.Errorf("%s, %s: WWW-Authenticate is %q", name, route, got)
			}
		}
	}
	if n := g.transfers(t); n != 0 || g.sent(t) != 0 {
		t.Errorf("%d transfers by %d transactions, want none", n, g.sent(t))
	}
	for _, secret := range []string{token, "wrong", "signature"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q: %s", secret, log.String())
		}
	}
}

func TestDesk_AKeyForAnybodySettlesToAnybody(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil, Key{Name: "all", SHA256: sha256.Sum256([]byte(token)), Anybody: true, PerMinute: 10})
	s := g.authorize(t, nil)
	g.wantSettled(t, payment.V2, s, ask(t, url+"/settle", g.body(payment.V2, s, nil)))
}

// alignMinute moves the clock of the database to the beginning of a minute, so that no window ends within the test.
func alignMinute(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	var left time.Duration
	const leftSQL = `SELECT date_trunc('minute', market_now()) + interval '1 minute' - market_now()`
	if err := db.QueryRow(t.Context(), leftSQL).Scan(&left); err != nil {
		t.Fatal(err)
	}
	pgtest.Shift(t, db, left)
}

func TestDesk_ARateHoldsForEachKeyOverAllReplicas(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	alignMinute(t, g.db)
	slow, quick := g.shopKey(), g.shopKey()
	slow.PerMinute = 2
	quick.Name, quick.SHA256 = "quick", sha256.Sum256([]byte("another"))
	replicas := []string{g.desk(t, nil, slow, quick), g.desk(t, nil, slow, quick)}
	body := string(encode(t, g.body(payment.V2, g.authorize(t, nil), nil)))
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests, http.StatusTooManyRequests} {
		a := askAs(t, replicas[i%2]+"/verify", "Bearer "+token, body)
		if a.status != want || a.IsValid != (want == http.StatusOK) {
			t.Errorf("request %d: %d %s, want %d", i+1, a.status, a.raw, want)
		}
		if want == http.StatusOK {
			continue
		}
		wait, err := strconv.Atoi(a.header.Get("Retry-After"))
		if a.code() != "market_rate_limited" || err != nil || wait < 1 || wait > 60 {
			t.Errorf("request %d: %s, Retry-After %q, want market_rate_limited and the rest of a minute", i+1, a.raw, a.header.Get("Retry-After"))
		}
	}
	if a := askAs(t, replicas[0]+"/verify", "Bearer another", body); !a.IsValid {
		t.Errorf("another key: %d %s, want a yes", a.status, a.raw)
	}
	pgtest.Shift(t, g.db, time.Minute)
	if a := askAs(t, replicas[0]+"/verify", "Bearer "+token, body); !a.IsValid {
		t.Errorf("a minute later: %d %s, want a yes", a.status, a.raw)
	}
}

func TestRates_Take_OfManyAtOnceNoMoreThanTheLimitGetThrough(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	alignMinute(t, db)
	k := Key{Name: "shop", PerMinute: 10}
	var through atomic.Int64
	var wg sync.WaitGroup
	for range 3 * k.PerMinute {
		wg.Go(func() {
			wait, within, err := Rates{}.Take(t.Context(), db, k)
			if err != nil || wait < time.Second || wait > time.Minute {
				t.Errorf("take: wait %v, %v", wait, err)
			}
			if within {
				through.Add(1)
			}
		})
	}
	wg.Wait()
	if got := through.Load(); got != int64(k.PerMinute) {
		t.Errorf("%d requests got through, want %d", got, k.PerMinute)
	}
	var counted int
	if err := db.QueryRow(t.Context(), `SELECT requests FROM facilitator_rates`).Scan(&counted); err != nil {
		t.Fatal(err)
	}
	if counted != k.PerMinute+1 {
		t.Errorf("%d are counted, want the limit and one", counted)
	}
}

// A clock that is set back does not open a new window.
func TestRates_Take_AnOlderMinuteIsTheNewestOne(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	alignMinute(t, db)
	k := Key{Name: "shop", PerMinute: 1}
	for i, step := range []struct {
		shift time.Duration
		want  bool
	}{{0, true}, {0, false}, {-time.Minute, false}, {2 * time.Minute, true}} {
		pgtest.Shift(t, db, step.shift)
		wait, within, err := Rates{}.Take(t.Context(), db, k)
		if err != nil || within != step.want || wait > time.Minute {
			t.Errorf("step %d: within %v, wait %v, %v, want %v", i, within, wait, err, step.want)
		}
	}
}
