package notify

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/notify/notifytest"
	"market/internal/postgres/pgtest"
	"market/internal/source"
)

// A relay is a mail server that is metered as ours is.
type relay struct {
	server *notifytest.SMTP
	meter  *source.Meter
	mailer *Mailer
}

func newRelay(t *testing.T, db *pgxpool.Pool, from string) *relay {
	t.Helper()
	r := &relay{server: notifytest.NewSMTP(t, notifytest.StartTLS)}
	pgtest.Freeze(t, db)
	r.meter = source.New(db, time.Now, []source.Source{{Name: source.Mail, Kind: source.KindMail, Metered: true, RunsOut: source.Rate, RetryWindow: time.Hour,
		Guard: source.Guard{Floor: 200, SurgePercent: 300}}}, source.Hooks{OnError: func(err error) { t.Error(err) }}).Of(source.Mail)
	var err error
	r.mailer, err = NewMailer(MailOptions{Host: "127.0.0.1", Port: r.server.Port(), TLS: STARTTLS, Roots: r.server.Roots(), User: notifytest.User,
		Password: notifytest.Password, From: from, To: []string{"operator@example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// send sends one mail, and returns why the relay may not be asked afterwards.
func (r *relay) send(t *testing.T, class source.Class, to ...string) error {
	t.Helper()
	way := WayBy(r.meter, class, r.mailer)
	report, err := way.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failure, ok := errors.AsType[*Failure](way.Channel.Send(t.Context(), Message{ID: "msg_7", To: to, Subject: "s", Text: "t"}))
	if !ok {
		t.Fatal("the mail was taken")
	}
	report(t.Context(), failure)
	return r.meter.Ready()
}

// A provider chooses the address of its letters, and an operator has the domain that it has: neither is a word of the relay's about a limit.
func TestWayBy_WordsOfAnAddressDoNotTakeTheRelayOut(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, tt := range map[string]struct{ from, to, command, answer string }{
		"the library adds the recipient":      {"market@example.com", "daily-quota@example.net", "RCPT", "550 no such user here"},
		"the server repeats the recipient":    {"market@example.com", "daily-quota@example.net", ".", "550 <Daily-Quota@example.net> is not known here"},
		"the server names its domain":         {"market@example.com", "ops@daily-quota.example", ".", "554 no way to mx1.daily-quota.example"},
		"the server writes it in another way": {"market@example.com", "ops@quota-ü.example", ".", "554 ops@xn--quota--4ya.example is refused"},
		"the library adds our message id":     {"market@quota.example", "ops@example.net", ".", "451 local error"},
		"the server repeats who it is from":   {"daily@quota.example", "ops@example.net", "MAIL", "550 <daily@quota.example> does not resolve"},
	} {
		for _, class := range []source.Class{source.Other, source.Refund} {
			r := newRelay(t, db, tt.from)
			r.server.Answer(tt.command, tt.answer)
			if err := r.send(t, class, tt.to); err != nil {
				t.Errorf("%s, class %s: %v", name, class, err)
			}
		}
	}
}

func TestWayBy_WhatTheRelaySaysOfItsLimitTakesItOut(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"MAIL", "."} {
		r := newRelay(t, pgtest.New(t), "market@quota.example")
		r.server.Answer(command, "550 5.4.5 Daily user sending limit exceeded for ops@example.net")
		if err := r.send(t, source.Other, "ops@example.net"); err == nil {
			t.Errorf("%s: the relay may be asked again at once", command)
		}
	}
}

// A server of the provider's that a relay asks as it goes can say anything at the recipient. At the operator's own address nobody can but the relay.
func TestWayBy_OfALetterARefusalAtItsRecipientIsNoWordAboutTheRelay(t *testing.T) {
	t.Parallel()
	for class, out := range map[source.Class]bool{source.Other: false, source.Refund: true} {
		r := newRelay(t, pgtest.New(t), "market@example.com")
		r.server.Answer("RCPT", "452 daily quota exceeded")
		if err := r.send(t, class, "ops@example.net"); (err != nil) != out {
			t.Errorf("class %s: %v", class, err)
		}
	}
}
