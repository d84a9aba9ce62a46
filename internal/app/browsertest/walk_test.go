package browsertest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"market/internal/app/apptest"
)

// A person finds a service, reads what it costs and how it is called, makes the call, and finds out what became of it: by typing and clicking.
func TestWalk_FromTheCatalogToAServiceToACall(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	w.List(t, "weather", apptest.Works, map[string]any{"description": "The weather of a city"})
	broken := w.List(t, "broken", apptest.Fails, map[string]any{"description": "The weather of nowhere"})
	payer := w.Payer(t, apptest.PriceUnits)
	failed := w.Pay(t, payer, w.Challenge(t, apptest.Ask(broken.URL)), apptest.Ask(broken.URL)).Call()

	b := openTab(t)
	b.look(1280, "light")
	b.open(w.URL + "/")
	b.reads("2 services", "weather", "broken")
	do(b, "type", chromedp.SendKeys("#query", "nowhere"))
	do(b, "search", chromedp.Click(".filters button"))
	b.reads("1 service.", "broken")
	if at := do(b, "where", chromedp.Location()); !strings.Contains(at, "query=nowhere") {
		t.Errorf("the search is not in the address: %s", at)
	}
	if kept := do(b, "the form", chromedp.Value("#query")); kept != "nowhere" {
		t.Errorf("the form shows %q", kept)
	}
	do(b, "open the service", chromedp.Click(".cards h2 a"))
	b.reads("$0.002", "2000 base units of USDC", "the whole price goes back", "market call ", "curl -gi ", "wrapFetchWithPaymentFromConfig", "resting after a failure", "24 hours")
	do(b, "look for a call", chromedp.Click(`nav a[href="/calls"]`))
	do(b, "type", chromedp.SendKeys("#q", failed+"\n"))
	b.reads("Failed", "upstream_5xx", "The service was asked", "It answered with status 500.", "/work")
	do(b, "why", chromedp.Click(`.steps a[href="/rules#upstream_5xx"]`))
	b.reads("Who pays, and what counts", "The service answered 5xx.")
	do(b, "back to the shelf", chromedp.Click(".brand"))
	b.reads("2 services")

	// Without a mouse: the first thing that the tab key reaches leads past the head of the page.
	do(b, "tab", chromedp.KeyEvent("\t"))
	if first := do(b, "what has the focus", chromedp.Evaluate[string](`document.activeElement.textContent`)); first != "Skip to the content" {
		t.Errorf("the tab key reaches %q first", first)
	}
	b.open(broken.URL)
	b.reads("405", "This address is for programs")
	do(b, "how it is called", chromedp.Click(`main a[href="/services/broken"]`))
	b.reads("The weather of nowhere", "market call ")
	b.open(w.URL + "/services/nobody")
	b.reads("There is nothing here", "404")
	if a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/services/nobody"}, ""); a.Code() != "not_found" {
		t.Errorf("a program gets %d %s", a.Status, a.Body)
	}
}

// reads waits until all of this is on the page: a click returns before the next page is there.
func (b *tab) reads(want ...string) {
	b.t.Helper()
	for _, text := range want {
		apptest.Eventually(b.t, "the page says "+text, func() bool { return strings.Contains(b.text(), text) })
	}
}
