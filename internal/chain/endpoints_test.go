package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A switched endpoint answers as a fakeNode, or as the test has switched it, and keeps what it was asked.
type switched struct {
	*httptest.Server
	answers http.Handler

	mu      sync.Mutex
	instead http.HandlerFunc // nil: it works
	asked   []string         // method names, those of a batch joined by "+"
	left    int              // answers until it turns
	then    http.HandlerFunc // to this; nil: it does not turn
}

// newSwitched serves chain 84532 with its head at block 256 of the present, where the test does not say otherwise.
func newSwitched(t *testing.T, answers fakeNode) *switched {
	t.Helper()
	all := fakeNode{"eth_chainId": `"0x14a34"`, "eth_blockNumber": `"0x100"`, "eth_getBlockByNumber": headJSON(0x100), "eth_getBalance": `"0x7"`}
	for method, result := range answers {
		all[method] = result
	}
	return switchedTo(t, all)
}

func switchedTo(t *testing.T, answers http.Handler) *switched {
	t.Helper()
	s := &switched{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func headJSON(number uint64) string { return headAt(number, startOfTest) }

func headAt(number uint64, at time.Time) string {
	return fmt.Sprintf(`{"number":%q,"timestamp":"%#x","hash":"0x%064x"}`, hexOf(number), at.Unix(), number)
}

func (s *switched) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.asked = append(s.asked, methodsOf(body))
	instead := s.instead
	if s.left--; s.left == 0 && s.then != nil {
		s.instead, s.then = s.then, nil
	}
	s.mu.Unlock()
	if instead != nil {
		instead(w, withBody(r, body))
		return
	}
	s.answers.ServeHTTP(w, withBody(r, body))
}

func methodsOf(body []byte) string {
	type request struct{ Method string }
	var many []request
	if json.Unmarshal(body, &many) != nil {
		many = make([]request, 1)
		_ = json.Unmarshal(body, &many[0])
	}
	names := make([]string, len(many))
	for i, q := range many {
		names[i] = q.Method
	}
	return strings.Join(names, "+")
}

// turn switches what it answers; nil: it works.
func (s *switched) turn(instead http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = instead
}

// turnAfter switches what it answers after so many answers more.
func (s *switched) turnAfter(answers int, then http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.then, s.instead = answers, then, nil
}

// drain returns what it was asked since the last time.
func (s *switched) drain() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "over the limit", code) }
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// errorObject answers each call with an error object.
func errorObject(object string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f := fakeNode{}
		for _, method := range []string{"eth_getBalance", "eth_call", "eth_getCode", "eth_chainId", "eth_blockNumber", "eth_sendRawTransaction"} {
			f[method] = "error:" + object
		}
		f.ServeHTTP(w, r)
	}
}

// A testGate says no where it is told to, and refuses what its test takes for a refusal.
type testGate struct {
	no      atomic.Pointer[HeldError]
	refused func(Said) error

	mu   sync.Mutex
	said []Said
}

func (g *testGate) Begin(context.Context, int) (Turn, error) {
	if no := g.no.Load(); no != nil {
		return nil, no
	}
	return g, nil
}

func (g *testGate) End(_ context.Context, s Said) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.said = append(g.said, s)
	if g.refused == nil {
		return nil
	}
	return g.refused(s)
}

func (g *testGate) last() Said {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said[len(g.said)-1]
}

// A stepClock is moved by its test.
type stepClock struct{ passed atomic.Int64 }

func (c *stepClock) now() time.Time { return startOfTest.Add(time.Duration(c.passed.Load())) }

func (c *stepClock) pass(d time.Duration) { c.passed.Add(int64(d)) }

var startOfTest = time.Now()

// over returns a node over these endpoints that was asked nothing yet, and its clock.
func over(t *testing.T, gates []Gate, endpoints ...*switched) (*Node, *stepClock) {
	t.Helper()
	network := networkAt("")
	network.RPC, network.Assets = nil, nil
	for _, e := range endpoints {
		network.RPC = append(network.RPC, e.URL)
	}
	n, err := Open(network, gates...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	clock := &stepClock{}
	n.now = clock.now
	return n, clock
}

var errLimit = errors.New("this endpoint is at its limit")

func limits(s Said) error {
	if s.Code == -32005 || s.Code == 429 || s.Status == http.StatusPaymentRequired {
		return errLimit
	}
	return nil
}
