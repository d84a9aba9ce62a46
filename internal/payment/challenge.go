package payment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"market/internal/wire"
)

const (
	// headerBytesWrittenMax keeps the challenge below what proxies and clients accept of one header.
	headerBytesWrittenMax = 4096
	challengeBytesMax     = headerBytesWrittenMax / 4 * 3 // before base64

	acceptsMax = 3
)

// ErrChallengeTooBig is a challenge that does not fit its header even without a description.
var ErrChallengeTooBig = errors.New("the challenge does not fit its header")

// A Resource is what is paid for. URL is absolute and built from our public URL; Description and MimeType come from the listing.
type Resource struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mimeType,omitempty"`
}

type required struct {
	X402Version int            `json:"x402Version"`
	Error       Code           `json:"error"`
	Resource    Resource       `json:"resource"`
	Accepts     []requirements `json:"accepts"`
	// Extensions come last: they are what is left out first.
	Extensions json.RawMessage `json:"extensions,omitempty"`
}

// Clients re-encode an entry through fixed structs of their own, so everything that is ours goes into extra.
type requirements struct {
	Scheme            string `json:"scheme"`
	Network           string `json:"network"`
	Amount            string `json:"amount"`
	Asset             string `json:"asset"`
	PayTo             string `json:"payTo"`
	MaxTimeoutSeconds int    `json:"maxTimeoutSeconds"`
	Extra             extra  `json:"extra"`
}

type extra struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	PaymentFlow string `json:"paymentFlow"`
}

// extraOf is what a payment has to echo of our extra, member by member.
func extraOf(o Offer) extra {
	return extra{Name: o.Asset.EIP712Name, Version: o.Asset.EIP712Version, PaymentFlow: paymentFlow}
}

// A Challenge is the 402 answer of one endpoint: the header for x402 v2 and the body for v1. It does not change with the request, so it is
// worth keeping for as long as the price holds; it is safe for concurrent use.
type Challenge struct {
	resource   Resource
	offers     []Offer
	accepts    []requirements
	extensions json.RawMessage // as chosen; nil where the header has no room for any
	chosen     filling
	v1         []V1Requirements
	unpaid     string // the header for Unpaid, which nearly every answer needs
}

// NewChallenge takes 1 to 3 offers in the order of our preference, all of the current price. What does not fit the header is left out, in
// the order that fillings has. ErrChallengeTooBig where the terms alone do not fit.
func NewChallenge(r Resource, offers []Offer, more ...Addition) (Challenge, error) {
	if len(offers) < 1 || len(offers) > acceptsMax {
		return Challenge{}, fmt.Errorf("challenge: %d offers, not 1 to %d", len(offers), acceptsMax)
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || !isASCII(r.URL) {
		return Challenge{}, errors.New("challenge: the resource's URL is not absolute http(s) in ASCII")
	}
	c := Challenge{resource: r, offers: slices.Clone(offers)}
	for _, o := range offers {
		c.accepts = append(c.accepts, requirementsOf(o))
	}
	var a additions
	for _, add := range more {
		add(&a)
	}
	if err := c.fill(a); err != nil {
		return Challenge{}, err
	}
	c.v1 = v1Accepts(c.resource, offers, a.bazaar.V1())
	c.unpaid = wire.EncodeBase64(c.json(Unpaid))
	return c, nil
}

func requirementsOf(o Offer) requirements {
	return requirements{
		Scheme: scheme, Network: o.Network, Amount: o.Amount.String(), Asset: o.Asset.Address.Hex(), PayTo: o.PayTo.Hex(),
		MaxTimeoutSeconds: o.MaxTimeoutSeconds, Extra: extraOf(o),
	}
}

// Header is the value of PAYMENT-REQUIRED, with Unpaid or with what was wrong with the payment. It is never longer than 4 KiB.
func (c Challenge) Header(code Code) string {
	if code == Unpaid {
		return c.unpaid
	}
	return wire.EncodeBase64(c.json(code.or(CodeUnexpected)))
}

func (c Challenge) json(code Code) []byte {
	return encodeJSON(required{X402Version: 2, Error: code, Resource: c.resource, Accepts: c.accepts, Extensions: c.extensions})
}

// longestCode is what room is left for, so that every variant of a challenge has the same resource and extensions.
var longestCode = Code(strings.Repeat("x", codeBytesMax))

// fits says whether the challenge fits its header with a description.
func (c Challenge) fits(description string) bool {
	c.resource.Description = description
	return len(c.json(longestCode)) <= challengeBytesMax
}

// fittingDescription cuts at a rune boundary.
func (c Challenge) fittingDescription(description string) (string, error) {
	if !c.fits("") {
		return "", ErrChallengeTooBig
	}
	if len(description) <= challengeBytesMax && c.fits(description) {
		return description, nil
	}
	// JSON may need more bytes than the text and never fewer, so longer prefixes need more room: the cut can be searched for.
	low, high := 0, min(len(description), challengeBytesMax)
	for low < high {
		middle := (low + high + 1) / 2
		if c.fits(cut(description, middle)) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return cut(description, low), nil
}

const ellipsis = "..."

// cut returns at most n bytes of s that end with a whole rune, and a sign that something is missing; nothing at all for n = 0.
func cut(s string, n int) string {
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	if n == 0 {
		return ""
	}
	return s[:n] + ellipsis
}

// encodeJSON leaves <, > and & as they are: they are harmless in a header and cost six bytes each otherwise.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("payment: encode a struct of strings and numbers: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
