package replaytest

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/payment"
)

const (
	hosted  = "facilitator/hosted-a"
	billing = "https://facilitator.example/billing"
	// signedFor is how long a payment of these tests may be used, in seconds of the chain.
	signedFor = 110
	// refundFor is how long a refund may be sent, in the same.
	refundFor = 600
	// usual is how many units a normal day took before the incident.
	usual = 40
)

// A market is two replicas that settle through somebody else, whose operator reads mail.
type market struct {
	*apptest.World
	replicas []*apptest.World
	inbox    *apptest.Inbox
	service  *apptest.Service
	ask      apptest.Asking
	payer    chain.Key
	terms    payment.Required
}

// newMarket opens one at the beginning of a day, after a week of normal ones. What says holds for all of its facilitators.
func newMarket(t *testing.T, says map[string]any, payments uint64, all ...*apptest.Hosted) *market {
	t.Helper()
	return newMarketWith(t, apptest.Setup{}, says, payments, all...)
}

func newMarketWith(t *testing.T, setup apptest.Setup, says map[string]any, payments uint64, all ...*apptest.Hosted) *market {
	t.Helper()
	m := &market{inbox: apptest.NewInbox(t)}
	env := append([]string{apptest.FacilitatorsFile(t, says, false, all...), "MARKET_GAS_KEY="}, m.inbox.Env...)
	setup.Burst, setup.Quiet = 1<<20, true
	m.World = apptest.StartWith(t, setup, env...)
	for _, h := range all {
		h.Open(t, m.World)
	}
	m.service = m.List(t, "incident", apptest.Works, nil)
	m.ask = apptest.Ask(m.service.URL)
	m.payer = m.Payer(t, payments*apptest.PriceUnits)
	m.ShiftInto(t, "day", 24*time.Hour, 0)
	const weekSQL = `INSERT INTO source_days (source, day, used) SELECT $1, (market_now() AT TIME ZONE 'UTC')::date - n, $2 FROM generate_series(1, 7) n`
	if _, err := m.DB.Exec(t.Context(), weekSQL, hosted, usual); err != nil {
		t.Fatal(err)
	}
	m.replicas = []*apptest.World{m.World, m.Replica(t)}
	m.offers(t, true) // after a day has passed at once, it takes a heartbeat
	m.terms = m.Challenge(t, m.ask)
	return m
}

// prepaid is how a facilitator is configured that runs out of a balance.
func prepaid() map[string]any {
	return map[string]any{"metered": true, "runs_out": "prepaid", "budget_url": billing, "unit_usd": "0.001", "guard": map[string]any{"floor": 20, "surge": 3}}
}

// sign returns so many payments.
func (m *market) sign(t *testing.T, n int) []string {
	headers := make([]string, n)
	for i := range headers {
		headers[i] = m.SignFor(t, m.payer, m.terms, signedFor)
	}
	return headers
}

// pay sends payments at once, in turn to each replica, and returns the answers.
func (m *market) pay(t *testing.T, headers []string) []apptest.Answer {
	answers := make([]apptest.Answer, len(headers))
	var wg sync.WaitGroup
	for i, header := range headers {
		w := m.replicas[i%len(m.replicas)]
		wg.Go(func() { answers[i] = w.Send(t, w.At(t, m.ask), header) })
	}
	wg.Wait()
	return answers
}

// offers waits until every replica asks people to pay, or until none does.
func (m *market) offers(t *testing.T, yes bool) {
	t.Helper()
	want := http.StatusServiceUnavailable
	if yes {
		want = http.StatusPaymentRequired
	}
	for _, w := range m.replicas {
		apptest.Eventually(t, "the replica says whether anybody can pay", func() bool { return w.Send(t, w.At(t, m.ask), "").Status == want })
	}
}

// lapse lets the time of all payments and refunds pass that were signed until now: a refund of which a little is left waits for the rest of it, and no block
// comes in an outage.
func (m *market) lapse(t *testing.T) {
	t.Helper()
	head, err := m.Chain.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.Lapse(t, head.Time+refundFor+60, 2)
}

// subjects are those of the operator's mails.
func (m *market) subjects() (all []string) {
	for _, mail := range m.inbox.Mail.Mails() {
		all = append(all, mail.Header.Get("Subject"))
	}
	return all
}

// mails counts the operator's mails whose subject has a text.
func (m *market) mails(text string) (n int) {
	for _, subject := range m.subjects() {
		if strings.Contains(subject, text) {
			n++
		}
	}
	return n
}

// turnedAway checks an answer to a payment that a source's outage met: nothing was charged, and it is told until when.
func turnedAway(t *testing.T, what string, a apptest.Answer) {
	t.Helper()
	if a.Status != http.StatusServiceUnavailable || a.Code() != "not_ready" || a.JSON["charged"] != false || a.Header.Get("Retry-After") == "" ||
		a.Header.Get(payment.HeaderRequired) != "" {
		t.Errorf("%s: %d %s; want 503 not_ready, uncharged", what, a.Status, a.Body)
	}
}
