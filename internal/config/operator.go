package config

import (
	"crypto/x509"
	"encoding/base64"
	"io"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Operator says how the operator is told what is wrong: by mail, by a webhook, by both or by neither.
type Operator struct {
	SMTPURL           Secret `env:"MARKET_SMTP_URL" expect:"smtp://user:password@host:port (STARTTLS) or smtps://user:password@host:port (TLS from the first byte), with ?from=address and ca_file=path where needed; in development also smtp://127.0.0.1:port?tls=none" shown:"none: no mail is sent" meaning:"mail server by which notices are sent; from is the first MARKET_OPERATOR_EMAIL unless it is said"`
	OperatorEmail     Emails `env:"MARKET_OPERATOR_EMAIL" expect:"1 to 10 mail addresses without names, separated by commas" shown:"none" meaning:"who gets the operator's notices by mail"`
	OperatorWebhook   Secret `env:"MARKET_OPERATOR_WEBHOOK" expect:"an https URL without user (http to a private address, or in development)" shown:"none" meaning:"where the operator's notices are posted when mail cannot take them"`
	WebhookSecretFile string `env:"MARKET_OPERATOR_WEBHOOK_SECRET_FILE" expect:"path of a file with whsec_ and 24 to 64 bytes in base64" shown:"none" meaning:"secret that signs what is posted to MARKET_OPERATOR_WEBHOOK (Standard Webhooks)"`

	Mail          *Mail  `env:"-"` // read from SMTPURL and OperatorEmail; nil: no mail is sent
	WebhookSecret Secret `env:"-"` // read from WebhookSecretFile
}

// Told says whether there is a way to tell the operator anything.
func (o Operator) Told() bool { return o.Mail != nil || o.OperatorWebhook.Reveal() != "" }

// Mail is a mail server, and from whom and to whom mail is.
type Mail struct {
	Host       string
	Port       int
	Protection Protection
	User       string
	Password   Secret
	From       string
	To         []string
	Roots      *x509.CertPool // nil: those of the system
}

// Protection is how the connection to a mail server is protected.
type Protection int

const (
	_           Protection = iota // invalid
	STARTTLS                      // the connection turns to TLS, or ends
	ImplicitTLS                   // TLS from the first byte
	NoTLS                         // none: to this machine, in development
)

const (
	emailsMax    = 10
	emailCharMax = 254
	caBytesMax   = 1 << 20
	// What Standard Webhooks asks of a secret.
	webhookSecretMin = 24
	webhookSecretMax = 64
)

// MailSource is how much mail may be sent. Normal is a few notices a week; providers are told by mail, too.
func MailSource() Source {
	s := DefaultSource()
	s.Metered, s.Guard = true, Guard{Floor: 200, SurgePercent: 300}
	return s
}

// WebhookSource is how much may be posted to the operator's webhook, which costs nothing.
func WebhookSource() Source {
	s := DefaultSource()
	s.Metered, s.Guard = true, Guard{Floor: 1000, SurgePercent: 300}
	return s
}

// Emails are mail addresses.
type Emails []string

// UnmarshalText reads a list separated by commas.
func (e *Emails) UnmarshalText(text []byte) error {
	*e = nil
	for item := range strings.SplitSeq(string(text), ",") {
		if item = strings.TrimSpace(item); !isEmail(item) {
			return errForm
		}
		*e = append(*e, item)
	}
	if len(*e) > emailsMax {
		return errForm
	}
	return nil
}

// isEmail wants a bare address of printable ASCII, so that it stands in a header as it is.
func isEmail(text string) bool {
	parsed, err := mail.ParseAddress(text)
	return err == nil && parsed.Name == "" && parsed.Address == text && len(text) <= emailCharMax && tokenForm.MatchString(text) && !strings.ContainsAny(text, "<>,\"")
}

func (p *problems) checkOperator(o *Operator, dev bool) {
	p.checkMail(o, dev)
	p.checkWebhook(o, dev)
}

func (p *problems) checkMail(o *Operator, dev bool) {
	const server, to = "MARKET_SMTP_URL", "MARKET_OPERATOR_EMAIL"
	if o.SMTPURL.Reveal() == "" {
		if len(o.OperatorEmail) > 0 {
			p.say(server, "missing: %s is set, and nothing else can send mail there", to)
		}
		return
	}
	if len(o.OperatorEmail) == 0 && p.ok(to) {
		p.say(to, "missing: %s is set, so say who gets mail", server)
	}
	m, good := parseSMTP(o.SMTPURL.Reveal(), dev)
	if !good {
		p.wrong(server)
		return
	}
	if m.from == "" && len(o.OperatorEmail) > 0 {
		m.from = o.OperatorEmail[0]
	}
	m.From, m.To = m.from, o.OperatorEmail
	if m.caFile != "" {
		if m.Roots = rootsIn(m.caFile); m.Roots == nil {
			p.say(server, "ca_file: expected a readable file with PEM certificates")
		}
	}
	if p.ok(server) && p.ok(to) {
		o.Mail = &m.Mail
	}
}

type smtpURL struct {
	Mail
	from, caFile string
}

// parseSMTP reads the URL of a mail server. A mail server that is not on this machine is never spoken to in the clear.
func parseSMTP(text string, dev bool) (m smtpURL, good bool) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || (u.Path != "" && u.Path != "/") || u.Fragment != "" {
		return m, false
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return m, false
	}
	port := map[string]int{"smtp": 587, "smtps": 465}[u.Scheme]
	if u.Port() != "" {
		if port, err = strconv.Atoi(u.Port()); err != nil {
			return m, false
		}
	}
	m.Host, m.Port, m.Protection = u.Hostname(), port, map[string]Protection{"smtp": STARTTLS, "smtps": ImplicitTLS}[u.Scheme]
	for name, values := range query {
		if len(values) != 1 {
			return m, false
		}
		switch value := values[0]; {
		case name == "from" && isEmail(value):
			m.from = value
		case name == "ca_file" && value != "":
			m.caFile = value
		case name == "tls" && value == "none" && dev && u.Scheme == "smtp" && isLoopback(m.Host):
			m.Protection = NoTLS
		default:
			return m, false
		}
	}
	if u.User != nil {
		password, _ := u.User.Password()
		m.User, m.Password = u.User.Username(), NewSecret(password)
		if m.User == "" || password == "" {
			return m, false
		}
	}
	return m, m.Protection != 0 && 0 < m.Port && m.Port <= 65_535
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// rootsIn reads certificates; nil where there are none.
func rootsIn(path string) *x509.CertPool {
	file, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, caBytesMax))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		return nil
	}
	return pool
}

