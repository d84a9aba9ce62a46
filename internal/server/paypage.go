package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf16"

	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/payment"
)

// exampleBytesMax is the longest example that is shown in a command.
const exampleBytesMax = 600

// A payPage tells a person what an address sells, for how much, and how to pay. Everything on it is of the listing and nothing of the
// request: what somebody puts into a link is never shown to whoever follows it.
type payPage struct {
	frame
	ways
	Service, Description, Slug string
	Method, URL                string // with the path's parameters in braces
	Prices                     []priceOnPage
	Stream                     bool   // the answer comes as it is made, and is not kept
	Output                     string // an example of the answer
	Try                        string // where a trial call is made; empty where there is none
	TrialsPerDay, TrialsEach   int
}

type priceOnPage struct{ USD, Units, Symbol, Network, Asset, PayTo string }

func (s *Server) writePayPage(c echo.Context, t catalog.Target, challenge payment.Challenge) error {
	return s.writePage(c, http.StatusPaymentRequired, payTemplate, s.payPage(t, challenge))
}

func (s *Server) payPage(t catalog.Target, challenge payment.Challenge) payPage {
	e, offers := t.Endpoint, challenge.Offers()
	page := payPage{
		frame: s.frame(), Service: plain(t.Service.Name), Description: plain(e.Description), Slug: t.Service.Slug, Method: e.Method,
		URL: s.publicURL + "/s/" + t.Service.Slug + e.Path, Prices: pricesOf(offers), Stream: e.Stream,
		ways: s.waysTo(t.Service.Slug, e, offers[0].Amount.USD(offers[0].Asset.Decimals)),
	}
	page.JSON, page.Unlisted = "/api/v1/services/"+t.Service.Slug, true
	if page.TrialsPerDay, page.TrialsEach = s.trialsOffered(t.Service, e); page.TrialsPerDay > 0 {
		page.Try = s.publicURL + "/try/" + t.Service.Slug + e.Path
	}
	if output, ok := asciiJSON(e.OutputExample); ok && len(output) <= exampleBytesMax {
		page.Output = output
	}
	return page
}

func pricesOf(offers []payment.Offer) (prices []priceOnPage) {
	for _, o := range offers {
		prices = append(prices, priceOnPage{USD: o.Amount.USD(o.Asset.Decimals).String(), Units: o.Amount.String(),
			Symbol: plain(o.Asset.Symbol), Network: networkName(o.V1Name, o.Network), Asset: o.Asset.Address.Hex(), PayTo: o.PayTo.Hex()})
	}
	return prices
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
