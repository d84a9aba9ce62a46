package replaytest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
)

func creditIncidents() []incident {
	const title = "Nine days without a paid source"
	return []incident{
		{title, "a facilitator has no credit left for nine days and is topped up at 11:20 on the tenth",
			"each midnight bought one request that met the same refusal; nothing crashed, and nobody was told",
			"one mail on the first day, one request an hour from the whole fleet, payments refused with 503 and uncharged, refunds put off; everything goes on by 12:00, with one mail more",
			nineDays},
		{title, "the same where a second facilitator is configured", "work stopped, though somebody else could have done it",
			"every call is served through the second one; the first is still asked once an hour", secondFacilitator},
		{title, "the same with a quota that begins anew at midnight", "the flag that ended at midnight was right for this kind alone",
			"one request a day, after midnight", dailyQuota},
	}
}

const (
	days  = 9
	topUp = 20 * time.Minute // after 11:00
	// refuses is what the subject of the mail says.
	refuses = "[market] Facilitator hosted-a refuses us"
)

func nineDays(t *testing.T) string {
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	m := newMarket(t, prepaid(), 1<<16, h)
	owed := m.oweRefunds(t, h, 2)

	// Day one, shortly after midnight: the balance is gone.
	h.SetCredit(false)
	first := m.pay(t, m.sign(t, 8))
	m.offers(t, false)
	heard := h.Heard.Load()
	for _, a := range first {
		if a.Code() != "settlement_pending" {
			turnedAway(t, "a payment when the balance ended", a)
		}
	}
	many, few := size(t, 64, 64), size(t, 2, 64)
	asked, refused := 0, 0
	out := size(t, 3, days)
	for hour := 1; hour < out*24+12; hour++ {
		m.Shift(t, time.Hour)
		m.offersOrAsked(t, h, heard+1)
		requesters := few
		if hour%24 == 12 {
			requesters = many
		}
		for _, a := range m.pay(t, m.sign(t, requesters)) {
			if a.Code() != "settlement_pending" { // the one that tested has been seen by the facilitator
				turnedAway(t, "a payment during the outage", a)
				refused++
			}
		}
		m.tested(t, h, heard)
		if heard++; h.Heard.Load() != heard {
			t.Fatalf("hour %d: the facilitator heard %d requests too many", hour, h.Heard.Load()-heard)
		}
		asked++
		if hour%24 == 0 {
			m.lapse(t) // what was shown to it in vain can not be used any more
		}
	}
	if n, all := m.mails(refuses), len(m.inbox.Mail.Mails()); n != 1 || all != 1 {
		t.Errorf("%d mails in %d days, %d of them about the facilitator; want one: %q", all, out, n, m.subjects())
	}
	text := m.inbox.Mail.Mails()[0].Body
	for what, part := range map[string]string{"what": "hosted-a refuses us", "effect": "refused with 503 and nobody is charged; refunds there wait", "link": billing,
		"next try": "We try it again at", "that waiting work stays": "queued", "page": "/admin/sources"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), part) {
			t.Errorf("the mail does not say %s (%q):\n%s", what, part, text)
		}
	}
	m.stillOwed(t, owed)

	// Day ten, 11:20: somebody pays the bill. At 12:00 the next request finds out.
	m.Shift(t, topUp)
	h.SetCredit(true)
	h.Does(apptest.Settles)
	m.Shift(t, time.Hour-topUp)
	for _, id := range owed {
		m.AwaitRefund(t, id)
	}
	m.offers(t, true)
	served := m.pay(t, m.sign(t, usual/2)) // the level of before
	for _, a := range served {
		expect(t, "a call after the outage", a, http.StatusOK, "")
	}
	apptest.Eventually(t, "the operator is told that it is over", func() bool { return m.mails("over:") == 1 })
	m.lapse(t)
	m.AwaitEnds(t)
	if all := len(m.inbox.Mail.Mails()); all != 2 {
		t.Errorf("%d mails in all, want one of the outage and one of its end: %q", all, m.subjects())
	}

	// The next outage is told again.
	h.SetCredit(false)
	m.pay(t, m.sign(t, 1))
	apptest.Eventually(t, "the operator is told of the next outage", func() bool { return m.mails(refuses) == 2 })
	return fmt.Sprintf("%d windows, %d requests to the facilitator, %d payments turned away, %d refunds put off and sent, 1 mail and 1 recovery", asked, asked, refused, len(owed))
}

// offersOrAsked waits until the end of the window is known: people are asked to pay again, or somebody was faster and has tested.
func (m *market) offersOrAsked(t *testing.T, h *apptest.Hosted, heard int32) {
	t.Helper()
	for _, w := range m.replicas {
		apptest.Eventually(t, "the window has ended", func() bool {
			return h.Heard.Load() >= heard || w.Send(t, w.At(t, m.ask), "").Status == http.StatusPaymentRequired
		})
	}
}

// tested waits until the test of a window was made and its refusal is kept: what would be kept after the next hour has passed would be another one's.
func (m *market) tested(t *testing.T, h *apptest.Hosted, heard int32) {
	t.Helper()
	const keptSQL = `SELECT coalesce(refused_at >= exhausted_at, false) FROM source_state WHERE source = $1`
	apptest.Eventually(t, "the source has been tested in this window", func() (kept bool) {
		if err := m.DB.QueryRow(t.Context(), keptSQL, hosted).Scan(&kept); err != nil {
			t.Fatal(err)
		}
		return kept && h.Heard.Load() > heard
	})
}

