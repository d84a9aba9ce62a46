package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"market/internal/config"
	"market/internal/notify"
	"market/internal/postgres/pgtest"
	"market/internal/source"
)

type takesAll struct{}

func (takesAll) Send(context.Context, notify.Message) error { return nil }

// Providers can make as many letters as they like, by strikes of their own services. The operator is told all the same, also of that.
func TestKeeper_LettersLeaveTheLastTenthOfADaysMailToNotices(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pgtest.Freeze(t, db)
	k := &keeper{}
	mail := source.New(db, time.Now, []source.Source{source.Configured(source.Mail, source.KindMail, config.MailSource())}, source.Hooks{
		Waiting: k.waiting, OnError: func(err error) { t.Error(err) },
	}).Of(source.Mail)
	letters, notices := notify.WayBy(mail, source.Other, takesAll{}), notify.WayBy(mail, source.Refund, takesAll{})
	send := func(way notify.Way, most int) (sent int) {
		for range most {
			report, err := way.Reserve(t.Context())
			if limit, ok := errors.AsType[*source.LimitError](err); ok && limit.Why == source.Guarded {
				return sent
			}
			if err != nil {
				t.Fatal(err)
			}
			report(t.Context(), nil)
			sent++
		}
		return sent
	}
	if n := send(letters, 200); n != 180 {
		t.Errorf("%d letters went out, want nine tenths of 200", n)
	}
	if n := send(notices, 200); n != 20 {
		t.Errorf("%d notices went out after them, want the last tenth of 200", n)
	}
}