// checkWebhook wants a secret beside the address: what is posted unsigned could be anybody's.
func (p *problems) checkWebhook(o *Operator, dev bool) {
	const address, file = "MARKET_OPERATOR_WEBHOOK", "MARKET_OPERATOR_WEBHOOK_SECRET_FILE"
	if o.OperatorWebhook.Reveal() == "" {
		if o.WebhookSecretFile != "" {
			p.say(address, "missing: %s is set, and there is nothing to sign", file)
		}
		return
	}
	u, err := url.Parse(o.OperatorWebhook.Reveal())
	p.check(address, err == nil && isWeb(u) && u.User == nil && u.Fragment == "" && (u.Scheme == "https" || dev || isPrivate(u.Hostname())))
	if o.WebhookSecretFile == "" {
		p.say(file, "missing: %s is set, and what is posted there is signed", address)
		return
	}
	text, err := readSecret(o.WebhookSecretFile)
	if err != nil {
		p.say(file, "%v", err)
		return
	}
	o.WebhookSecret = NewSecret(strings.TrimSpace(text))
	if !isWebhookSecret(o.WebhookSecret.Reveal()) {
		p.say(file, "got a file whose text is not shown, expected whsec_ and %d to %d bytes in base64", webhookSecretMin, webhookSecretMax)
	}
}

func isWebhookSecret(text string) bool {
	encoded, found := strings.CutPrefix(text, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	return found && err == nil && webhookSecretMin <= len(key) && len(key) <= webhookSecretMax
}

// isPrivate says whether an address is of this machine or of a network of one's own. A name is of anywhere.
func isPrivate(host string) bool {
	ip := net.ParseIP(host)
	return isLoopback(host) || ip != nil && ip.IsPrivate()
}
