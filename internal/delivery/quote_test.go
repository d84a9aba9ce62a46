package delivery

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/shopspring/decimal"

	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/readiness"
)

// asking is a path that quotes the endpoints of one service, without a database, at a time that the test sets.
type asking struct {
	*Path
	now     time.Time
	service *catalog.Service
}

func newAsking(t testing.TB) *asking {
	t.Helper()
	raw, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := chain.ParseKey(hex.EncodeToString(crypto.FromECDSA(raw)))
	if err != nil {
		t.Fatal(err)
	}
	a := &asking{now: time.Unix(1_790_000_000, 0), service: &catalog.Service{Slug: "weather", Name: "Weather", State: catalog.Listed}}
	usdc := chain.Asset{Address: common.Address{0x5d}, Decimals: 6, EIP712Name: "USDC", EIP712Version: "2"}
	a.Path = NewPath(Config{Ready: readiness.New(nil, readiness.Options{Own: readiness.Terms{Budget: 20_000_000, Rate: 2_000_000, Burst: 2_000_000}}),
		PublicURL: "https://market.test", QuoteValidity: 10 * time.Minute, Notary: payment.NewNotary(key), Now: func() time.Time { return a.now },
		Catalog: catalog.New(time.Now, 10*time.Minute),
		Rails:   []Rail{{Network: chain.Network{ID: network, ChainID: 84532, Assets: []chain.Asset{usdc}}, Treasury: key.Address()}},
	})
	return a
}

func (a *asking) endpoint(path string) *catalog.Endpoint {
	return &catalog.Endpoint{Method: "GET", Path: path, Description: "Weather", MIMEType: "application/json", Timeout: time.Second,
		Prices: []catalog.Price{{Revision: 1, USD: decimal.RequireFromString("0.002")}}}
}

func (a *asking) quote(t testing.TB, e *catalog.Endpoint, upstreamPath string, params map[string]string) payment.Challenge {
	t.Helper()
	price, _ := e.Price()
	c, no := a.challenge(catalog.Target{Service: a.service, Endpoint: e, Params: params, UpstreamPath: upstreamPath}, railOffers(a.Rails[0], e, price))
	if no != nil {
		t.Fatal(no)
	}
	return c
}

// until is when the signed terms of a challenge end; zero where there are none.
func until(t testing.TB, c payment.Challenge) int64 {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(c.Header(payment.Unpaid))
	if err != nil {
		t.Fatal(err)
	}
	var header struct {
		Resource   struct{ URL string }
		Extensions map[string]struct {
			Info struct {
				Offers []struct {
					Payload struct {
						ResourceURL string
						ValidUntil  int64
					}
				}
			}
		}
	}
	if err := json.Unmarshal(text, &header); err != nil {
		t.Fatal(err)
	}
	offers := header.Extensions["offer-receipt"].Info.Offers
	if len(offers) == 0 {
		return 0
	}
	if signed := offers[0].Payload.ResourceURL; signed != header.Resource.URL {
		t.Errorf("the terms are signed for %s, the resource is %s", signed, header.Resource.URL)
	}
	return offers[0].Payload.ValidUntil
}

func TestQuote_TermsAreSignedOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	e := a.endpoint("/now")
	first := until(t, a.quote(t, e, "/now", nil))
	if want := a.now.Add(5 * time.Minute).Unix(); first != want {
		t.Errorf("the terms hold until %d, want half of the quote validity, %d", first, want)
	}
	keptFor := 150 * time.Second // a quarter of the quote validity
	for offset, again := range map[time.Duration]bool{time.Second: false, keptFor - time.Microsecond: false} {
		at := a.now
		a.now = at.Add(offset)
		if got := until(t, a.quote(t, e, "/now", nil)); (got != first) != again {
			t.Errorf("after %s the terms hold until %d, before until %d", offset, got, first)
		}
		a.now = at
	}
	a.now = a.now.Add(keptFor)
	if got := until(t, a.quote(t, e, "/now", nil)); got != first+int64(keptFor.Seconds()) {
		t.Errorf("after %s the terms hold until %d, want %s more", keptFor, got, keptFor)
	}
}

// Terms that hold for a moment would cost a signature on every request, and nobody could use them.
func TestQuote_TermsThatHoldForAMomentAreNotSigned(t *testing.T) {
	t.Parallel()
	for validity, signs := range map[time.Duration]bool{0: false, 2*termsHoldMin - 2: false, 2 * termsHoldMin: true} {
		a := newAsking(t)
		a.QuoteValidity = validity
		e := a.endpoint("/now")
		first := a.quote(t, e, "/now", nil)
		if got := until(t, first) != 0; got != signs {
			t.Errorf("valid for %s: signed %v", validity, got)
		}
		a.now = a.now.Add(24 * time.Hour)
		a.quote(t, e, "/now", nil)
		kept := a.quotes.Load().kept
		for _, q := range kept {
			if q.until.IsZero() == signs {
				t.Errorf("valid for %s: kept until %s", validity, q.until)
			}
		}
		if len(kept) != 1 {
			t.Errorf("valid for %s: %d quotes are kept", validity, len(kept))
		}
	}
}

