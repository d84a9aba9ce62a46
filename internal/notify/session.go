package notify

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
)

// A session is a connection to a mail server that ends after so many bytes from there, by reading or by its deadline.
type session struct {
	net.Conn
	left int
}

var errMuch = errors.New("the mail server sent too much")

func (s *session) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, errMuch
	}
	if len(p) > s.left {
		p = p[:s.left]
	}
	n, err := s.Conn.Read(p)
	s.left -= n
	return n, err
}

// dial connects, with TLS where it is there from the first byte.
func (m *Mailer) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(m.o.Host, strconv.Itoa(m.o.Port)))
	if err != nil {
		return nil, err
	}
	bounded := &session{Conn: conn, left: mailBytesMax}
	if m.o.TLS != Implicit {
		return bounded, nil
	}
	protected := tls.Client(bounded, m.tls())
	if err := protected.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake says what is wrong
		return nil, err
	}
	return protected, nil
}
