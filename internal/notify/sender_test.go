package notify

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/notify/notifytest"
	"market/internal/postgres/pgtest"
	"market/internal/source"
)

// An office is an operator with a mail server and a webhook, and what takes notices there.
type office struct {
	db     *pgxpool.Pool
	mail   *notifytest.SMTP
	hook   *notifytest.Receiver
	sender *Sender
	limits map[string]*source.LimitError // of channels that may not be used
}

func newOffice(t *testing.T, channels ...string) *office {
	t.Helper()
	o := &office{db: pgtest.New(t), mail: notifytest.NewSMTP(t, notifytest.StartTLS), hook: notifytest.NewReceiver(t, notifytest.Secret), limits: map[string]*source.LimitError{}}
	mailer, err := NewMailer(MailOptions{Host: "127.0.0.1", Port: o.mail.Port(), TLS: STARTTLS, Roots: o.mail.Roots(), User: notifytest.User,
		Password: notifytest.Password, From: "market@example.com", To: []string{"operator@example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	webhook, err := NewWebhook(o.hook.URL(), []string{notifytest.Secret}, o.hook.Client())
	if err != nil {
		t.Fatal(err)
	}
	var ways []Way
	for _, name := range channels {
		way := Way{Name: name, Channel: map[string]Channel{"mail": mailer, "webhook": webhook}[name]}
		way.Reserve = func(context.Context) (func(context.Context, *Failure), error) {
			if limit := o.limits[name]; limit != nil {
				return nil, limit
			}
			return func(context.Context, *Failure) {}, nil
		}
		ways = append(ways, way)
	}
	o.sender = NewSender(o.db, SenderOptions{Ways: ways, PublicURL: "https://market.example", Report: func(error, Kind, string) {}})
	return o
}

// work does what the jobs do until nothing is due, and returns how many messages it handed out.
func (o *office) work(t *testing.T) (handed int) {
	t.Helper()
	for range 20 {
		var all []due
		err := o.sender.takeDue(t.Context(), dueMax, func(_ pgx.Tx, due []due) error { all = due; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 0 {
			return handed
		}
		for _, d := range all {
			handed++
			if err := o.sender.send(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Fatal("something is always due")
	return 0
}

func (o *office) raise(t *testing.T, kind Kind, subject string) {
	t.Helper()
	if _, err := (Store{}).Raise(t.Context(), o.db, kind, subject, Outage{What: "the thing " + subject + " stopped", Effect: "nothing can be bought", Look: "/admin/sources"}); err != nil {
		t.Fatal(err)
	}
}

func (o *office) settle(t *testing.T, kind Kind, subject string) {
	t.Helper()
	if _, err := (Store{}).Settle(t.Context(), o.db, kind, subject); err != nil {
		t.Fatal(err)
	}
}

// wantMails checks the subjects of all mails.
func (o *office) wantMails(t *testing.T, when string, want ...string) {
	t.Helper()
	var got []string
	for _, m := range o.mail.Mails() {
		got = append(got, strings.TrimPrefix(m.Header.Get("Subject"), "[market] "))
	}
	if strings.Join(got, " | ") != strings.Join(want, " | ") {
		t.Errorf("%s: mails %q, want %q", when, got, want)
	}
}

// wantHooks checks the types of all webhooks, with their kinds.
func (o *office) wantHooks(t *testing.T, when string, want ...string) {
	t.Helper()
	var got []string
	for _, d := range o.hook.Deliveries() {
		got = append(got, d.Type)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s: webhooks %v, want %v", when, got, want)
	}
}

// shutMail makes the mail server refuse everybody.
func (o *office) shutMail(shut bool) {
	o.mail.Answer("MAIL", map[bool]string{true: "451 4.3.0 not now", false: ""}[shut])
}

func TestSender_OneNoticeAndOneRecoveryByMail(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail", "webhook")
	o.raise(t, OwnOutage, "fleet")
	o.raise(t, OwnOutage, "fleet")
	o.work(t)
	o.wantMails(t, "raised", "The thing fleet stopped")
	text := o.mail.Mails()[0].Body
	for _, want := range []string{"The thing fleet stopped.", "What that means: Nothing can be bought.", "Noticed: 2", "https://market.example/admin/sources",
		"stays queued", "The next notice of it comes only after it has worked again."} {
		if !strings.Contains(text, want) {
			t.Errorf("the mail does not say %q:\n%s", want, text)
		}
	}
	o.settle(t, OwnOutage, "fleet")
	o.work(t)
	pgtest.Shift(t, o.db, CalmFor-time.Second)
	o.work(t)
	o.wantMails(t, "calm for less than five minutes", "The thing fleet stopped")
	pgtest.Shift(t, o.db, 2*time.Second)
	o.work(t)
	o.wantMails(t, "calm for five minutes", "The thing fleet stopped", "over: The thing fleet stopped")
	pgtest.Shift(t, o.db, 24*time.Hour)
	o.work(t)
	o.raise(t, OwnOutage, "fleet")
	o.work(t)
	o.wantMails(t, "again", "The thing fleet stopped", "over: The thing fleet stopped", "The thing fleet stopped")
	o.wantHooks(t, "mail works")
}

// Of a trouble that comes and goes each second the operator gets one notice, and one recovery once it has stopped.
func TestSender_WhatFlapsEachSecondIsToldOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail")
	for range 40 {
		o.raise(t, SourceOut, "facilitator/acme")
		pgtest.Shift(t, o.db, 10*time.Second)
		o.work(t)
		o.settle(t, SourceOut, "facilitator/acme")
		pgtest.Shift(t, o.db, 10*time.Second)
		o.work(t)
	}
	o.wantMails(t, "flapping", "The thing facilitator/acme stopped")
	pgtest.Shift(t, o.db, CalmFor)
	o.work(t)
	o.wantMails(t, "after", "The thing facilitator/acme stopped", "over: The thing facilitator/acme stopped")
}

func TestStore_SettleSteady_IsToldAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail")
	o.raise(t, SourceOut, "facilitator/acme")
	o.work(t)
	if settled, err := (Store{}).SettleSteady(t.Context(), o.db, SourceOut, "facilitator/acme"); err != nil || !settled {
		t.Fatal(settled, err)
	}
	o.work(t)
	o.wantMails(t, "steady", "The thing facilitator/acme stopped", "over: The thing facilitator/acme stopped")
	if settled, err := (Store{}).SettleSteady(t.Context(), o.db, SourceOut, "facilitator/acme"); err != nil || settled {
		t.Error(settled, err)
	}
}

// A program that dies after a notice was raised has told nobody. The next one does.
func TestSender_ARowThatWasWrittenIsSentByWhoeverComesNext(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail")
	undone := pgx.BeginFunc(t.Context(), o.db, func(tx pgx.Tx) error {
		if _, err := (Store{}).Raise(t.Context(), tx, OwnOutage, "undone", Outage{What: "nothing"}); err != nil {
			return err
		}
		return pgx.ErrTxClosed // what it was about did not happen
	})
	if undone == nil {
		t.Fatal("the transaction was to be undone")
	}
	o.raise(t, OwnOutage, "fleet")
	if err := o.sender.takeDue(t.Context(), dueMax, func(pgx.Tx, []due) error { return nil }); err != nil {
		t.Fatal(err) // handed out to a process that dies
	}
	if n := o.work(t); n != 0 {
		t.Errorf("%d messages were handed out twice", n)
	}
	pgtest.Shift(t, o.db, lease+time.Second)
	o.work(t)
	o.work(t)
	o.wantMails(t, "after the lease", "The thing fleet stopped")
}

// A program that dies after a mail was taken and before that was kept sends it again, by the same id.
func TestSender_WhatIsSentTwiceHasOneID(t *testing.T) {
	t.Parallel()
	for _, channel := range []string{"mail", "webhook"} {
		o := newOffice(t, channel)
		o.raise(t, OwnOutage, "fleet")
		var first due
		if err := o.sender.takeDue(t.Context(), dueMax, func(_ pgx.Tx, all []due) error { first = all[0]; return nil }); err != nil {
			t.Fatal(err)
		}
		p, err := o.sender.store.pending(t.Context(), o.db, first)
		if err != nil {
			t.Fatal(err)
		}
		if tried, err := o.sender.try(t.Context(), p, o.sender.o.Ways); err != nil || tried.taken != channel {
			t.Fatal(tried, err)
		}
		pgtest.Shift(t, o.db, lease+time.Second)
		o.work(t)
		var ids []string
		for _, m := range o.mail.Mails() {
			ids = append(ids, m.Header.Get("Message-ID"))
		}
		for _, d := range o.hook.Deliveries() {
			ids = append(ids, d.ID)
		}
		if len(ids) != 2 || ids[0] != ids[1] || !strings.Contains(ids[0], first.Notice.String()) {
			t.Errorf("%s: ids %v, want one twice", channel, ids)
		}
	}
}

func TestSender_TheWebhookTakesWhatMailDoesNot(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail", "webhook")
	o.shutMail(true)
	o.raise(t, OwnOutage, "fleet")
	o.work(t)
	o.wantHooks(t, "mail fails", "notice.raised")
	o.limits["mail"] = o.limit(t, "mail", time.Hour)
	o.raise(t, OwnOutage, "replica")
	sessions := o.mail.Sessions()
	o.work(t)
	o.wantHooks(t, "mail is out", "notice.raised", "notice.raised")
	if o.mail.Sessions() != sessions {
		t.Error("mail was asked though it may not be")
	}
	o.limits["mail"] = nil
	o.shutMail(false)
	o.raise(t, SourceOut, "mail")
	o.raise(t, GuardReached, "mail")
	o.work(t)
	o.raise(t, SourceOut, "webhook")
	o.work(t)
	o.wantMails(t, "about the webhook, and about the guard of mail, which keeps some for notices", "The thing mail stopped", "The thing webhook stopped")
	o.wantHooks(t, "about mail", "notice.raised", "notice.raised", "notice.raised")
	if data := string(o.hook.Deliveries()[0].Data); !strings.Contains(data, `"kind":"outage","subject":"fleet","phase":"raised"`) {
		t.Errorf("the webhook carries %s", data)
	}
}

// limit is what a source says that is out for so long.
func (o *office) limit(t *testing.T, channel string, wait time.Duration) *source.LimitError {
	t.Helper()
	l := &source.LimitError{Source: channel, Why: source.Exhausted, Wait: wait}
	if err := o.db.QueryRow(t.Context(), `SELECT market_now() + $1::interval`, wait).Scan(&l.Until); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestSender_WhereEveryChannelIsOutAllWaitsForTheFirstAndIsSentOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail", "webhook")
	o.limits["mail"], o.limits["webhook"] = o.limit(t, "mail", 2*time.Hour), o.limit(t, "webhook", time.Hour)
	o.raise(t, OwnOutage, "fleet")
	o.raise(t, OwnOutage, "replica")
	var one []due
	if err := o.sender.takeDue(t.Context(), 1, func(_ pgx.Tx, all []due) error { one = all; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := o.sender.send(t.Context(), one[0]); err != nil {
		t.Fatal(err)
	}
	if n := o.work(t); n != 0 {
		t.Errorf("%d messages were tried though the first was told that no channel may be asked", n)
	}
	var attempts int
	if err := o.db.QueryRow(t.Context(), `SELECT sum(attempts) FROM notice_messages`).Scan(&attempts); err != nil || attempts != 0 {
		t.Errorf("%d attempts count (%v), want none: nobody was asked", attempts, err)
	}
	pgtest.Shift(t, o.db, time.Hour)
	o.limits["webhook"] = nil
	o.work(t)
	o.work(t)
	o.wantHooks(t, "the webhook is there", "notice.raised", "notice.raised")
	o.wantMails(t, "the webhook is there")
}

func TestSender_WhatFailsIsTriedForThreeDaysAndThenGivenUp(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail")
	o.shutMail(true)
	o.raise(t, OwnOutage, "fleet")
	o.work(t)
	const attemptsSQL = `SELECT attempts FROM notice_messages m JOIN notices n ON n.id = m.notice_id WHERE n.kind = 'outage'`
	for i, wait := range []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, time.Hour} {
		for at, want := range []int{i + 1, i + 2} {
			pgtest.Shift(t, o.db, []time.Duration{wait - 5*time.Second, 5 * time.Second}[at])
			o.work(t)
			var attempts int
			if err := o.db.QueryRow(t.Context(), attemptsSQL).Scan(&attempts); err != nil || attempts != want {
				t.Errorf("around %v after failure %d: %d attempts (%v), want %d", wait, i+1, attempts, err, want)
			}
		}
	}
	o.settle(t, ChannelOut, "mail") // that mail is out is another notice, which waits as well
	pgtest.Shift(t, o.db, 72*time.Hour)
	o.work(t)
	listed, err := Store{}.List(t.Context(), o.db, uuid.UUID{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	fleet := listed[len(listed)-1]
	if len(fleet.Messages) != 1 || fleet.Messages[0].GivenUpAt.IsZero() || !fleet.Messages[0].NextAt.IsZero() || fleet.SettledAt.IsZero() || fleet.Messages[0].Attempts != 7 ||
		!strings.Contains(fleet.Messages[0].LastError, "451") {
		t.Errorf("given up: %+v", fleet)
	}
	// The latch is free: the trouble is told again.
	o.shutMail(false)
	o.settle(t, OwnOutage, "fleet")
	o.raise(t, OwnOutage, "fleet")
	o.work(t)
	mails := o.mail.Mails()
	if last := mails[len(mails)-1].Header.Get("Subject"); last != "[market] The thing fleet stopped" {
		t.Errorf("the last mail is %q", last)
	}
	for _, m := range mails {
		if strings.Contains(m.Header.Get("Subject"), "over: ") {
			t.Errorf("a recovery was sent of what was never told: %q", m.Header.Get("Subject"))
		}
	}
}

// A trouble that is over before anybody could be told of it is told in one message.
func TestSender_WhatIsOverBeforeItCouldBeSentIsOneMessage(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail")
	o.shutMail(true)
	o.raise(t, OwnOutage, "fleet")
	o.work(t)
	o.settle(t, OwnOutage, "fleet")
	pgtest.Shift(t, o.db, CalmFor)
	o.work(t)
	o.shutMail(false)
	o.work(t)
	o.wantMails(t, "the end is not told before the beginning")
	pgtest.Shift(t, o.db, time.Hour)
	o.work(t)
	o.wantMails(t, "afterwards", "over already: The thing fleet stopped")
	if body := o.mail.Mails()[0].Body; !strings.Contains(body, "It is over already, since 2") {
		t.Errorf("the mail does not say since when:\n%s", body)
	}
	pgtest.Shift(t, o.db, time.Hour)
	o.work(t)
	o.wantMails(t, "later", "over already: The thing fleet stopped")
}

func TestSender_AChannelThatIsOutIsToldByTheOther(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail", "webhook")
	o.shutMail(true)
	for i, wait := range []time.Duration{0, 5 * time.Minute, 5*time.Minute - 2*time.Second} {
		pgtest.Shift(t, o.db, wait)
		o.raise(t, ServiceHeld, string(rune('a'+i)))
		o.work(t)
	}
	o.wantHooks(t, "three failures in less than ten minutes", "notice.raised", "notice.raised", "notice.raised")
	pgtest.Shift(t, o.db, 2*time.Second)
	o.raise(t, ServiceHeld, "d")
	o.work(t)
	got := o.hook.Deliveries()
	if len(got) != 5 || !strings.Contains(string(got[4].Data), `"kind":"channel_out","subject":"mail"`) || !strings.Contains(string(got[4].Data), "451") {
		t.Fatalf("webhooks %s, want one more about mail", got[len(got)-1].Data)
	}
	o.raise(t, ServiceHeld, "e") // it goes on failing, and is told already
	o.work(t)
	o.shutMail(false)
	o.raise(t, ServiceHeld, "f")
	o.work(t)
	o.wantMails(t, "mail is back", "The thing f stopped")
	pgtest.Shift(t, o.db, CalmFor+time.Second)
	o.work(t)
	mails := o.mail.Mails()
	if last := mails[len(mails)-1].Header.Get("Subject"); len(mails) != 2 || !strings.HasPrefix(last, "[market] over: Notices to you do not go out by mail") {
		t.Errorf("%d mails, the last %q", len(mails), last)
	}
}

// Both channels fail, and each failure is of a notice about the other: that ends, and nobody is told of telling.
func TestSender_ThatNothingCanBeToldIsNoCircle(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail", "webhook")
	o.shutMail(true)
	o.hook.Answer(http.StatusInternalServerError, nil)
	o.raise(t, OwnOutage, "fleet")
	for range 12 {
		o.work(t)
		pgtest.Shift(t, o.db, time.Hour)
	}
	var notices int
	if err := o.db.QueryRow(t.Context(), `SELECT count(*) FROM notices`).Scan(&notices); err != nil || notices != 3 {
		t.Errorf("%d notices (%v), want the trouble and one a channel", notices, err)
	}
	o.shutMail(false)
	o.work(t)
	o.work(t)
	if n := len(o.mail.Mails()); n != 2 {
		t.Errorf("%d mails when mail is back, want of the trouble and of the webhook", n)
	}
	// That mail is out is for the webhook to tell, until it is over.
	pgtest.Shift(t, o.db, CalmFor+time.Hour)
	o.work(t)
	mails := o.mail.Mails()
	if last := mails[len(mails)-1].Header.Get("Subject"); len(mails) != 3 || !strings.HasPrefix(last, "[market] over already: Notices to you do not go out by mail") {
		t.Errorf("%d mails, the last %q", len(mails), last)
	}
}

func TestSender_Test_SaysWhichChannelTookItAndIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "mail", "webhook")
	if got, err := o.sender.Test(t.Context(), ""); err != nil || got.Channel != "mail" || len(got.Failed) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	o.shutMail(true)
	if got, err := o.sender.Test(t.Context(), ""); err != nil || got.Channel != "webhook" || len(got.Failed) != 1 || !strings.Contains(got.Failed[0].Why, "451") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := o.sender.Test(t.Context(), "mail"); err != nil || got.Channel != "" || len(got.Failed) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := o.sender.Test(t.Context(), "pigeon"); err != ErrNoChannel { //nolint:errorlint // it is returned as it is
		t.Errorf("a channel that there is not: %v", err)
	}
	o.shutMail(false)
	pgtest.Shift(t, o.db, 2*time.Hour)
	if n := o.work(t); n != 0 {
		t.Errorf("%d tests were tried again", n)
	}
	o.wantMails(t, "tests", "This is a test of the notices to the operator")
	o.wantHooks(t, "tests", "notice.test")
}

func TestChannelOut_NeedsThreeFailuresOverTenMinutes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		failures int
		failing  time.Duration
		want     bool
	}{
		{2, 10 * time.Minute, false}, {3, 10 * time.Minute, true}, {4, 10 * time.Minute, true},
		{3, 10*time.Minute - time.Microsecond, false}, {3, 10*time.Minute + time.Microsecond, true},
	} {
		if got := channelOut(tt.failures, tt.failing); got != tt.want {
			t.Errorf("%d failures over %v: %v, want %v", tt.failures, tt.failing, got, tt.want)
		}
	}
}
