package upstream

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// A nameServer is a real DNS server. What it says about a name can be changed while the test goes on.
type nameServer struct {
	conn net.PacketConn
	mu   sync.Mutex
	// says returns what a name has, for both families; nil addresses are a name without any.
	says  func(name string) (dnsmessage.RCode, []string)
	asked []string // for A; the questions for AAAA come beside them
}

// silence is an answer code that no server gives: this one says nothing then.
const silence dnsmessage.RCode = 0xFFF

// startDNS starts a name server and returns it with a resolver that asks it alone.
func startDNS(t *testing.T, says func(name string) (dnsmessage.RCode, []string)) (*nameServer, *net.Resolver) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &nameServer{conn: conn, says: says}
	go s.serve()
	return s, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// always is a name server's answer to everything.
func always(code dnsmessage.RCode, addresses ...string) func(string) (dnsmessage.RCode, []string) {
	return func(string) (dnsmessage.RCode, []string) { return code, addresses }
}

func (s *nameServer) become(says func(string) (dnsmessage.RCode, []string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = says
}

// questions returns the names that were asked for so far.
func (s *nameServer) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *nameServer) serve() {
	var buffer [1500]byte
	for {
		n, from, err := s.conn.ReadFrom(buffer[:])
		if err != nil {
			return
		}
		var question dnsmessage.Message
		if question.Unpack(buffer[:n]) != nil || len(question.Questions) != 1 {
			continue
		}
		if answer, speaks := s.answer(question); speaks {
			_, _ = s.conn.WriteTo(answer, from)
		}
	}
}

func (s *nameServer) answer(m dnsmessage.Message) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := m.Questions[0]
	if q.Type == dnsmessage.TypeA {
		s.asked = append(s.asked, q.Name.String())
	}
	code, addresses := s.says(q.Name.String())
	if code == silence {
		return nil, false
	}
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true, RecursionDesired: true, RCode: code},
		Questions: m.Questions,
	}
	for _, text := range addresses {
		a := netip.MustParseAddr(text)
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, Type: q.Type} // a TTL of 0
		switch {
		case q.Type == dnsmessage.TypeA && a.Is4():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case q.Type == dnsmessage.TypeAAAA && a.Is6():
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	packed, err := reply.Pack()
	return packed, err == nil
}
