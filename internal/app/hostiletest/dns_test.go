package hostiletest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// resolver is the name server of all hosts. It knows the names of the hosts and no others.
var resolver = &nameServer{names: map[string]*zone{}}

// A nameServer answers over UDP, and over TCP what is too long for that.
type nameServer struct {
	packets net.PacketConn
	streams net.Listener
	client  *net.Resolver

	mu    sync.Mutex
	names map[string]*zone
}

// A zone is one name with what it was asked so far.
type zone struct {
	looks func(n int) answerer
	on    bool // it is counted how often it is asked
	n     int  // look-ups of its IPv4 address since
}

// An answerer completes an answer to one question; false: nothing is sent.
type answerer func(m *dnsmessage.Message) bool

// start begins to answer, and makes the resolver that asks here.
func (s *nameServer) start() error {
	var err error
	if s.packets, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
		return err
	}
	if s.streams, err = net.Listen("tcp", s.packets.LocalAddr().String()); err != nil {
		return err
	}
	go s.answerPackets()
	go s.answerStreams()
	at := s.packets.LocalAddr().String()
	s.client = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, at)
	}}
	return nil
}

// turn begins to count the look-ups of a name.
func (s *nameServer) turn(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if z := s.names[name+"."]; z != nil {
		z.on = true
	}
}

// serve adds a name.
func (s *nameServer) serve(name string, looks func(n int) answerer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name+"."] = &zone{looks: looks}
}

func (s *nameServer) answerPackets() {
	buffer := make([]byte, 4096)
	for {
		n, from, err := s.packets.ReadFrom(buffer)
		if err != nil {
			return
		}
		out := s.answer(buffer[:n])
		if len(out) > 512 && len(out) > 12 {
			out = out[:12]
			out[2] |= 2                                // truncated
			binary.BigEndian.PutUint64(out[4:12], 0)   // nothing follows,
			binary.BigEndian.PutUint16(out[4:6], 1)    // but for the question
			out = append(out, question(buffer[:n])...) // as it was asked
		}
		if out != nil {
			_, _ = s.packets.WriteTo(out, from)
		}
	}
}

// question is the question of a query, as its bytes.
func question(query []byte) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += int(query[end]) + 1
	}
	return query[12:min(end+5, len(query))]
}

func (s *nameServer) answerStreams() {
	for {
		c, err := s.streams.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			for {
				var length [2]byte
				if _, err := io.ReadFull(c, length[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(length[:]))
				if _, err := io.ReadFull(c, query); err != nil {
					return
				}
				out := s.answer(query)
				if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil { //nolint:gosec // below 64 KB
					return
				}
			}
		}()
	}
}

func (s *nameServer) answer(query []byte) []byte {
	m, q, err := read(query)
	if err != nil {
		return nil
	}
	how := code(dnsmessage.RCodeNameError)
	s.mu.Lock()
	if z := s.names[strings.ToLower(q.Name.String())]; z != nil {
		if z.on && q.Type == dnsmessage.TypeA {
			z.n++
		}
		n := z.n
		if z.on {
			n = max(n, 1) // its IPv6 address may be asked for first
		}
		how = z.looks(n)
	}
	s.mu.Unlock()
	if !how(&m) {
		return nil
	}
	if m.RCode == rcodeGarbage {
		return append(query[:2:2], "evil"...)
	}
	out, err := m.Pack()
	if err != nil {
		return nil
	}
	return out
}

func read(query []byte) (dnsmessage.Message, dnsmessage.Question, error) {
	var p dnsmessage.Parser
	head, err := p.Start(query)
	if err != nil {
		return dnsmessage.Message{}, dnsmessage.Question{}, err
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return dnsmessage.Message{}, dnsmessage.Question{}, errors.New("not one question")
	}
	return dnsmessage.Message{Header: dnsmessage.Header{ID: head.ID, Response: true, Authoritative: true, RecursionDesired: head.RecursionDesired,
		RecursionAvailable: true}, Questions: questions}, questions[0], nil
}

// leadsTo answers with addresses; none: the name exists and has no address.
func leadsTo(addresses ...string) answerer {
	return func(m *dnsmessage.Message) bool {
		q := m.Questions[0]
		for _, text := range addresses {
			a := netip.MustParseAddr(text)
			head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: dnsmessage.ClassINET}
			switch {
			case q.Type == dnsmessage.TypeA && a.Is4():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: a.As4()}})
			case q.Type == dnsmessage.TypeAAAA && !a.Is4():
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
			}
		}
		return true
	}
}

// code answers with nothing but a code.
func code(c dnsmessage.RCode) answerer {
	return func(m *dnsmessage.Message) bool { m.RCode = c; return true }
}

// alias answers with another name and nothing of it.
func alias(to string) answerer {
	return func(m *dnsmessage.Message) bool {
		m.Answers = append(m.Answers, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeCNAME, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(to + ".")},
		})
		return true
	}
}

func silent(*dnsmessage.Message) bool { return false }

// rcodeGarbage marks an answer of bytes that are none.
const rcodeGarbage dnsmessage.RCode = 15

func garbage(m *dnsmessage.Message) bool { m.RCode = rcodeGarbage; return true }
