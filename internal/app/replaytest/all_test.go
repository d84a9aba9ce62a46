package replaytest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

func allIncidents() []incident {
	return []incident{{"Everything refuses at once", "facilitator, chain node, mail relay and webhook have no credit left", "whoever wanted to know what stopped had to find out by trying",
		"nobody is asked to pay and nobody is charged; every page is served, and says what is out", allOut}}
}

func allOut(t *testing.T) string {
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	var node *apptest.Front
	m := newMarketWith(t, apptest.Setup{Prepare: func(t testing.TB, chain *devnet.Chain) []string {
		node = apptest.NewFront(t, chain.URL())
		return []string{apptest.NetworksFile(t, 2, node.Prepaid())}
	}}, prepaid(), 8, h)
	h.SetCredit(false)
	m.inbox.Mail.Answer("MAIL", "452 4.5.3 daily quota exceeded")
	m.inbox.Hook.Answer(http.StatusPaymentRequired, nil)
	m.pay(t, m.sign(t, 1)) // finds out that the facilitator is out; the notice of that, that mail and the webhook are
	node.Turn(http.StatusPaymentRequired)

	out := map[string]string{}
	apptest.Eventually(t, "all four are known to be out", func() bool {
		_, answer := m.Admin(t, http.MethodGet, "/api/v1/admin/sources", nil)
		items, _ := answer["items"].([]any)
		for _, item := range items {
			one, _ := item.(map[string]any)
			out[fmt.Sprint(one["name"])] = fmt.Sprint(one["state"])
		}
		return len(out) == 4 && len(slices.Compact(slices.Collect(maps.Values(out)))) == 1 && out["mail"] == "exhausted"
	})
	m.offers(t, false)
	for _, a := range m.pay(t, m.sign(t, 2)) {
		turnedAway(t, "a payment", a)
	}
	pages := []string{"/", "/services/incident", "/rules", "/calls", "/api/v1/services", "/openapi.json"}
	for _, page := range pages {
		a := m.Send(t, apptest.Asking{Method: http.MethodGet, URL: m.URL + page, Header: http.Header{"Accept": {"text/html"}, "User-Agent": {"Mozilla/5.0"}}}, "")
		if a.Status != http.StatusOK {
			t.Errorf("%s answers %d", page, a.Status)
		}
		if page == "/" && (!strings.Contains(string(a.Body), "No payment can be taken just now") || strings.Contains(string(a.Body), "hosted-a")) {
			t.Errorf("the catalog does not say that nobody can pay, or names who is out:\n%s", a.Body)
		}
	}
	return fmt.Sprintf("%d sources out, 0 payments charged, %d of %d pages served", len(out), len(pages), len(pages))
}