func TestQuote_NothingOutlivesItsListing(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	e := a.endpoint("/now")
	a.quote(t, e, "/now", nil)
	changed := *e // as the next snapshot of the catalog has it
	changed.Prices = []catalog.Price{{Revision: 2, USD: decimal.RequireFromString("0.003")}}
	if got := a.quote(t, &changed, "/now", nil).Offers()[0].Amount.String(); got != "3000" {
		t.Errorf("after a change of the price it is quoted as %s", got)
	}
}

// A caller can choose the path of an endpoint with parameters, and so could have as much signed as it likes.
func TestQuote_NothingIsSignedForAPathThatTheCallerChooses(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	e := a.endpoint("/city/{id}")
	for _, id := range []string{"lima", "quito"} {
		c := a.quote(t, e, "/city/"+id, map[string]string{"id": id})
		if got := until(t, c); got != 0 {
			t.Errorf("terms of /city/%s are signed until %d", id, got)
		}
		if text, _ := base64.StdEncoding.DecodeString(c.Header(payment.Unpaid)); !strings.Contains(string(text), `"routeTemplate":"/s/weather/city/:id"`) ||
			!strings.Contains(string(text), `https://market.test/s/weather/city/`+id) {
			t.Errorf("the challenge is %s", text)
		}
	}
	long := strings.Repeat("x", 3000)
	price, _ := e.Price()
	_, no := a.challenge(catalog.Target{Service: a.service, Endpoint: e, Params: map[string]string{"id": long}, UpstreamPath: "/city/" + long},
		railOffers(a.Rails[0], e, price))
	if no == nil || no.Reason != "input_too_large" {
		t.Errorf("a path that does not fit the header is answered %v", no)
	}
}

func TestWarnings_SayWhatTheOwnerCanNotSee(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	with := func(change func(*catalog.Endpoint)) []string {
		e := a.endpoint("/now")
		change(e)
		return a.Warnings(a.service, e)
	}
	large := json.RawMessage(`{"a":"` + strings.Repeat("x", 3000) + `"}`)
	for name, tt := range map[string]struct {
		change func(*catalog.Endpoint)
		want   []string // a part of each
	}{
		"nothing":                                   {func(*catalog.Endpoint) {}, nil},
		"a price above what stock clients pay":      {func(e *catalog.Endpoint) { e.Prices[0].USD = decimal.RequireFromString("1.01") }, []string{"above $1:"}},
		"a price above what stock v1 clients pay":   {func(e *catalog.Endpoint) { e.Prices[0].USD = decimal.RequireFromString("0.11") }, []string{"above $0.10"}},
		"a price above what is settled at once":     {func(e *catalog.Endpoint) { e.Prices[0].USD = decimal.RequireFromString("2.000001") }, []string{"above $1:", "settles at most 2 USD at once"}},
		"a price that both pay":                     {func(e *catalog.Endpoint) { e.Prices[0].USD = decimal.RequireFromString("0.1") }, nil},
		"an example that is larger than the header": {func(e *catalog.Endpoint) { e.OutputExample = large }, []string{"no room for the bazaar", "offer-receipt"}},
		"a schema that is larger than the header": {func(e *catalog.Endpoint) {
			e.OutputSchema = json.RawMessage(`{"description":"` + strings.Repeat("x", 3000) + `"}`)
		}, []string{"examples only", "offer-receipt"}},
		"a schema that catalogues read in other ways": {func(e *catalog.Endpoint) { e.InputSchema = json.RawMessage(`{"$ref":"#/x"}`) }, []string{"input_schema uses $ref"}},
		"a retired endpoint":                          {func(e *catalog.Endpoint) { e.Retired, e.OutputExample = true, large }, nil},
	} {
		got := with(tt.change)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
			continue
		}
		for i, part := range tt.want {
			if !strings.Contains(got[i], part) {
				t.Errorf("%s: %q, want %q", name, got, tt.want)
			}
		}
	}
}

func BenchmarkQuote(b *testing.B) {
	a := newAsking(b)
	for name, tt := range map[string]struct {
		path   string
		params map[string]string
	}{"kept": {"/now", nil}, "of one path": {"/city/{id}", map[string]string{"id": "lima"}}} {
		e := a.endpoint(tt.path)
		e.OutputExample = json.RawMessage(`{"city":"Lima","temp_c":19}`)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				a.quote(b, e, "/city/lima", tt.params)
			}
		})
	}
}