// oweRefunds has calls fail whose refunds the facilitator does not take.
func (m *market) oweRefunds(t *testing.T, h *apptest.Hosted, n int) (ids []string) {
	t.Helper()
	h.Does(func(s apptest.Settling) {
		if s.Signed.From == m.Treasury {
			apptest.Replies(http.StatusPaymentRequired, `{"error":"out of credit"}`)(s)
			return
		}
		apptest.Settles(s)
	})
	m.service.Do(apptest.Fails)
	for _, a := range m.pay(t, m.sign(t, n)) {
		if a.Call() == "" || a.Refund("state") == "" {
			t.Fatalf("a call that fails: %d %s", a.Status, a.Body)
		}
		ids = append(ids, a.Call())
	}
	m.service.Do(apptest.Works)
	const waitSQL = `SELECT count(*) FROM refunds WHERE waits_for = $1`
	apptest.Eventually(t, "the refunds wait for the facilitator", func() bool {
		var wait int
		if err := m.DB.QueryRow(t.Context(), waitSQL, hosted).Scan(&wait); err != nil {
			t.Fatal(err)
		}
		return wait == n
	})
	return ids
}

// attemptsMax is how many attempts a refund may count after the outage, which has many more windows. Here an hour passes within a second: a refusal that
// is read after the end of its window is no known outage any more, and counts.
const attemptsMax = days * 4

// stillOwed sees that refunds are put off, that none of them has failed, and that the outage is not counted as attempts.
func (m *market) stillOwed(t *testing.T, ids []string) {
	t.Helper()
	const owedSQL = `SELECT coalesce(string_agg(format('%s waiting for %s, in %s, after %s attempts', state, waits_for, next_at - market_now(), attempts), '; '), ''),
       count(*) FILTER (WHERE waits_for = $1 AND attempts <= $2 AND state NOT IN ('confirmed', 'void')) FROM refunds`
	var (
		rows string
		wait int
	)
	defer func() {
		if t.Failed() {
			t.Logf("of %d refunds %d are put off: %s", len(ids), wait, rows)
		}
	}()
	// One that is just being looked at waits for nothing until it is put off again.
	apptest.Eventually(t, "all refunds are put off", func() bool {
		if err := m.DB.QueryRow(t.Context(), owedSQL, hosted, attemptsMax).Scan(&rows, &wait); err != nil {
			t.Fatal(err)
		}
		return wait == len(ids)
	})
}

func secondFacilitator(t *testing.T) string {
	first, second := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles), apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	says := prepaid()
	says["guard"] = map[string]any{"floor": 10_000, "surge": 3} // the second one has no week behind it
	m := newMarket(t, says, 1<<14, first, second)
	first.SetCredit(false)
	hours, calls := size(t, 12, 72), size(t, 2, 4)
	expect(t, "the payment that finds it out", m.pay(t, m.sign(t, 1))[0], http.StatusOK, "")
	apptest.Eventually(t, "the operator is told", func() bool { return m.mails(refuses) == 1 })
	heard, served := first.Heard.Load(), 1
	for hour := range hours + 1 {
		m.Shift(t, time.Hour)
		apptest.Eventually(t, "the first one has been tested in this hour", func() bool {
			for _, a := range m.pay(t, m.sign(t, calls)) {
				expect(t, "a call", a, http.StatusOK, "")
				served++
			}
			return first.Heard.Load() > heard
		})
		if hour == 0 { // a process that had not read of the refusal yet may have asked it what it supports
			heard = first.Heard.Load()
			continue
		}
		if heard++; first.Heard.Load() != heard {
			t.Fatalf("hour %d: the first facilitator heard %d requests too many", hour, first.Heard.Load()-heard)
		}
	}
	if all := len(m.inbox.Mail.Mails()); all != 1 || !strings.Contains(m.inbox.Mail.Mails()[0].Body, "hosted-b") {
		t.Errorf("want one mail, which names who has taken over: %q", m.subjects())
	}
	return fmt.Sprintf("%d windows, %d requests to the first, %d of %d calls served through the second", hours, hours, served, served)
}

func dailyQuota(t *testing.T) string {
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	says := prepaid()
	says["runs_out"] = "daily"
	m := newMarket(t, says, 1<<12, h)
	m.Shift(t, 6*time.Hour) // six in the morning
	h.SetCredit(false)
	m.pay(t, m.sign(t, 1))
	m.offers(t, false)
	heard := h.Heard.Load()
	whole := size(t, 3, days)
	for quarter := 1; quarter <= 4*whole; quarter++ {
		m.Shift(t, 6*time.Hour)
		midnight := (quarter+1)%4 == 0
		if midnight {
			m.offersOrAsked(t, h, heard+1)
		}
		for _, a := range m.pay(t, m.sign(t, 8)) {
			if !midnight || a.Code() != "settlement_pending" {
				turnedAway(t, "a payment", a)
			}
		}
		if midnight {
			heard++
		}
		if h.Heard.Load() != heard {
			t.Fatalf("quarter %d: the facilitator heard %d requests, want %d", quarter, h.Heard.Load(), heard)
		}
	}
	if n := m.mails(refuses); n != 1 {
		t.Errorf("%d mails, want one: %q", n, m.subjects())
	}
	return fmt.Sprintf("%d days, %d requests, each after midnight", whole, whole)
}
