package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/payment"
	"market/web"
)

var payTemplate = template.Must(template.ParseFS(web.Templates, "templates/pay.html", "templates/style.html"))

// exampleBytesMax is the longest example that is shown in a command.
const exampleBytesMax = 600

// A payPage tells a person what an address sells, for how much, and how to pay. Everything on it is of the listing and nothing of the
// request: what somebody puts into a link is never shown to whoever follows it.
type payPage struct {
	Service, Description string
	Method, URL          string // with the path's parameters in braces
	Prices               []priceOnPage
	Market, Curl, Fetch  string // commands to copy; see shellQuote
	AboveStock           bool   // the official client refuses the price unless it is told otherwise
	Filled               bool   // they have the listing's own example in them
	Stream               bool   // the answer comes as it is made, and is not kept
	Output               string // an example of the answer
	Try                  string // where a trial call is made; empty where there is none
	TrialsPerDay         int
	Record               string // the listing as JSON
}

type priceOnPage struct{ USD, Units, Symbol, Network, PayTo string }

// byBrowser says whether a person looks at a priced address with a browser. The caller has seen that no payment is there.
func byBrowser(r *http.Request) bool {
	return wantsPage(r) && strings.Contains(r.UserAgent(), "Mozilla")
}

func (s *Server) writePayPage(c echo.Context, t catalog.Target, challenge payment.Challenge) error {
	var body bytes.Buffer
	if err := payTemplate.Execute(&body, s.payPage(t, challenge)); err != nil {
		return fmt.Errorf("render the terms of %s: %w", t.Service.Slug, err)
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	limitWrite(c)
	return c.HTMLBlob(http.StatusPaymentRequired, body.Bytes())
}

func (s *Server) payPage(t catalog.Target, challenge payment.Challenge) payPage {
	e := t.Endpoint
	page := payPage{
		Service: plain(t.Service.Name), Description: plain(e.Description), Method: e.Method, URL: s.publicURL + "/s/" + t.Service.Slug + e.Path,
		TrialsPerDay: e.TrialCallsPerDay, Stream: e.Stream, Record: s.publicURL + "/api/v1/services/" + t.Service.Slug,
	}
	for _, o := range challenge.Offers() {
		network := o.Network
		if o.V1Name != "" {
			network = o.V1Name + " (" + o.Network + ")"
		}
		page.Prices = append(page.Prices, priceOnPage{USD: o.Amount.USD(o.Asset.Decimals).String(), Units: o.Amount.String(),
			Symbol: plain(o.Asset.Symbol), Network: network, PayTo: o.PayTo.Hex()})
	}
	example := exampleOf(e)
	page.Filled = example.filled
	if price, priced := e.Price(); priced {
		page.AboveStock = price.AboveStock()
	}
	at := s.publicURL + "/s/" + t.Service.Slug + example.path
	if e.TrialCallsPerDay > 0 {
		page.Try = s.publicURL + "/try/" + t.Service.Slug + e.Path
	}
	page.Market = "market call " + shellQuote(at) + example.flags() + " --max-usd " + page.Prices[0].USD
	page.Curl = "curl -gi " + shellQuote(at) + example.flags()
	if e.Method == http.MethodHead {
		page.Curl = "curl -gI " + shellQuote(at)
	}
	if catalog.TakesBody(e.Method) {
		page.Curl += " -H 'Content-Type: application/json'"
	}
	page.Fetch = fmt.Sprintf(fetchExample, scriptQuote(at)+example.options())
	if output, ok := asciiJSON(e.OutputExample); ok && len(output) <= exampleBytesMax {
		page.Output = output
	}
	return page
}

// fetchExample is a program for the official client.
const fetchExample = `import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPaymentFromConfig } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const account = privateKeyToAccount(process.env.PRIVATE_KEY);
const pay = wrapFetchWithPaymentFromConfig(fetch, {
  schemes: [{ network: "eip155:*", client: new ExactEvmScheme(account) }],
});
const response = await pay(%s);
console.log(response.status, await response.text());`

// shellQuote makes a provider's words one harmless word of a command that a person copies into a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// scriptQuote makes them a string of a script.
func scriptQuote(s string) string {
	text, _ := asciiJSON(encoded(s))
	return text
}

func encoded(s string) json.RawMessage {
	text, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return text
}

// asciiJSON writes JSON with every other character escaped, so that none can make a line look like another one than it is.
func asciiJSON(raw json.RawMessage) (string, bool) {
	var compact bytes.Buffer
	if len(raw) == 0 || json.Compact(&compact, raw) != nil {
		return "", false
	}
	var b strings.Builder
	for _, r := range compact.String() {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String(), true
}

// plain takes out what is not shown, and what turns the direction of the text around it.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
