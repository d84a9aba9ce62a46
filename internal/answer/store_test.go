package answer

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres/pgtest"
	"market/internal/secretbox"
)

// A shelf is a database with one listed service, and market time that stands still.
type shelf struct {
	db      *pgxpool.Pool
	service catalog.Service
	store   Store
}

// retention is how long the answers of these tests are kept.
const retention = 24 * time.Hour

func newShelf(t *testing.T) shelf {
	t.Helper()
	s := shelf{db: pgtest.New(t), store: NewStore(secretbox.RandomBox())}
	pgtest.Freeze(t, s.db)
	draft, err := catalog.ParseDraft([]byte(`{"slug":"weather","name":"Weather","base_url":"https://api.weather.example",
		"probe":{"path":"/healthz","statuses":["200"]},"endpoints":[{"method":"GET","path":"/","price_usd":"0.01"}]}`), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) (err error) {
		s.service, err = catalog.Store{}.Create(t.Context(), tx, draft)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call claims a payment that nobody has made before.
func (s shelf) call(t *testing.T) call.ID {
	t.Helper()
	endpoint := s.service.Endpoints[0]
	c := payment.Claim{
		ID: call.NewID(), Network: "eip155:84532",
		Signed:  chain.Signed{Signature: anySignature(t), Authorization: chain.Authorization{From: payer, Value: money.FromUnits(1), ValidBefore: 1}},
		Service: s.service.ID, Endpoint: endpoint.ID, PriceRevision: endpoint.Prices[0].Revision,
		Method: "GET", Path: "/", Source: home, Origin: call.External, Owner: uuid.Must(uuid.NewV7()), Lease: time.Minute,
	}
	_, _ = rand.Read(c.Signed.Nonce[:]) // never fails
	id, claimed, err := payment.Store{}.Claim(t.Context(), s.db, c)
	if err != nil || !claimed {
		t.Fatalf("claimed = %v, %v", claimed, err)
	}
	return id
}

// The insert stands in the recorder's statement; this is its part of it.
const keepSQL = `
INSERT INTO answers (call_id, status, sealed, identifier, source, expires_at)
VALUES ($1, $2, $3, nullif($4, ''), $5, market_now() + $6::interval)`

func (s shelf) keep(t *testing.T, a Answer, identifier string, source netip.Addr) call.ID {
	t.Helper()
	id := s.call(t)
	sealed, err := s.store.Seal(id, a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec(t.Context(), keepSQL, id, a.Status, sealed, identifier, source, retention); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestStore_Find_BringsWhatWasKept(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	want := Answer{Status: 404, Header: map[string][]string{"Content-Type": {"text/plain"}}, Body: []byte("no such town")}
	for title, kept := range map[string]struct {
		identifier string
		source     netip.Addr
	}{
		"with a name": {name, home}, "without": {"", home}, "from IPv6": {name, netip.MustParseAddr("2001:db8::1")},
	} {
		id := s.keep(t, want, kept.identifier, kept.source)
		pgtest.Shift(t, s.db, time.Minute)
		k, err := s.store.Find(t.Context(), s.db, id)
		if err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		if got := k.Facts(payer); got != (Facts{Payer: payer, Identifier: kept.identifier, Source: kept.source, Age: time.Minute}) {
			t.Errorf("%s: facts = %+v", title, got)
		}
		got, err := s.store.Open(k)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s: Open: %v (-want +got):\n%s", title, err, diff)
		}
	}
	if _, err := s.store.Find(t.Context(), s.db, s.call(t)); !errors.Is(err, ErrNone) {
		t.Errorf("a call without an answer: %v, want ErrNone", err)
	}
}

func TestStore_Find_EndsExactlyAtRetention(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	id := s.keep(t, Answer{Status: 200}, "", home)
	for _, step := range []struct {
		shift time.Duration
		want  error
	}{{retention - time.Microsecond, nil}, {time.Microsecond, ErrExpired}, {time.Microsecond, ErrExpired}} {
		pgtest.Shift(t, s.db, step.shift)
		k, err := s.store.Find(t.Context(), s.db, id)
		if !errors.Is(err, step.want) || (err != nil && k.Sealed != nil) {
			t.Errorf("Find = %+v, %v, want %v", k, err, step.want)
		}
	}
}

func TestStore_DeleteExpired_DeletesNothingElse(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	old := []call.ID{s.keep(t, Answer{Status: 200}, "", home), s.keep(t, Answer{Status: 200}, "", home), s.keep(t, Answer{Status: 200}, "", home)}
	pgtest.Shift(t, s.db, time.Microsecond)
	young := s.keep(t, Answer{Status: 200}, "", home)
	pgtest.Shift(t, s.db, retention-time.Microsecond)
	for _, want := range []int{2, 1, 0} {
		if n, err := s.store.DeleteExpired(t.Context(), s.db, 2); err != nil || n != want {
			t.Errorf("deleted %d, %v, want %d", n, err, want)
		}
	}
	for _, id := range old {
		if _, err := s.store.Find(t.Context(), s.db, id); !errors.Is(err, ErrNone) {
			t.Errorf("an expired one: %v, want ErrNone", err)
		}
	}
	if _, err := s.store.Find(t.Context(), s.db, young); err != nil {
		t.Errorf("the younger one: %v", err)
	}
}

func TestAnswers_TheTableTakesNoOtherIdentifier(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for _, identifier := range []string{"short", name + "!", name + "\n"} {
		if _, err := s.db.Exec(t.Context(), keepSQL, s.call(t), 200, []byte{1}, identifier, home, retention); err == nil {
			t.Errorf("%q was kept", identifier)
		}
	}
}

// anySignature is one that a key could have given, over what nobody looks at.
func anySignature(t *testing.T) chain.Signature {
	t.Helper()
	s, err := chain.ParseSignature(append(bytes.Repeat([]byte{1}, 64), 27))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
