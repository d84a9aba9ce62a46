package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"slices"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"
)

const (
	// mailTime bounds one mail from the dial to the last answer.
	mailTime = 20 * time.Second
	// mailBytesMax bounds what is read of a mail server in one session: its lines have no other end.
	mailBytesMax   = 1 << 20
	mailSubjectMax = 200
)

// TLS says how the connection to a mail server is protected.
type TLS int

const (
	_        TLS = iota // the zero value protects nothing by mistake
	STARTTLS            // begins in the clear, and ends if the server does not turn to TLS at once
	Implicit            // TLS from the first byte
	Plain               // none: only to this machine, in development
)

// MailOptions are what a Mailer is made from.
type MailOptions struct {
	Host, Hello    string // Hello is how we call ourselves; empty: this machine's name
	Port           int
	TLS            TLS
	Roots          *x509.CertPool // whom the server's certificate has to be from; nil: those of the system
	User, Password string         // none: no sign-in
	From           string
	To             []string // of a message that names nobody
}

// A Mailer sends messages as plain text mail by SMTP. Each is a session of its own: there are few, and a connection that is kept is one that can be dead.
type Mailer struct {
	o       MailOptions
	options []gomail.Option
}

// NewMailer returns a mailer. It connects to nobody yet.
func NewMailer(o MailOptions) (*Mailer, error) {
	m := &Mailer{o: o}
	m.options = []gomail.Option{gomail.WithPort(o.Port), gomail.WithTimeout(mailTime), gomail.WithTLSConfig(m.tls()), gomail.WithoutNoop()}
	if o.Hello != "" {
		m.options = append(m.options, gomail.WithHELO(o.Hello))
	}
	switch o.TLS {
	case STARTTLS:
		m.options = append(m.options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case Implicit, Plain:
		m.options = append(m.options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, errors.New("how the connection to the mail server is protected is not said")
	}
	if o.User != "" {
		// In this order, and no others: those that are left out send what can be broken. Without TLS a bare password goes to this machine alone.
		m.options = append(m.options, gomail.WithUsername(o.User), gomail.WithPassword(o.Password), gomail.WithOpportunisticSMTPAuth(
			gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	if _, err := gomail.NewClient(o.Host, m.options...); err != nil {
		return nil, fmt.Errorf("mail server: %w", err)
	}
	return m, nil
}

func (m *Mailer) tls() *tls.Config {
	return &tls.Config{ServerName: m.o.Host, RootCAs: m.o.Roots, MinVersion: tls.VersionTLS12}
}

// Send delivers the message to the mail server, and returns nil once it has taken it, whatever the session ends like.
func (m *Mailer) Send(ctx context.Context, message Message) error {
	mail, err := m.compose(message)
	if err != nil {
		return failed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, mailTime)
	defer cancel()
	conn, err := m.dial(ctx)
	if err != nil {
		return m.failed(err)
	}
	// The library leaves a connection open where the session does not come about, and does not look at the context within one.
	defer conn.Close()                                                          //nolint:errcheck // the server has answered by then, or will not
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })() // that of a connection that is open fails never
	client, err := gomail.NewClient(m.o.Host, append(slices.Clone(m.options),
		gomail.WithDialContextFunc(func(context.Context, string, string) (net.Conn, error) { return conn, nil }))...)
	if err != nil {
		return m.failed(err)
	}
	open, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return m.beforeMail(err)
	}
	err = client.SendWithSMTPClient(open, mail)
	if mail.IsDelivered() {
		_ = client.CloseWithSMTPClient(open) // a server that forgets to say goodbye has the mail all the same
		return nil
	}
	return m.ofMail(mail, err)
}

// compose makes the mail. The library encodes what is in a header; a line end in one would be a header of somebody else's, so there is none.
func (m *Mailer) compose(message Message) (*gomail.Msg, error) {
	mail := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := mail.From(m.o.From); err != nil {
		return nil, errors.New("the address that mail is from is none")
	}
	to := message.To
	if len(to) == 0 {
		to = m.o.To
	}
	if err := mail.To(to...); err != nil {
		return nil, errors.New("an address that mail is to go to is none")
	}
	domain := m.o.From[strings.LastIndexByte(m.o.From, '@')+1:] // a quoted mailbox may have an @, too
	mail.SetMessageIDWithValue(oneLine(message.ID) + "@" + domain)
	mail.Subject(shorten(oneLine(message.Subject), mailSubjectMax))
	mail.SetDate()
	mail.SetGenHeader("Auto-Submitted", "auto-generated") // so that no absent operator's program answers it
	mail.SetBodyString(gomail.TypeTextPlain, message.Text)
	return mail, nil
}

// beforeMail is what went wrong before a mail was offered. What a server says to a sign-in may repeat the password, so only its code is kept.
func (m *Mailer) beforeMail(err error) *Failure {
	if said, ok := errors.AsType[*textproto.Error](err); ok {
		return &Failure{Code: said.Code, Text: "the mail server did not let us in: it was its greeting, TLS, or the user and password"}
	}
	return m.failed(err)
}

// ofMail is how a mail was refused.
func (m *Mailer) ofMail(mail *gomail.Msg, err error) *Failure {
	if err == nil {
		return &Failure{Text: "the mail server did not say that it took the mail"}
	}
	sending, ok := errors.AsType[*gomail.SendError](err)
	if !ok {
		return m.failed(err)
	}
	f := m.failed(errors.New(serversWords(mail, sending)))
	f.Code, f.AtRecipient = sending.ErrorCode(), sending.Reason == gomail.ErrSMTPRcptTo
	return f
}

// failed is what went wrong in words, without the password, in whichever form a server gives it back.
func (m *Mailer) failed(err error) *Failure {
	text := err.Error()
	if m.o.Password != "" {
		for _, secret := range []string{m.o.Password, base64.StdEncoding.EncodeToString([]byte(m.o.Password)),
			base64.StdEncoding.EncodeToString([]byte("\x00" + m.o.User + "\x00" + m.o.Password))} {
			text = strings.ReplaceAll(text, secret, "(secret)")
		}
	}
	return &Failure{Text: clean(text)}
}
