package app

import (
	"fmt"
	"net/http"

	"market/internal/config"
	"market/internal/metrics"
	"market/internal/notify"
	"market/internal/source"
)

// webhookHeaderMax bounds the header of a receiver's answer.
const webhookHeaderMax = 64 << 10

// noticeSources are the ways to the operator that are configured.
func noticeSources(c config.Config) []source.Source {
	var all []source.Source
	if c.Operator.Mail != nil {
		all = append(all, source.Configured(source.Mail, source.KindMail, config.MailSource()))
	}
	if c.Operator.OperatorWebhook.Reveal() != "" {
		all = append(all, source.Configured(source.Webhook, source.KindWebhook, config.WebhookSource()))
	}
	return all
}

// newNotices makes what takes notices to the operator: by mail, and by the webhook where mail does not.
func (a *App) newNotices(c config.Config) (*notify.Sender, error) {
	var ways []notify.Way
	if c.Operator.Mail != nil {
		mailer, err := mailerOf(*c.Operator.Mail)
		if err != nil {
			return nil, fmt.Errorf("MARKET_SMTP_URL: %w", err)
		}
		ways = append(ways, notify.WayBy(a.sources.Of(source.Mail), source.Refund, mailer))
	}
	if address := c.Operator.OperatorWebhook.Reveal(); address != "" {
		webhook, err := notify.NewWebhook(address, []string{c.Operator.WebhookSecret.Reveal()}, operatorsClient())
		if err != nil {
			return nil, fmt.Errorf("MARKET_OPERATOR_WEBHOOK: %w", err)
		}
		ways = append(ways, notify.WayBy(a.sources.Of(source.Webhook), source.Refund, webhook))
	}
	if len(ways) == 0 && !c.Dev {
		a.log.Warn().Msg("nobody is told when something stops: set MARKET_SMTP_URL with MARKET_OPERATOR_EMAIL, or MARKET_OPERATOR_WEBHOOK; until then look at /admin/notices")
	}
	return notify.NewSender(a.db, notify.SenderOptions{Ways: ways, PublicURL: a.publicURL, Counted: func(kind notify.Kind, result string) {
		a.metrics.Notice(string(kind), metrics.Result(result))
	}, Report: func(err error, kind notify.Kind, why string) {
		a.log.Error().Err(err).Str("kind", string(kind)).Str("why", why).Msg("notices")
	}}), nil
}

// mailerOf makes what sends mail.
func mailerOf(m config.Mail) (*notify.Mailer, error) {
	o := notify.MailOptions{Host: m.Host, Port: m.Port, Roots: m.Roots, User: m.User, Password: m.Password.Reveal(), From: m.From, To: m.To}
	switch m.Protection {
	case config.STARTTLS:
		o.TLS = notify.STARTTLS
	case config.ImplicitTLS:
		o.TLS = notify.Implicit
	case config.NoTLS:
		o.TLS = notify.Plain
	}
	return notify.NewMailer(o)
}

// operatorsClient reaches the operator's own address, wherever that is: it is configured, and no stranger chooses it.
func operatorsClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert,errcheck // it is one
	transport.MaxResponseHeaderBytes = webhookHeaderMax
	return &http.Client{Transport: transport}
}
