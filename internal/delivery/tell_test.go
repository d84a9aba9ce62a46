package delivery

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/audit"
	"market/internal/catalog"
	"market/internal/letter"
	"market/internal/money"
	"market/internal/payout"
	"market/internal/postgres/pgtest"
)

// letters returns what the provider of the service was told, the oldest first.
func (s shelf) letters(t *testing.T) []letter.Logged {
	t.Helper()
	all, err := letter.Store{}.List(t.Context(), s.db, s.service.ID, uuid.UUID{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

func kindsOf(all []letter.Logged) (kinds []letter.Kind) {
	for _, l := range all {
		kinds = append(kinds, l.Kind)
	}
	return kinds
}

func (s shelf) wantTold(t *testing.T, when string, want ...letter.Kind) []letter.Logged {
	t.Helper()
	all := s.letters(t)
	if got := kindsOf(all); !slices.Equal(got, want) {
		t.Errorf("%s the provider was told %q, want %q", when, got, want)
	}
	return all
}

// contact has the listing name both channels.
func (s shelf) contact(t *testing.T) {
	t.Helper()
	const contactSQL = `UPDATE services SET notice_email = 'ops@weather.example', notice_webhook = 'https://weather.example/hook' WHERE id = $1`
	if _, err := s.db.Exec(t.Context(), contactSQL, s.service.ID); err != nil {
		t.Fatal(err)
	}
}

func TestRecorder_Strike_TellsEachStrikeAndThenTheDelisting(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.contact(t)
	s.incidents(t, policy.Limit)
	told := s.wantTold(t, "after three failures", letter.StrikeOpened, letter.StrikeOpened, letter.StrikeOpened, letter.ServiceDelisted)
	if t.Failed() {
		return
	}
	strikes := s.rows(t)
	for i, want := range []string{"the next failure is strike 2 of 3", "the next failure delists it: strike 3 of 3", "it is delisted and gets no calls"} {
		f := told[i].Facts
		if f.Strikes == nil || f.Strikes.Open != i+1 || f.Strikes.Limit != 3 || f.Next != want {
			t.Errorf("strike %d: %+v, next %q, want %q", i+1, f.Strikes, f.Next, want)
		}
		if f.Strike == nil || f.Strike.ID != strikes[i].ID || len(f.Strike.Evidence) != 1 {
			t.Errorf("strike %d proves itself by %+v", i+1, f.Strike)
			continue
		}
		if e := f.Strike.Evidence[0]; e.Source != "192.0.2.0/24" || e.Payer != "0xCA00000000000000000000000000000000000000" || e.Reason != "upstream_5xx" || e.Detail != "status 500" || f.Reason != "status 500" {
			t.Errorf("strike %d: evidence %+v, reason %q", i+1, e, f.Reason)
		}
	}
	if f := told[3].Facts; f.State != "delisted" || f.Reason != "3 strikes within 24 h" || f.By != "recorder" || f.Strike == nil || f.Strike.ID != strikes[2].ID {
		t.Errorf("the delisting is told as %+v", f)
	}
	for _, l := range told {
		if len(l.Sendings) != 2 || l.Sendings[0].Channel != letter.Email || l.Sendings[1].Channel != letter.Webhook {
			t.Errorf("%s goes by %+v, want both channels", l.Kind, l.Sendings)
		}
	}
}

func TestRecorder_Strike_WhatJoinsAStrikeTellsNothing(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first, second := s.asked(t).failed(), s.asked(t).failed()
	s.record(t, first)
	s.record(t, second)
	told := s.wantTold(t, "after one incident", letter.StrikeOpened)
	if len(told) == 1 && len(told[0].Sendings) != 0 {
		t.Errorf("a listing that names nobody is told by %+v", told[0].Sendings)
	}
}

func TestRecorder_Record_WhereItIsRolledBackNobodyIsTold(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.contact(t)
	d := s.asked(t).failed()
	if _, err := s.db.Exec(t.Context(), `ALTER TABLE provider_deliveries RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	before := s.world(t)
	if err := s.recorder.Record(t.Context(), d); err == nil {
		t.Error("a failure is recorded without being told")
	}
	s.want(t, "what cannot be told", before)
	if _, err := s.db.Exec(t.Context(), `ALTER TABLE gone RENAME TO provider_deliveries`); err != nil {
		t.Fatal(err)
	}
	errQueue := errors.New("queue is full")
	if err := NewRecorder(s.db, noJobs{errQueue}, policy, rest, time.Hour).Record(t.Context(), d); !errors.Is(err, errQueue) {
		t.Fatalf("record says %v, want %v", err, errQueue)
	}
	s.wantTold(t, "what was not recorded")
}

func TestReview_TellsWhatWasFoundAndWhereTheServiceWent(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	pgtest.Shift(t, s.db, rest)
	before := len(s.letters(t))
	since := func(when string, want ...letter.Kind) []letter.Logged {
		t.Helper()
		all := s.letters(t)
		if len(all) < before {
			t.Fatalf("%s: letters are gone", when)
		}
		fresh := all[before:]
		before = len(all)
		if got := kindsOf(fresh); !slices.Equal(got, want) {
			t.Errorf("%s: told %q, want %q", when, got, want)
		}
		return fresh
	}
	strikes := s.rows(t)
	if _, err := s.review().Uphold(t.Context(), strikes[0].ID, catalog.AdminToken, "it failed"); err != nil {
		t.Fatal(err)
	}
	since("an upheld strike", letter.StrikeUpheld)
	s.void(t, strikes[2].ID)
	for _, l := range since("a void of the deciding strike", letter.StrikeVoided, letter.ServiceRelisted) {
		if l.Facts.State != "listed" || l.Facts.Strikes.Open != 2 || l.Facts.Strike == nil || l.Facts.Strike.State != "voided" || l.Facts.By != "admin token" {
			t.Errorf("%s: %+v", l.Kind, l.Facts)
		}
	}
	s.fail(t)
	since("the third that counts", letter.StrikeOpened, letter.ServiceDelisted)
	s.relist(t)
	since("a relisting", letter.ServiceRelisted)
	if _, _, err := s.review().Suspend(t.Context(), s.service.Slug, Order{By: catalog.AdminToken, Reason: "a look"}); err != nil {
		t.Fatal(err)
	}
	if told := since("a suspension", letter.ServiceSuspended); len(told) == 1 && told[0].Facts.Reason != "a look" {
		t.Errorf("it is suspended for %q", told[0].Facts.Reason)
	}
}

func TestHolder_TellsTheProviderOfAHold(t *testing.T) {
	t.Parallel()
	s := newHeldShelf(t)
	s.rejects(t, 20, 3)
	if !s.holds(t) {
		t.Fatal("it is not held")
	}
	told := s.wantTold(t, "when it is held", letter.ServiceHeld)
	if len(told) == 1 && (told[0].Facts.Strikes != nil || told[0].Facts.State != "held" || told[0].Facts.Reason == "") {
		t.Errorf("it is told as %+v", told[0].Facts)
	}
}

// Every change of a state is told by the state that it led to, and every decision about a strike by what was found.
func TestToldOf_EveryActionAndEveryStateTellsSomething(t *testing.T) {
	t.Parallel()
	seen := map[letter.Kind]bool{letter.StrikeOpened: true, // by a failure alone
		letter.PayoutPaid: true, letter.PayoutParked: true, letter.PayoutAddress: true} // of the account
	for _, action := range audit.Actions() {
		for _, of := range audit.Kinds() {
			for _, after := range catalog.States() {
				for _, before := range catalog.States() {
					kinds := toldOf(action, of, before, after)
					for _, k := range kinds {
						seen[k] = true
					}
					if before != after && after != catalog.Retired && !slices.Contains(kinds, cameTo(after)[0]) {
						t.Errorf("%s that leads from %s to %s tells %q", action, before, after, kinds)
					}
					if stays := before == after && (action == audit.Void || action == audit.Uphold); stays && len(kinds) != 1 {
						t.Errorf("%s of a %s that moves nothing tells %q", action, of, kinds)
					}
				}
			}
		}
	}
	if len(seen) != len(letter.Kinds()) {
		t.Errorf("told are %s, and there are %s", fmt.Sprint(seen), letter.Kinds())
	}
}

// Whoever has the account is told at each place that its listings name, once.
func TestPayoutTeller_WritesOnceToEachPlaceOfTheAccount(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.contact(t)
	owner := uuid.Must(uuid.NewV7())
	const ownedSQL = `
WITH a AS (INSERT INTO accounts (id, wallet) VALUES ($1, decode(repeat('ab', 20), 'hex')) RETURNING id)
UPDATE services SET owner_id = a.id FROM a`
	const twinSQL = `
INSERT INTO services SELECT (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(), 'slug', $1::text, 'notice_email', $2::text,
       'created_at', s.created_at + interval '1 day'))).* FROM services s WHERE s.id = $3`
	if _, err := s.db.Exec(t.Context(), ownedSQL, owner); err != nil {
		t.Fatal(err)
	}
	for slug, email := range map[string]string{"twin": "ops@weather.example", "other": "else@weather.example"} {
		if _, err := s.db.Exec(t.Context(), twinSQL, slug, email, s.service.ID); err != nil {
			t.Fatal(err)
		}
	}
	tell := PayoutTeller(nil)
	p := payout.Payout{ID: uuid.Must(uuid.NewV7()), Purse: payout.Purse{Account: owner, Network: "eip155:1"}, Number: 7, Amount: money.FromUnits(9750), State: payout.StateParked, Why: "the token refused it"}
	for _, state := range []payout.State{payout.StateParked, payout.StateConfirmed} {
		p.State = state
		if err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error { return tell(t.Context(), tx, p) }); err != nil {
			t.Fatal(err)
		}
	}
	waits := payout.Address{Network: "eip155:1", Now: common.Address{1}, Next: common.Address{2}, NextAt: time.Unix(1_800_000_000, 0)}
	if err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error { return TellAddress(t.Context(), tx, owner, waits, provider) }); err != nil {
		t.Fatal(err)
	}
	type row struct {
		Kind  letter.Kind
		Email string
		N     int
	}
	rows, err := s.db.Query(t.Context(), `SELECT n.kind, s.notice_email, count(*)::int FROM provider_notices n JOIN services s ON s.id = n.service_id GROUP BY 1, 2 ORDER BY 1, 2`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	want := []row{}
	for _, kind := range []letter.Kind{letter.PayoutAddress, letter.PayoutPaid, letter.PayoutParked} {
		want = append(want, row{kind, "else@weather.example", 1}, row{kind, "ops@weather.example", 1})
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("told is %v, %v; want %v", got, err, want)
	}
}
