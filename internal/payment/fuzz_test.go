package payment

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
)

// FuzzFromHeaders: whatever a stranger sends in one payment header or in both is one payment or refused as malformed, and what was decoded can
// be judged without a panic. A part that is not encoded gets base64, so that the fuzzer need not learn it.
func FuzzFromHeaders(f *testing.F) {
	const none = "-" // no such header
	seed := func(v2, v1 string) { f.Add([]byte(v2), []byte(v1), false) }
	seed(goldenPayload, none)
	seed(none, goldenV1)
	seed(goldenPayload, goldenV1)
	seed(goldenPayload, strings.Replace(goldenV1, "12345", "12346", 1))
	seed(goldenPayload, goldenPayload)
	seed(goldenV1, goldenPayload)
	seed(`{"x402Version":2,"accepted":{},"payload":{}}`, none)
	seed(none, `{"x402Version":1,"scheme":"exact","network":"base-sepolia","payload":{"authorization":{}}}`)
	seed(strings.Replace(goldenPayload, "Echo service", `\ud83d\ude00 Эхо`, 1), none)
	seed(strings.Replace(goldenPayload, "Echo service", `\ud83d`, 1), none)
	seed(strings.Repeat(`{"a":`, 80), none)
	f.Add([]byte(header(goldenPayload)), []byte(strings.TrimRight(header(goldenV1), "=")), true)

	offers := []Offer{offer(f, 12345, 1), offer(f, 20000, 2)}
	other := chain.Asset{Address: common.HexToAddress("0x1111"), Symbol: "OTHER", Decimals: 6, EIP712Name: "Other", EIP712Version: "1"}
	if o, err := NewOffer(baseSepolia, other, money.FromUnits(12345), common.HexToAddress(goldenTreasury), 120, 1); err == nil {
		offers = append(offers, o)
	}
	f.Fuzz(func(t *testing.T, v2, v1 []byte, encoded bool) {
		h := http.Header{}
		add := func(name string, data []byte) {
			switch {
			case string(data) == none:
			case encoded:
				h.Add(name, string(data))
			default:
				h.Add(name, header(string(data)))
			}
		}
		add(HeaderSignature, v2)
		add(HeaderV1Payment, v1)
		p, err := FromHeaders(h)
		if err != nil {
			if reasonOf(err) != call.PaymentMalformed {
				t.Errorf("error = %v, want a refusal for payment_malformed", err)
			}
			return
		}
		if want := map[bool]Version{true: V2, false: V1}[len(h.Values(HeaderSignature)) > 0]; p.Version != want {
			t.Errorf("version = %d, want %d", p.Version, want)
		}
		p = p.Normalize(baseSepolia)
		signed, identifyErr := Identify(p, offers...)
		if reason := reasonOf(identifyErr); identifyErr != nil && reason != call.PaymentMismatch && reason != call.PaymentInvalid {
			t.Errorf("Identify = %v", identifyErr)
		}
		o, matchErr := Match(p.In(signed.Asset), offers, goldenResource, Extensions())
		if reason := reasonOf(matchErr); matchErr != nil && reason != call.PaymentMismatch {
			t.Errorf("Match = %v", matchErr)
		}
		if identifyErr != nil || matchErr != nil {
			return
		}
		// Only these values pay, and only of this payer: everything else that matched and holds would be a forgery.
		if err := CheckTerms(signed, o, chainTime); err == nil && (signed.Value.String() != "12345" || signed.To.Hex() != goldenTreasury || signed.From.Hex() != goldenPayer) {
			t.Errorf("%+v pays", signed)
		}
	})
}
