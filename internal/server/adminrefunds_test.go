package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/chain"
)

// parked is a refund that could not be sent.
func (h *house) parked(t *testing.T) call.ID {
	t.Helper()
	id := h.pays(t, h.sell(t, "weather", uuid.UUID{}), testPayer, true)
	const parkSQL = `UPDATE refunds SET state = 'parked', why = 'the token refused it: <b>blocklisted</b>', next_at = market_now() + interval '1 minute' WHERE call_id = $1`
	if _, err := h.db.Exec(t.Context(), parkSQL, id); err != nil {
		t.Fatal(err)
	}
	return id
}

// ordered sends an order of an admin.
func (h *house) ordered(address, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, address, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+signInToken)
	answer := httptest.NewRecorder()
	h.Public().Handler.ServeHTTP(answer, r)
	return answer
}

func TestAdminRefunds_AParkedOneIsListedAndRetriedOnce(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.networks = []chain.Network{testNetwork}
	id := h.parked(t)
	h.pays(t, h.sell(t, "elsewhere", uuid.UUID{}), testPayer, true) // owed, and not parked
	d := openDocument(t)
	const at = "/api/v1/admin/refunds"
	list := func(state string) (items []adminRefundView) {
		t.Helper()
		answer := h.told(visit{bearer: signInToken}, at+"?state="+state)
		var page struct {
			Items []adminRefundView `json:"items"`
		}
		decodeAnswer(t, answer, &page)
		d.describedAs(t, "the refunds that are "+state, at, http.MethodGet, answer)
		return page.Items
	}
	if got := list("parked"); len(got) != 1 || got[0].Call != id || got[0].To != testPayer.Hex() || got[0].NextAt == "" {
		t.Errorf("parked: %+v, want that of %s", got, id)
	}
	const retry = at + "/{id}/retry"
	address := at + "/" + id.String() + "/retry"
	for _, no := range []struct {
		address, body string
		status        int
	}{
		{address, `{}`, http.StatusUnprocessableEntity},
		{address, `{"reason":"x","state":"confirmed"}`, http.StatusUnprocessableEntity},
		{at + "/" + call.NewID().String() + "/retry", `{"reason":"x"}`, http.StatusNotFound},
	} {
		answer := h.ordered(no.address, no.body)
		if answer.Code != no.status {
			t.Errorf("%s: %d, want %d", no.body, answer.Code, no.status)
		}
		d.describedAs(t, no.body, retry, http.MethodPost, answer)
	}
	first := h.ordered(address, `{"reason":"the treasury was filled"}`)
	if first.Code != http.StatusOK {
		t.Fatalf("%d %s", first.Code, first.Body)
	}
	d.describedAs(t, "the first", retry, http.MethodPost, first)
	second := h.ordered(address, `{"reason":"me too"}`)
	if second.Code != http.StatusConflict || !strings.Contains(second.Body.String(), "by admin token") || !strings.Contains(second.Body.String(), "the treasury was filled") {
		t.Errorf("the second: %d %s, want a conflict that names the first", second.Code, second.Body)
	}
	d.describedAs(t, "the second", retry, http.MethodPost, second)
	if got := list("parked"); len(got) != 0 {
		t.Errorf("still parked: %+v", got)
	}
	if got := list("owed"); len(got) != 2 {
		t.Errorf("%d are owed, want both", len(got))
	}
}

func TestAdminRefundsPage_DecidesAsTheAPIDoes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.networks = []chain.Network{testNetwork}
	id := h.parked(t)
	session := openSession(h.at)
	cookie := session.value(signInToken)
	page := func() string {
		t.Helper()
		answer := h.told(visit{cookie: [2]string{h.sessionCookie(), cookie}}, adminRefundsPath)
		if answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		return answer.Body.String()
	}
	if body := page(); !strings.Contains(body, id.String()) || strings.Contains(body, "<b>blocklisted") || !strings.Contains(body, "$0.002") {
		t.Errorf("the page does not show the refund, or does as it is not: %s", body)
	}
	send := func(reason string) (int, string) {
		t.Helper()
		answer := h.post(adminRefundsPath, h.sessionCookie(), cookie, url.Values{"form": {session.formToken(signInToken)}, "action": {"retry"}, "call": {id.String()}, "reason": {reason}})
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if status, body := send(""); status != http.StatusUnprocessableEntity || !strings.Contains(body, `aria-invalid="true"`) {
		t.Errorf("without a reason: %d %s", status, body)
	}
	if status, _ := send("the treasury was filled"); status != http.StatusSeeOther {
		t.Errorf("with one: %d, want 303", status)
	}
	if status, body := send("me too"); status != http.StatusConflict || !strings.Contains(body, "Nothing was changed.") || !strings.Contains(body, "the treasury was filled") {
		t.Errorf("a second time: %d %s", status, body)
	}
	if body := page(); !strings.Contains(body, "No refund is parked") {
		t.Errorf("the page does not say that none is parked: %s", body)
	}
}

func TestAdminReviews_AreListed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.networks = []chain.Network{testNetwork}
	id := h.pays(t, h.sell(t, "weather", uuid.UUID{}), testPayer, false)
	if _, err := h.db.Exec(t.Context(), `UPDATE calls SET review = true WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	const at = "/api/v1/admin/reviews"
	answer := h.told(visit{bearer: signInToken}, at)
	if !strings.Contains(answer.Body.String(), id.String()) {
		t.Errorf("%d %s, want the call", answer.Code, answer.Body)
	}
	openDocument(t).describedAs(t, "the reviews", at, http.MethodGet, answer)
	shown := h.told(visit{cookie: [2]string{h.sessionCookie(), openSession(h.at).value(signInToken)}}, adminRefundsPath)
	if body := shown.Body.String(); !strings.Contains(body, "review-"+id.String()) || !strings.Contains(body, "The chain is being asked") {
		t.Errorf("%d, and the page does not show the review: %s", shown.Code, body)
	}
}
