package letter

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/postgres"
	"market/internal/postgres/pgtest"
	"market/internal/source"
)

func TestWorker_SendsInTheOrderOfWhatHappened(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	ids := p.write(t, []Channel{Webhook}, StrikeOpened, StrikeOpened, ServiceDelisted)
	p.run(t)
	want := []string{carriedBy(Webhook, ids[0]), carriedBy(Webhook, ids[1]), carriedBy(Webhook, ids[2])}
	if !slices.Equal(p.carried, want) {
		t.Errorf("carried %q, want %q", p.carried, want)
	}
	if s := p.by(t, ids[0], Webhook); s.SentAt.IsZero() || s.Attempts != 1 || s.Status != 200 || s.Error != "" || !s.NextAt.IsZero() {
		t.Errorf("it is kept as %+v", s)
	}
	p.run(t)
	if len(p.carried) != 3 {
		t.Errorf("what was sent is sent again: %q", p.carried)
	}
}

// A receiver that is gone is asked over a day, each time under the same id, and then no more.
func TestWorker_TriesOverADayAndThenGivesUp(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.carry = hangsUp
	id := p.write(t, []Channel{Webhook}, StrikeOpened)[0]
	begun := p.log(t)[0].At
	for i, wait := range waits {
		p.run(t)
		if s := p.by(t, id, Webhook); s.Attempts != i+1 || s.Error != errHangsUp.Error() || !s.GivenUp.IsZero() {
			t.Fatalf("after attempt %d: %+v", i+1, s)
		}
		pgtest.Shift(t, p.db, wait-time.Microsecond)
		p.run(t)
		if len(p.carried) != i+1 {
			t.Fatalf("%d attempts before the wait of %s is over", len(p.carried), wait)
		}
		pgtest.Shift(t, p.db, time.Microsecond)
	}
	p.run(t)
	s := p.by(t, id, Webhook)
	if over := s.GivenUp.Sub(begun); s.Attempts != 8 || over != 23*time.Hour+36*time.Minute {
		t.Errorf("given up after %d attempts over %s: %+v", s.Attempts, over, s)
	}
	pgtest.Shift(t, p.db, 48*time.Hour)
	p.run(t)
	if one := []string{carriedBy(Webhook, id)}; len(p.carried) != 8 || len(slices.Compact(p.carried)) != 1 || p.carried[0] != one[0] {
		t.Errorf("carried %q, want eight times the same", p.carried)
	}
}

// The message left, and the program died before it wrote that down.
func TestWorker_KilledBetweenSendAndMark_IsSentAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	id := p.write(t, []Channel{Webhook}, StrikeOpened)[0]
	p.carry = func(Channel) (int, error) { panic("killed") }
	func() {
		defer func() { _ = recover() }()
		p.run(t)
	}()
	p.carry = nil
	p.run(t)
	if len(p.carried) != 1 {
		t.Fatalf("carried %q before the lease of the dead has run out", p.carried)
	}
	pgtest.Shift(t, p.db, lease)
	p.run(t)
	if want := carriedBy(Webhook, id); !slices.Equal(p.carried, []string{want, want}) {
		t.Errorf("carried %q, want twice %q", p.carried, want)
	}
	if s := p.by(t, id, Webhook); s.SentAt.IsZero() || s.Attempts != 2 {
		t.Errorf("it is kept as %+v", s)
	}
}

// A message that kills whoever sends it is not tried for ever.
func TestWorker_WhatNeverComesToAnEndIsGivenUp(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	id := p.write(t, []Channel{Webhook}, StrikeOpened)[0]
	p.carry = func(Channel) (int, error) { panic("killed") }
	for range attemptsMax + 3 {
		func() {
			defer func() { _ = recover() }()
			p.run(t)
		}()
		pgtest.Shift(t, p.db, lease)
	}
	if s := p.by(t, id, Webhook); len(p.carried) != attemptsMax || s.GivenUp.IsZero() || s.Error != errStopped.Error() {
		t.Errorf("carried %d times; it is kept as %+v", len(p.carried), s)
	}
}

