package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"market/internal/chain"
)

const (
	moneyAPI = "/api/v1/admin/money"

	provedSQL = `
UPDATE calls SET state = 'settled', payment_state = 'final', transaction = decode(repeat('aa', 32), 'hex'), log_index = 1, block_number = 9, block_hash = decode(repeat('bb', 32), 'hex')`

	// A wallet as a look that found nothing leaves it.
	lookedAtSQL = `
INSERT INTO wallets (network, asset, treasury, opening_block, opening_balance, scanned_block, scanned_hash, held_block, held, agreed_block, agreed_books, compared_at)
SELECT network, asset, treasury, 5, 1000, 1210, decode(repeat('ab', 32), 'hex'), 1210, 3000, 1210, 0, market_now() FROM calls LIMIT 1`

	differentSQL = `
INSERT INTO differences (network, asset, treasury, kind, subject, text, since, closed_at)
SELECT network, asset, treasury, 'outflow', '0xab/3', '7 went to <b>nobody</b>', market_now() - interval '20 minutes', market_now() - interval '5 minutes' FROM wallets
UNION ALL
SELECT network, asset, treasury, 'inflow', '0xac/3', '9 came from a stranger', market_now() - interval '3 hours', NULL FROM wallets`

	// One that is named is not shown twice.
	suspectedSQL = `
INSERT INTO suspicions (network, asset, treasury, kind, subject, text)
SELECT network, asset, treasury, 'outflow', subject, text FROM wallets, (VALUES ('0xab/3', '7 went to nobody'), ('0xad/1', '8 went to somebody')) v (subject, text)`
)

// treasurer is an admin who looks where the money is.
type treasurer struct {
	*house
	cookie, form string
	looks        int
	fails        error // what a look at the chain returns
}

func newTreasurer(t *testing.T) *treasurer {
	t.Helper()
	h := newHouse(t)
	h.networks = []chain.Network{testNetwork}
	session := openSession(h.at)
	a := &treasurer{house: h, cookie: session.value(signInToken), form: session.formToken(signInToken)}
	h.reconcile = func(context.Context) error {
		a.looks++
		return a.fails
	}
	return a
}

func (a *treasurer) page(t *testing.T) string {
	t.Helper()
	answer := a.told(visit{cookie: [2]string{a.sessionCookie(), a.cookie}}, adminMoneyPath)
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

func (a *treasurer) exec(t *testing.T, sql string) {
	t.Helper()
	if _, err := a.db.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// expects fails where the page has not what is wanted, or has what is not.
func expects(t *testing.T, when, body string, has, hasNot []string) {
	t.Helper()
	for _, want := range has {
		if !strings.Contains(body, want) {
			t.Errorf("%s: %q is not on the page\n%s", when, want, body)
		}
	}
	for _, no := range hasNot {
		if strings.Contains(body, no) {
			t.Errorf("%s: %q is on the page", when, no)
		}
	}
}

func TestAdminMoneyPage_SaysWhereAllMoneyIsAndWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := newTreasurer(t)
	d := openDocument(t)
	described := func(when string) {
		t.Helper()
		d.describedAs(t, when, moneyAPI, http.MethodGet, a.told(visit{bearer: signInToken}, moneyAPI))
	}
	expects(t, "empty", a.page(t), []string{"Nothing is wrong.", "No money has moved yet"}, []string{"What differs", "Treasuries"})
	described("nothing")

	a.pays(t, a.sell(t, "weather", uuid.UUID{}), testPayer, false)
	a.exec(t, provedSQL)
	a.exec(t, lookedAtSQL)
	expects(t, "fine", a.page(t), []string{"Nothing is wrong.", "adds up", "Refund owed", "$0.002", "Calls without an outcome", "−$0.002", "at block 1210", "looked at"},
		[]string{"No money has moved", "What differs", "Nobody new is asked", "role=\"alert\""})
	described("one call")

	a.exec(t, differentSQL)
	a.exec(t, suspectedSQL)
	body := a.page(t)
	expects(t, "different", body, []string{"1 thing is wrong.", "7 went to &lt;b&gt;nobody", "For 20 minutes", "For 3 hours", "Nobody new is asked to pay on", "the network is closed",
		"in suspense, closes nothing", "8 went to somebody", "seen just now"}, []string{"<b>nobody", "Nothing is wrong"})
	if n := strings.Count(body, "7 went to"); n != 3 { // among what is wrong, what closes, and what differs
		t.Errorf("what differs is said %d times, want 3", n)
	}
	described("what differs")
}

func TestAdminMoneyPage_LooksAtTheChainForWhoeverHasItsForm(t *testing.T) {
	t.Parallel()
	a := newTreasurer(t)
	send := func(form url.Values) *http.Response { return a.post(adminMoneyPath, a.sessionCookie(), a.cookie, form) }
	if answer := send(url.Values{"form": {"of somebody else"}}); answer.StatusCode != http.StatusForbidden || a.looks != 0 {
		t.Errorf("without its form: %d, and %d looks; want 403, and none", answer.StatusCode, a.looks)
	}
	answer := send(url.Values{"form": {a.form}})
	if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || to != adminMoneyPath+"?done=reconcile" || a.looks != 1 {
		t.Errorf("%d to %q, and %d looks; want 303 to the page, and one", answer.StatusCode, to, a.looks)
	}
	a.fails = errors.New("the node is out")
	if answer := send(url.Values{"form": {a.form}}); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("where the chain cannot be read: %d, want 503", answer.StatusCode)
	}
}
