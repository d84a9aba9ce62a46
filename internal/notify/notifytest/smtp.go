// Package notifytest has the other ends of the channels for tests: a mail server that speaks SMTP with TLS and sign-in, and a receiver of webhooks that
// verifies their signatures.
package notifytest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"mime"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// User and Password are whom an SMTP server lets in.
const (
	User     = "market"
	Password = "a-password-of-the-mail-server"
)

// A Mail is one that a server took.
type Mail struct {
	From   string
	To     []string
	Header mail.Header // with its subject decoded
	Body   string      // decoded as far as tests need it: quoted-printable soft line ends are joined
	TLS    bool
}

// An SMTP server keeps the mails that it takes. It offers STARTTLS, or begins with TLS, and asks for a sign-in.
type SMTP struct {
	listener    net.Listener
	certificate *x509.Certificate
	tls         *tls.Config
	implicit    bool
	running     sync.WaitGroup

	mu       sync.Mutex
	mails    []Mail
	answers  map[string]string
	sessions int
	open     map[net.Conn]bool
}

// Protection says how a server offers TLS.
type Protection int

const (
	_ Protection = iota
	StartTLS
	ImplicitTLS
	NoTLS
)

// NewSMTP starts a server on this machine until the test ends.
func NewSMTP(t testing.TB, p Protection) *SMTP {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &SMTP{listener: l, implicit: p == ImplicitTLS, answers: map[string]string{}, open: map[net.Conn]bool{}}
	if p != NoTLS {
		lender := httptest.NewTLSServer(nil) // its certificate is for 127.0.0.1
		s.certificate, s.tls = lender.Certificate(), &tls.Config{Certificates: lender.TLS.Certificates, MinVersion: tls.VersionTLS12}
		lender.Close()
	}
	s.running.Go(s.accept)
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for c := range s.open {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.running.Wait()
	})
	return s
}

// Port is where the server listens, at 127.0.0.1.
func (s *SMTP) Port() int { return s.listener.Addr().(*net.TCPAddr).Port } //nolint:forcetypeassert // it is

// Address is host:port.
func (s *SMTP) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port())) }

// Roots is whom the server's certificate is from.
func (s *SMTP) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.certificate)
	return pool
}

// CAFile is a file of the same.
func (s *SMTP) CAFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw})
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Answer makes the server give this line to a command ("EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", and "." for the end of a mail) instead of its
// own; an empty line takes it back. "BREAK" breaks the connection without an answer, after the mail was taken where the command is ".".
func (s *SMTP) Answer(command, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers[command] = line; line == "" {
		delete(s.answers, command)
	}
}

// Mails are those that were taken, in their order.
func (s *SMTP) Mails() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// Sessions counts the connections.
func (s *SMTP) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

func (s *SMTP) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.sessions++
		s.open[c] = true
		s.mu.Unlock()
		s.running.Go(func() {
			defer func() {
				s.mu.Lock()
				delete(s.open, c)
				s.mu.Unlock()
				_ = c.Close()
			}()
			over := &dialogue{server: s, conn: c}
			if s.implicit {
				over.conn, over.protected = tls.Server(c, s.tls), true
			}
			over.run()
		})
	}
}

// A dialogue is one session.
type dialogue struct {
	server    *SMTP
	conn      net.Conn
	protected bool
	signedIn  bool
	text      *textproto.Conn
	mail      Mail
}

func (d *dialogue) say(line string) bool { return d.text.PrintfLine("%s", line) == nil }

func (d *dialogue) run() {
	d.text = textproto.NewConn(d.conn)
	if !d.say("220 mail.test ESMTP") {
		return
	}
	for {
		line, err := d.text.ReadLine()
		if err != nil {
			return
		}
		command, rest, _ := strings.Cut(line, " ")
		command = strings.ToUpper(command)
		d.server.mu.Lock()
		scripted := d.server.answers[command]
		d.server.mu.Unlock()
		switch {
		case scripted == "BREAK":
			return
		case scripted != "":
			if !d.say(scripted) {
				return
			}
		case !d.obey(command, rest):
			return
		}
	}
}

// obey does what a command says, and returns whether the session goes on.
func (d *dialogue) obey(command, rest string) bool {
	switch command {
	case "EHLO", "HELO":
		offers := []string{"mail.test", "8BITMIME"}
		if d.server.tls != nil && !d.protected {
			offers = append(offers, "STARTTLS")
		} else {
			offers = append(offers, "AUTH PLAIN LOGIN")
		}
		for i, offer := range offers {
			if dash := map[bool]string{true: " ", false: "-"}[i == len(offers)-1]; !d.say("250" + dash + offer) {
				return false
			}
		}
		return true
	case "STARTTLS":
		if !d.say("220 go ahead") {
			return false
		}
		d.conn, d.protected = tls.Server(d.conn, d.server.tls), true
		d.text = textproto.NewConn(d.conn)
		return true
	case "AUTH":
		return d.signIn(rest)
	case "MAIL", "RCPT":
		return d.envelope(command, rest)
	case "DATA":
		return d.data()
	case "RSET", "NOOP":
		return d.say("250 fine")
	case "QUIT":
		d.say("221 bye")
		return false
	}
	return d.say("502 not known")
}

func (d *dialogue) signIn(rest string) bool {
	mechanism, initial, _ := strings.Cut(rest, " ")
	text, err := base64.StdEncoding.DecodeString(initial)
	if mechanism != "PLAIN" || err != nil || string(text) != "\x00"+User+"\x00"+Password {
		return d.say("535 5.7.8 who are you")
	}
	d.signedIn = true
	return d.say("235 welcome")
}

func (d *dialogue) envelope(command, rest string) bool {
	if !d.signedIn {
		return d.say("530 5.7.0 sign in first")
	}
	_, address, _ := strings.Cut(rest, "<")
	address, _, _ = strings.Cut(address, ">")
	if command == "MAIL" {
		d.mail = Mail{From: address, TLS: d.protected}
	} else {
		d.mail.To = append(d.mail.To, address)
	}
	return d.say("250 fine")
}

func (d *dialogue) data() bool {
	if !d.say("354 say it") {
		return false
	}
	text, err := d.text.ReadDotBytes()
	if err != nil {
		return false
	}
	d.server.mu.Lock()
	scripted := d.server.answers["."]
	d.server.mu.Unlock()
	if scripted != "" && scripted != "BREAK" {
		return d.say(scripted)
	}
	read, err := mail.ReadMessage(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return d.say("554 that is no mail")
	}
	var body bytes.Buffer
	_, _ = body.ReadFrom(read.Body) // from memory
	d.mail.Header, d.mail.Body = read.Header, decoded(body.String())
	if subject, err := new(mime.WordDecoder).DecodeHeader(read.Header.Get("Subject")); err == nil {
		d.mail.Header["Subject"] = []string{subject}
	}
	d.server.mu.Lock()
	d.server.mails = append(d.server.mails, d.mail)
	d.server.mu.Unlock()
	return scripted == "" && d.say("250 2.0.0 taken")
}