// One statement: dropping the lock from it gives the same letter to both.
func TestStore_Claim_OfTwoAtOnceNoneGetsWhatTheOtherHas(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	kinds := slices.Repeat([]Kind{StrikeOpened}, 20)
	p.write(t, []Channel{Webhook}, kinds...)
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		had []uuid.UUID
	)
	for range 8 {
		wg.Go(func() {
			for {
				c, found, err := Store{}.claim(t.Context(), p.db, Box{p.service, Webhook})
				if err != nil {
					t.Error(err)
				}
				if err != nil || !found {
					return
				}
				mu.Lock()
				had = append(had, c.ID)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.SortFunc(had, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
	if n := len(slices.Compact(slices.Clone(had))); len(had) != n || n == 0 {
		t.Errorf("%d claims of %d letters", len(had), n)
	}
}

// The relay has had enough: whatever waits for it waits together and loses no attempt, and the webhooks go on.
func TestWorker_ALimitPutsOffEverythingByThatChannelAlone(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	ids := p.write(t, both, StrikeOpened, StrikeOpened)
	now, err := postgres.MarketNow(t.Context(), p.db)
	if err != nil {
		t.Fatal(err)
	}
	until := now.Add(time.Hour)
	p.carry = func(by Channel) (int, error) {
		if by == Email {
			return 0, &source.LimitError{Source: source.Mail, Why: source.Exhausted, Until: until}
		}
		return 204, nil
	}
	p.run(t)
	for _, id := range ids {
		if s := p.by(t, id, Email); !s.NextAt.Equal(until) || s.Attempts != 0 || s.Error != "" {
			t.Errorf("the mail is kept as %+v, want it at %s", s, until)
		}
		if s := p.by(t, id, Webhook); s.SentAt.IsZero() {
			t.Errorf("the webhook is kept as %+v", s)
		}
	}
	if asked := slices.DeleteFunc(slices.Clone(p.carried), func(s string) bool { return s[:5] != "email" }); len(asked) != 1 {
		t.Errorf("the relay was asked %q, want once", asked)
	}
	p.carry = nil
	if err := (Store{}).Release(t.Context(), p.db, Email); err != nil {
		t.Fatal(err)
	}
	p.run(t)
	for _, id := range ids {
		if s := p.by(t, id, Email); s.SentAt.IsZero() || s.Attempts != 1 {
			t.Errorf("after the relay is back: %+v", s)
		}
	}
}

func TestWorker_ALimitThatIsMetWhileALetterIsSentAgainByHandPutsItOff(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	id := p.write(t, []Channel{Email}, StrikeOpened)[0]
	p.carry = hangsUp
	p.run(t)
	pgtest.Shift(t, p.db, waits[0])
	now, err := postgres.MarketNow(t.Context(), p.db)
	if err != nil {
		t.Fatal(err)
	}
	until := now.Add(time.Hour)
	p.carry = func(Channel) (int, error) {
		if _, err := (Store{}).Again(t.Context(), p.db, p.service, id); err != nil {
			t.Error(err)
		}
		return 0, &source.LimitError{Source: source.Mail, Why: source.Exhausted, Until: until}
	}
	p.run(t)
	if s := p.by(t, id, Email); !s.NextAt.Equal(until) || s.Attempts != 1 {
		t.Errorf("it is kept as %+v, want it at %s after one attempt", s, until)
	}
}

// While one attempt runs, another letter meets a limit and puts all off.
func TestWorker_AFailureWaitsForItsOwnTimeAlsoWhereTheSourceIsBack(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	id := p.write(t, []Channel{Email}, StrikeOpened)[0]
	now, err := postgres.MarketNow(t.Context(), p.db)
	if err != nil {
		t.Fatal(err)
	}
	p.carry = func(Channel) (int, error) {
		other := claimed{Letter: Letter{ID: uuid.New()}, box: Box{p.service, Email}}
		if err := (Store{}).putOff(t.Context(), p.db, other, now.Add(time.Hour)); err != nil {
			t.Error(err)
		}
		return 0, errHangsUp
	}
	p.run(t)
	if err := (Store{}).Release(t.Context(), p.db, Email); err != nil {
		t.Fatal(err)
	}
	if s := p.by(t, id, Email); !s.NextAt.Equal(now.Add(waits[0])) {
		t.Errorf("it is tried again at %s, want %s", s.NextAt, now.Add(waits[0]))
	}
}

func TestWorker_AListingThatNamesNobodyAnyMoreIsGivenUpAtOnce(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	id := p.write(t, []Channel{Webhook}, StrikeOpened)[0]
	p.contact.Webhook = ""
	p.run(t)
	if s := p.by(t, id, Webhook); len(p.carried) != 0 || s.GivenUp.IsZero() || s.Error != errNobody.Error() {
		t.Errorf("carried %q; it is kept as %+v", p.carried, s)
	}
}

// B155: what arrived is not sent again, and what is sent again has the id that it had.
func TestStore_Again_SendsTheFailedChannelAloneUnderTheSameID(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	id := p.write(t, both, ServiceDelisted)[0]
	again := func() error { _, err := Store{}.Again(t.Context(), p.db, p.service, id); return err }
	if err := again(); !errors.Is(err, ErrNothingFailed) {
		t.Errorf("what was not tried yet: %v", err)
	}
	p.carry = func(by Channel) (int, error) {
		if by == Webhook {
			return 500, errHangsUp
		}
		return 0, nil
	}
	for range 8 { // until it is given up
		p.run(t)
		pgtest.Shift(t, p.db, 24*time.Hour)
	}
	if s := p.by(t, id, Webhook); s.GivenUp.IsZero() || s.Status != 500 {
		t.Fatalf("it is not given up: %+v", s)
	}
	p.carried, p.carry = nil, hangsUp
	if err := again(); err != nil {
		t.Fatal(err)
	}
	p.run(t)
	if s := p.by(t, id, Webhook); s.Attempts != 9 || !s.GivenUp.IsZero() || s.NextAt.IsZero() {
		t.Errorf("a failure after that is kept as %+v, want the waits anew", s)
	}
	p.carry = nil
	if err := again(); err != nil { // while it waits
		t.Fatal(err)
	}
	p.run(t)
	if want := carriedBy(Webhook, id); !slices.Equal(p.carried, []string{want, want}) {
		t.Errorf("carried %q, want twice %q", p.carried, want)
	}
	if err := again(); !errors.Is(err, ErrNothingFailed) {
		t.Errorf("when all have it: %v", err)
	}
	if _, err := (Store{}).Again(t.Context(), p.db, uuid.New(), id); !errors.Is(err, ErrNone) {
		t.Errorf("a letter of another service: %v", err)
	}
}

func TestStore_List_PageByPage(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	ids := p.write(t, nil, StrikeOpened, StrikeVoided, ServiceRelisted)
	first, err := Store{}.List(t.Context(), p.db, p.service, uuid.UUID{}, 2)
	if err != nil || len(first) != 2 || first[0].ID != ids[2] || first[1].ID != ids[1] {
		t.Fatalf("the first page: %v, %v", first, err)
	}
	rest, err := Store{}.List(t.Context(), p.db, p.service, first[1].ID, 2)
	if err != nil || len(rest) != 1 || rest[0].ID != ids[0] || len(rest[0].Sendings) != 0 {
		t.Errorf("the second page: %v, %v", rest, err)
	}
}
