package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"market/internal/catalog"
	"market/internal/config"
	"market/internal/letter"
	"market/internal/notify"
	"market/internal/postgres"
	"market/internal/secretbox"
	"market/internal/source"
	"market/internal/upstream"
)

// newLetters makes what sends letters to providers: by the mail server that the operator is told by, and to webhooks of theirs.
func (a *App) newLetters(c config.Config, box secretbox.Box) (*letter.Worker, error) {
	// A way out of its own: what providers do with our letters takes no connection from the calls of their services.
	client := upstream.New(upstream.Options{AllowPrivate: c.Dev && !a.guarded, Resolver: a.resolver})
	a.closers = append(a.closers, func(context.Context) error { client.Close(); return nil })
	carriers := map[letter.Channel]letter.Carrier{letter.Webhook: webhooks{client.Outward()}}
	if c.Operator.Mail != nil {
		mailer, err := mailerOf(*c.Operator.Mail)
		if err != nil {
			return nil, fmt.Errorf("MARKET_SMTP_URL: %w", err)
		}
		carriers[letter.Email] = mails{notify.WayBy(a.sources.Of(source.Mail), source.Other, mailer)}
	}
	return letter.NewWorker(a.db, contacts{secrets: catalog.NewSecrets(box)}, carriers, a.publicURL), nil
}

// releaseLetters has the mails due that wait for the relay while it takes work: some may have been put off while that came to be so. It is done whenever
// what is out was read again, and so once a minute at least.
func (a *App) releaseLetters(ctx context.Context) error {
	for _, s := range a.sources.Sources() {
		if s.Kind == source.KindMail && a.sources.Of(s.Name).Ready() == nil {
			return letter.Store{}.Release(ctx, a.db, letter.Email)
		}
	}
	return nil
}

// mails take letters to mail addresses. They share the source with the notices to the operator: what one of them learns of it, all know.
type mails struct{ way notify.Way }

func (m mails) Carry(ctx context.Context, to letter.Contact, l letter.Message) (status int, err error) {
	report, err := m.way.Reserve(ctx)
	if err != nil {
		return 0, err
	}
	err = m.way.Channel.Send(ctx, notify.Message{ID: l.ID, Type: l.Type, At: l.At, To: []string{to.Email}, Subject: l.Subject, Text: l.Text})
	failure, _ := errors.AsType[*notify.Failure](err)
	report(context.WithoutCancel(ctx), failure)
	if failure != nil {
		return failure.Code, failure
	}
	return 0, err
}

// contacts are where providers want to be told, as their listings say now.
type contacts struct {
	catalog catalog.Store
	secrets catalog.Secrets
}

func (b contacts) Contact(ctx context.Context, db postgres.DB, service uuid.UUID) (letter.Contact, error) {
	n, err := b.catalog.Notices(ctx, db, service)
	if err != nil || n.Webhook == "" {
		return letter.Contact{Email: n.Email}, err
	}
	secrets, err := b.secrets.NoticeSecrets(ctx, db, service)
	return letter.Contact{Email: n.Email, Webhook: n.Webhook, Secrets: secrets}, err
}

// webhooks take letters to the webhooks of providers. What a receiver does is its provider's own trouble: no source is out because of it.
type webhooks struct{ way http.RoundTripper }

var errUnsigned = errors.New("no secret of the webhook can be opened here: make another one")

func (w webhooks) Carry(ctx context.Context, to letter.Contact, m letter.Message) (status int, err error) {
	if len(to.Secrets) == 0 {
		return 0, errUnsigned
	}
	secrets := make([]string, 0, len(to.Secrets))
	for _, s := range to.Secrets {
		secrets = append(secrets, s.Reveal())
	}
	way := &noting{next: w.way}
	hook, err := notify.NewWebhook(to.Webhook, secrets, &http.Client{Transport: way})
	if err != nil {
		return 0, err
	}
	err = hook.Send(ctx, notify.Message{ID: m.ID, Type: m.Type, At: m.At, Data: m.Data})
	return way.status, err
}

// A noting way keeps the status of the answer to the one request that is sent by it.
type noting struct {
	next   http.RoundTripper
	status int
}

func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(r)
	if err == nil {
		n.status = response.StatusCode
	}
	return response, err
}
