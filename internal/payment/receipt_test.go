package payment

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"pgregory.net/rapid"
)

// The vectors were made with another implementation, by the wallet of goldenKey.
const (
	receiptDigest    = "0xd1ac8a75895af7013703d06aea68e948c3ab0020d45be8dc6f496ef918264dc7"
	receiptSignature = "0xeb3b68dc9964045619f31ed92a931a0550665a8ec00588f70bfe71fea8fb316d3ebebffa79a7f681a0e0c81ac996a0b8765c40df70b1793dcbf58db939bd0dbf1c"
	offerDigest      = "0x61d732c78ca809dc4aac166b0f42ded5d50967fb96bcb68858c33439b4eeca3f"
)

func goldenReceipt() Receipt {
	return Receipt{Version: 1, Network: "eip155:84532", ResourceURL: goldenResource, Payer: goldenPayer, IssuedAt: 1790000000}
}

func goldenTerms() SignedTerms {
	return SignedTerms{Version: 1, ResourceURL: goldenResource, Scheme: "exact", Network: "eip155:84532", Asset: goldenAsset, PayTo: goldenTreasury,
		Amount: "12345", ValidUntil: 1800000000}
}

func goldenOutcome() OutcomeReceipt {
	return OutcomeReceipt{Version: 1, Network: "eip155:84532", ResourceURL: goldenResource, Payer: goldenPayer, IssuedAt: 1790000000,
		Transaction: "0x01", Call: "01a229fc-d024-7d73-a183-9b8409727c22", Outcome: "failed", Reason: "upstream_5xx", Amount: "12345",
		Asset: goldenAsset, RefundState: RefundOwed, RefundNonce: goldenNonce}
}

// signed is what the wallet of goldenKey says.
func signed(t testing.TB, s Statement) Signed {
	t.Helper()
	k := key(t)
	out, err := NewNotary(k).SignFor(k.Address(), s)
	if err != nil || out == nil {
		t.Fatalf("SignFor = %v, %v", out, err)
	}
	return *out
}

func TestReceipt_MatchesTheGoldenVectors(t *testing.T) {
	t.Parallel()
	receipt := signed(t, goldenReceipt())
	if got := receipt.Digest().Hex(); got != receiptDigest {
		t.Errorf("digest of the receipt = %s, want %s", got, receiptDigest)
	}
	if receipt.Signature != receiptSignature {
		t.Errorf("signature of the receipt = %s, want %s", receipt.Signature, receiptSignature)
	}
	if got := signed(t, goldenTerms()).Digest().Hex(); got != offerDigest {
		t.Errorf("digest of the offer = %s, want %s", got, offerDigest)
	}
}

// The general implementation hashes whatever type it is given, over reflection.
func TestStatement_AgreesWithTheGeneralImplementation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := func(name string) string { return rapid.String().Draw(t, name) }
		number := func(name string) uint64 { return rapid.Uint64().Draw(t, name) }
		for of, s := range map[string]Statement{
			"Offer": SignedTerms{number("version"), word("url"), word("scheme"), word("network"), word("asset"), word("to"), word("amount"), number("until")},
			"Receipt": Receipt{number("version"), word("network"), word("url"), word("payer"), number("at"),
				word("transaction")},
			"OutcomeReceipt": OutcomeReceipt{number("version"), word("network"), word("url"), word("payer"), number("at"), word("transaction"),
				word("call"), word("outcome"), word("reason"), word("amount"), word("asset"), word("state"), word("nonce")},
		} {
			want, _, err := apitypes.TypedDataAndHash(generalForm(t, of, s))
			if err != nil {
				t.Fatal(err)
			}
			if got := (Signed{Payload: s}).Digest(); got != common.Hash(want) {
				t.Fatalf("digest of %s %+v = %s, want %x", of, s, got, want)
			}
		}
	})
}

// memberOrder is that of the types, as the protocol gives them.
var memberOrder = map[string]string{
	"Offer":          "version resourceUrl scheme network asset payTo amount validUntil",
	"Receipt":        "version network resourceUrl payer issuedAt transaction",
	"OutcomeReceipt": "version network resourceUrl payer issuedAt transaction call outcome reason amount asset refundState refundNonce",
}

var domainNames = map[string]string{"Offer": "x402 offer", "Receipt": "x402 receipt", "OutcomeReceipt": "market outcome receipt"}

func generalForm(t *rapid.T, of string, s Statement) apitypes.TypedData {
	message := apitypes.TypedDataMessage{}
	d := json.NewDecoder(strings.NewReader(string(encodeJSON(s))))
	d.UseNumber()
	if err := d.Decode(&message); err != nil {
		t.Fatal(err)
	}
	var members []apitypes.Type
	for name := range strings.FieldsSeq(memberOrder[of]) {
		kind := "string"
		if n, ok := message[name].(json.Number); ok {
			kind, message[name] = "uint256", n.String()
		}
		members = append(members, apitypes.Type{Name: name, Type: kind})
	}
	return apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": {{Name: "name", Type: "string"}, {Name: "version", Type: "string"}, {Name: "chainId", Type: "uint256"}},
			of:             members,
		},
		PrimaryType: of,
		Domain:      apitypes.TypedDataDomain{Name: domainNames[of], Version: "1", ChainId: (*math.HexOrDecimal256)(big.NewInt(1))},
		Message:     message,
	}
}

// A receipt is made anew at each read instead of being kept.
func TestNotary_SignsTheSameStatementTheSameWay(t *testing.T) {
	t.Parallel()
	for range 3 {
		if a, b := signed(t, goldenOutcome()), signed(t, goldenOutcome()); a.Signature != b.Signature {
			t.Errorf("two signatures of one statement: %s, %s", a.Signature, b.Signature)
		}
	}
}

func TestNotary_SignsForItsOwnWalletsOnly(t *testing.T) {
	t.Parallel()
	k := key(t)
	for name, n := range map[string]Notary{"another wallet": NewNotary(k), "no wallet": {}} {
		if s, err := n.SignFor(common.HexToAddress("0x01"), goldenReceipt()); s != nil || err != nil {
			t.Errorf("%s: %v, %v, want nothing", name, s, err)
		}
	}
}
