package crashtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
	"market/internal/chain"
	"market/internal/crash"
	"market/internal/delivery"
	"market/internal/payment"
)

// A stage is one call on its way through a crash: a service and a payer of its own in a world that it may share with calls that have ended.
type stage struct {
	*world
	name    string
	point   crash.Point
	service *apptest.Service
	after   http.HandlerFunc // what the service does once the server has started again
	payer   chain.Key
	paid    chain.Signed
	header  string
	server  *apptest.Process
	want    outcome

	askedBefore int // how often the service was asked before the payment was sent
}

// start starts a server that dies at a point; none: it dies at nothing.
func (s *stage) start(t testing.TB, at crash.Point) {
	t.Helper()
	env := s.env
	if at != "" {
		env = append(env[:len(env):len(env)], crash.Variable+"="+string(at))
	}
	s.BuryJobs(t) // of whoever ran before
	s.server = launch(t, env)
	s.URL = s.server.URL
	server := s.server
	t.Cleanup(func() {
		server.Kill()
		if found := server.Races(); found != "" {
			t.Errorf("data race in the server: %s", found)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", server.Said())
		}
	})
	s.awaitReady(t)
}

// awaitReady lets a server that has just opened its door prove that payments work, which on a slow machine may take it a second look. It goes on without where
// that does not come: some scenes have a node that fails.
func (s *stage) awaitReady(t testing.TB) {
	t.Helper()
	for range int(10 * time.Second / often) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.Ops+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return // it has died at once
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-s.server.Ended:
			return
		case <-time.After(often):
		}
	}
}

// list puts a service on the shelf that does so.
func (s *stage) list(t testing.TB, work http.HandlerFunc) {
	t.Helper()
	s.service = s.List(t, slug(s.name), work, map[string]any{"timeout_ms": 5000, "trial_calls_per_day": 1})
}

func slug(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name), "-")
}

func (s *stage) asking() apptest.Asking { return apptest.Ask(s.URL + "/s/" + s.service.Slug + "/work") }

// sign makes the payment of the call, of a fresh wallet that holds the price.
func (s *stage) sign(t testing.TB) {
	t.Helper()
	s.payer = s.Payer(t, apptest.PriceUnits)
	s.header = s.Sign(t, s.payer, s.Challenge(t, s.asking()))
	p, err := payment.Decode(s.header)
	if err != nil {
		t.Fatal(err)
	}
	s.paid = chain.Signed{Asset: p.Accepted.Asset, Signature: p.Signature, Authorization: chain.Authorization{
		From: p.From, To: p.To, Value: p.Value, ValidAfter: p.ValidAfter.Big().Uint64(), ValidBefore: p.ValidBefore.Big().Uint64(), Nonce: p.Nonce}}
}

// A reply is what the caller got: nothing where the server died under its request.
type reply struct {
	status int
	code   string
}

// waits says that the caller is told to send the same payment again.
func (r reply) waits() bool {
	return r.status == 0 || r.code == string(call.InProgress) || r.code == string(call.SettlementPending) || r.code == string(call.Released)
}

// send sends the payment. The reply is empty where the server died under it.
func (s *stage) send(ctx context.Context) reply {
	a := s.asking()
	r, err := http.NewRequestWithContext(ctx, a.Method, a.URL, strings.NewReader(a.Body))
	if err != nil {
		return reply{}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(payment.HeaderSignature, s.header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body) // cut short where the server died after its answer
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem) // a service's own answer has no code
	return reply{response.StatusCode, problem.Code}
}

// dies waits until the server has killed itself.
func (s *stage) dies(t testing.TB) {
	t.Helper()
	s.until(t, "the server dies at "+string(s.point), func() bool {
		select {
		case <-s.server.Ended:
			return true
		default:
			return false
		}
	})
	if !s.server.Killed() {
		t.Fatalf("the server ended as %s and was not killed at %s", s.server.State(), s.point)
	}
}

// until waits for something, looks at the books all the while, and lets time pass for those that wait for it: the sweeper, whose looks get
// rare, and the refund, which needs blocks upon it.
func (s *stage) until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	looks := 0
	eventually(t, what, func() bool {
		s.balanced(t)
		if holds() {
			return true
		}
		if looks++; looks%2 == 0 && s.refunds(t) {
			s.mine(t, 1)
		}
		s.Shift(t, 5*time.Second)
		return false
	})
}

// eventually waits until something holds. It looks less often than most tests do: a server under the race detector is busy as it is.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(often)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("it did not come to this: %s", what)
		case <-tick.C:
		}
	}
}

// balanced looks at the first promise.
func (s *stage) balanced(t testing.TB) {
	t.Helper()
	figures, err := delivery.PromiseOne(t.Context(), s.DB)
	if err != nil {
		t.Fatal(err)
	}
	if !figures.Balanced() {
		t.Fatalf("promise one is broken: %v", figures)
	}
}

// block says whether the token refuses to move the payer's money.
func (s *stage) block(t testing.TB, blocked bool) {
	t.Helper()
	if err := s.Chain.SetBlocked(t.Context(), s.payer.Address(), blocked); err != nil {
		t.Fatal(err)
	}
}

const (
	lookSQL = `
SELECT c.state, coalesce(d.reason, ''), coalesce(r.state, '')
  FROM calls c LEFT JOIN deliveries d ON d.call_id = c.id LEFT JOIN refunds r ON r.call_id = c.id
 WHERE c.payer = $1`

	// holdOffSQL keeps the sweeper from looking at a call, and lets it.
	holdOffSQL = `UPDATE calls SET look_at = market_now() + $2::interval WHERE payer = $1`
)

// books reads how the call stands in the database; nothing where it never got there.
func (s *stage) books(t testing.TB) end {
	t.Helper()
	var e end
	payer := s.payer.Address()
	rows, err := s.DB.Query(t.Context(), lookSQL, payer[:])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&e.state, &e.reason, &e.refund); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return e
}

// look reads how the call stands: in the books, on the chain and at the service.
func (s *stage) look(t testing.TB) end {
	t.Helper()
	e, payer := s.books(t), s.payer.Address()
	e.in, e.out = s.transfers(t, payer, s.Treasury), s.transfers(t, s.Treasury, payer)
	e.asked = s.service.Asked() - s.askedBefore
	return e
}

// refunds says that a refund is on its way.
func (s *stage) refunds(t testing.TB) bool {
	t.Helper()
	e := s.books(t)
	return e.refund != "" && e.refund != confirmed
}

func (s *stage) becomes(t testing.TB, state call.State) {
	t.Helper()
	s.until(t, "the call is "+string(state), func() bool { return s.books(t).state == state })
}

func (s *stage) holdOff(t testing.TB, d time.Duration) {
	t.Helper()
	payer := s.payer.Address()
	if _, err := s.DB.Exec(t.Context(), holdOffSQL, payer[:], d); err != nil {
		t.Fatal(err)
	}
}
