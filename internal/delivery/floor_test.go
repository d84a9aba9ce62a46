package delivery

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/chain"
	"market/internal/payment"
	"market/internal/readiness"
)

func TestPath_Offered_WhereThePriceReachesTheFloor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		price  string
		floors []string
		want   string // the networks that are offered, by number
		warned int
	}{
		"above both floors":                {"1", []string{"0.001", "0.5"}, "12", 0},
		"just below the second":            {"0.499999", []string{"0.001", "0.5"}, "1", 1},
		"on the second":                    {"0.5", []string{"0.001", "0.5"}, "12", 0},
		"no floor":                         {"0.000001", []string{"0", "0.5"}, "1", 1},
		"below all, which were raised":     {"0.0005", []string{"0.001", "0.5"}, "12", 1},
		"below the one there is":           {"0.0005", []string{"0.001"}, "1", 1},
		"a network whose floor came first": {"0.01", []string{"0.5", "0.001"}, "2", 1},
	} {
		p := &Path{}
		for i, floor := range tt.floors {
			p.Rails = append(p.Rails, Rail{Network: chain.Network{ID: string(rune('1' + i)), FloorUSD: decimal.RequireFromString(floor)}})
		}
		price := catalog.Price{USD: decimal.RequireFromString(tt.price)}
		var got strings.Builder
		for _, r := range p.offered(price) {
			got.WriteString(r.Network.ID)
		}
		if warned := p.belowFloor(price); got.String() != tt.want || len(warned) != tt.warned {
			t.Errorf("%s: offered on %q with the warnings %q, want %q and %d", name, got.String(), warned, tt.want, tt.warned)
		}
	}
}

func TestPath_OfferedOn_EitherNameOfANetworkWhosePriceReachesItsFloor(t *testing.T) {
	t.Parallel()
	p := &Path{Config: Config{Rails: []Rail{
		{Network: chain.Network{ID: "eip155:1", FloorUSD: decimal.RequireFromString("0.5")}},
		{Network: chain.Network{ID: "eip155:8453", V1Name: "base"}},
	}}}
	for network, want := range map[string][2]bool{"eip155:1": {false, true}, "eip155:8453": {true, true}, "Base": {true, true}, "eip155:2": {}, "": {}} {
		for i, price := range []string{"0.4", "0.5"} {
			if got := p.OfferedOn(network)(catalog.Price{USD: decimal.RequireFromString(price)}); got != want[i] {
				t.Errorf("%s on %q: %v, want %v", price, network, got, want[i])
			}
		}
	}
}

// What a raised floor leaves out takes no payment either. Who signed it is known all the same, so that a payment of before is found.
func TestPath_Admit_APaymentWhereThePriceIsBelowTheFloorIsRefused(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	second := a.Rails[0]
	second.Network.ID, second.Network.ChainID = "eip155:8453", 8453
	a.Rails = append(a.Rails, second)
	a.Path.Ready = readiness.New(nil, readiness.Options{}) // a payment that may be admitted is asked for there, and refused
	raw, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	payer, err := chain.ParseKey(hex.EncodeToString(crypto.FromECDSA(raw)))
	if err != nil {
		t.Fatal(err)
	}
	e := a.endpoint("/")
	price, _ := e.Price()
	target := catalog.Target{Service: a.service, Endpoint: e, UpstreamPath: "/"}
	challenge, no := a.challenge(target, railOffers(second, e, price))
	if no != nil {
		t.Fatal(no)
	}
	required, err := payment.DecodeChallenge(challenge.Header(payment.Unpaid))
	if err != nil {
		t.Fatal(err)
	}
	accepted := required.Accepts[0]
	authorization := chain.Authorization{From: payer.Address(), To: accepted.PayTo, Value: accepted.Amount, ValidBefore: 2_000_000_000, Nonce: common.Hash{7}}
	signature, err := payer.SignAuthorization(chain.NewDomain(second.Network.Assets[0], 8453), authorization)
	if err != nil {
		t.Fatal(err)
	}
	header, err := payment.EncodePayload(accepted, required.Resource, chain.Signed{Asset: accepted.Asset, Authorization: authorization, Signature: signature})
	if err != nil {
		t.Fatal(err)
	}
	carrying := http.Header{}
	carrying.Set(payment.HeaderSignature, header)
	for floor, want := range map[string]call.Reason{"0.002": call.NotReady, "0.0021": call.PaymentMismatch} {
		a.Rails[1].Network.FloorUSD = decimal.RequireFromString(floor)
		paid, no := a.admit(t.Context(), Request{Target: target, Header: carrying})
		if no == nil || no.Reason != want || paid == nil || paid.identity().Network != "eip155:8453" || paid.doubt != nil {
			t.Errorf("a floor of %s: %+v, %v; want %s, and the payment known", floor, paid, no, want)
		}
	}
}
