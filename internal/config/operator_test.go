package config

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

const webhookSecret = "whsec_dGhpcy1pcy10aGUtc2VjcmV0LW9mLWEtdGVzdA=="

// certificate is a file of one.
func certificate(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return writeFile(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
}

func TestLoad_ReadsHowTheOperatorIsTold(t *testing.T) {
	t.Parallel()
	c := load(t, append(production(t), "MARKET_SMTP_URL=smtp://me%40example.com:p%2Fw@mail.example:2525?from=market@example.com&ca_file="+certificate(t),
		"MARKET_OPERATOR_EMAIL=a@example.com, b@example.com", "MARKET_OPERATOR_WEBHOOK=https://hooks.example/T0/secret",
		"MARKET_OPERATOR_WEBHOOK_SECRET_FILE="+writeFile(t, "secret", webhookSecret+"\n")))
	m := c.Operator.Mail
	if m == nil || m.Host != "mail.example" || m.Port != 2525 || m.Protection != STARTTLS || m.User != "me@example.com" || m.Password.Reveal() != "p/w" ||
		m.From != "market@example.com" || strings.Join(m.To, " ") != "a@example.com b@example.com" || m.Roots == nil {
		t.Errorf("mail %+v", m)
	}
	if c.Operator.WebhookSecret.Reveal() != webhookSecret || c.Operator.OperatorWebhook.Reveal() != "https://hooks.example/T0/secret" || !c.Operator.Told() {
		t.Errorf("webhook %+v", c.Operator)
	}
	if c := load(t, production(t)); c.Operator.Told() || c.Operator.Mail != nil {
		t.Errorf("nothing is set, and read %+v", c.Operator)
	}
	c = load(t, append(production(t), "MARKET_SMTP_URL=smtps://mail.example", "MARKET_OPERATOR_EMAIL=a@example.com"))
	if m := c.Operator.Mail; m.Port != 465 || m.Protection != ImplicitTLS || m.From != "a@example.com" || m.User != "" || m.Roots != nil {
		t.Errorf("mail %+v", m)
	}
}

func TestLoad_HowTheOperatorIsToldIsStrict(t *testing.T) {
	t.Parallel()
	email, secret := "MARKET_OPERATOR_EMAIL=a@example.com", "MARKET_OPERATOR_WEBHOOK_SECRET_FILE="+writeFile(t, "secret", webhookSecret)
	open := writeFile(t, "open", webhookSecret)
	if err := os.Chmod(open, 0o644); err != nil { //nolint:gosec // that is what is refused
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		set  []string
		want string // the variable that is named
	}{
		"another scheme":                 {[]string{"MARKET_SMTP_URL=http://mail.example", email}, "MARKET_SMTP_URL: got a value that is not shown"},
		"no host":                        {[]string{"MARKET_SMTP_URL=smtp://:25", email}, "MARKET_SMTP_URL: got a value"},
		"a path":                         {[]string{"MARKET_SMTP_URL=smtp://mail.example/x", email}, "MARKET_SMTP_URL: got a value"},
		"a port that there is not":       {[]string{"MARKET_SMTP_URL=smtp://mail.example:70000", email}, "MARKET_SMTP_URL: got a value"},
		"a user without a password":      {[]string{"MARKET_SMTP_URL=smtp://user@mail.example", email}, "MARKET_SMTP_URL: got a value"},
		"no TLS in production":           {[]string{"MARKET_SMTP_URL=smtp://127.0.0.1:25?tls=none", email}, "MARKET_SMTP_URL: got a value"},
		"an unknown parameter":           {[]string{"MARKET_SMTP_URL=smtp://mail.example?insecure=1", email}, "MARKET_SMTP_URL: got a value"},
		"a sender that is no address":    {[]string{"MARKET_SMTP_URL=smtp://mail.example?from=a%0d%0ab@example.com", email}, "MARKET_SMTP_URL: got a value"},
		"no certificates":                {[]string{"MARKET_SMTP_URL=smtp://mail.example?ca_file=/nowhere", email}, "MARKET_SMTP_URL: ca_file"},
		"nobody to send to":              {[]string{"MARKET_SMTP_URL=smtp://mail.example"}, "MARKET_OPERATOR_EMAIL: missing"},
		"nothing to send by":             {[]string{email}, "MARKET_SMTP_URL: missing"},
		"a name beside an address":       {[]string{"MARKET_SMTP_URL=smtp://mail.example", "MARKET_OPERATOR_EMAIL=A <a@example.com>"}, "MARKET_OPERATOR_EMAIL: got"},
		"eleven addresses":               {[]string{"MARKET_SMTP_URL=smtp://mail.example", "MARKET_OPERATOR_EMAIL=" + strings.Repeat("a@example.com,", 10) + "a@example.com"}, "MARKET_OPERATOR_EMAIL: got"},
		"a webhook without a secret":     {[]string{"MARKET_OPERATOR_WEBHOOK=https://hooks.example/x"}, "MARKET_OPERATOR_WEBHOOK_SECRET_FILE: missing"},
		"a secret without a webhook":     {[]string{secret}, "MARKET_OPERATOR_WEBHOOK: missing"},
		"a webhook in the clear":         {[]string{"MARKET_OPERATOR_WEBHOOK=http://hooks.example/x", secret}, "MARKET_OPERATOR_WEBHOOK: got a value that is not shown"},
		"a webhook with a user":          {[]string{"MARKET_OPERATOR_WEBHOOK=https://a:b@hooks.example/x", secret}, "MARKET_OPERATOR_WEBHOOK: got a value"},
		"a secret of another form":       {[]string{"MARKET_OPERATOR_WEBHOOK=https://hooks.example/x", "MARKET_OPERATOR_WEBHOOK_SECRET_FILE=" + writeFile(t, "s", "hunter2")}, "MARKET_OPERATOR_WEBHOOK_SECRET_FILE: got a file whose text is not shown"},
		"a secret that everybody reads":  {[]string{"MARKET_OPERATOR_WEBHOOK=https://hooks.example/x", "MARKET_OPERATOR_WEBHOOK_SECRET_FILE=" + open}, "every account can read"},
		"a file of a secret that is not": {[]string{"MARKET_OPERATOR_WEBHOOK=https://hooks.example/x", "MARKET_OPERATOR_WEBHOOK_SECRET_FILE=/nowhere"}, "MARKET_OPERATOR_WEBHOOK_SECRET_FILE: /nowhere"},
	} {
		_, err := Load(append(production(t), tt.set...))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "a:b@")) {
			t.Errorf("%s: the error has a secret: %v", name, err)
		}
	}
	for _, private := range []string{"http://127.0.0.1:9093/x", "http://10.1.2.3/x"} {
		load(t, append(production(t), "MARKET_OPERATOR_WEBHOOK="+private, secret))
	}
	m := load(t, append(development(t), "MARKET_SMTP_URL=smtp://127.0.0.1:2525?tls=none", email)).Operator.Mail
	if m == nil || m.Protection != NoTLS {
		t.Errorf("mail to this machine in development: %+v", m)
	}
}
