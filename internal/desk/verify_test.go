package desk

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/payment"
)

func TestDesk_Verify_SaysYesAndMovesNothing(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	for _, version := range versions {
		a := ask(t, url+"/verify", g.body(version, g.authorize(t, nil), nil))
		if a.status != http.StatusOK || !a.IsValid || a.Payer != g.payer.Address().Hex() || a.code() != "" {
			t.Errorf("v%d: %d %s, want a yes with the payer", version, a.status, a.raw)
		}
	}
	if n := g.transfers(t); n != 0 || g.sent(t) != 0 {
		t.Errorf("%d transfers and %d transactions, want none", n, g.sent(t))
	}
}

// B15: who is paid, and what for, is what the seller asks for. The codes are those of the official facilitators, in the words of each version.
func TestDesk_Verify_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	other := newKey(t)
	required := func(name string, value any) func(object) {
		return func(o object) { o.at("paymentRequirements")[name] = value }
	}
	extra := func(name string, value any) func(object) {
		return func(o object) {
			changed := object{"name": devnet.TokenName, "version": devnet.TokenVersion}
			changed[name] = value
			if value == nil {
				delete(changed, name)
			}
			o.at("paymentRequirements")["extra"] = changed
		}
	}
	accepted := func(name string, value any) func(object) {
		return func(o object) {
			if entry, ok := o.at("paymentPayload")["accepted"].(object); ok {
				entry[name] = value
			} else {
				o.at("paymentPayload")[name] = value
			}
		}
	}
	of := func(version payment.Version, v1, v2 string) string {
		return map[payment.Version]string{1: v1, 2: v2}[version]
	}
	const none = "" // a member that version 1 does not have
	spent := g.authorize(t, nil)
	g.sendAs(t, g.stranger, spent)
	tests := map[string]struct {
		authorization func(*chain.Authorization)
		signed        *chain.Signed // instead
		body          func(payment.Version) func(object)
		v1, v2        string
	}{
		"the seller wants another scheme": {
			body: func(payment.Version) func(object) { return required("scheme", "upto") },
			v1:   "unsupported_scheme", v2: "invalid_exact_evm_scheme",
		},
		"the payment is of another scheme": {
			body: func(payment.Version) func(object) { return accepted("scheme", "upto") },
			v1:   "unsupported_scheme", v2: "invalid_exact_evm_scheme",
		},
		"no domain": {
			body: func(payment.Version) func(object) { return required("extra", object{}) },
			v1:   "invalid_payment_requirements", v2: "invalid_exact_evm_missing_eip712_domain",
		},
		"a domain without a version": {
			body: func(payment.Version) func(object) { return extra("version", nil) },
			v1:   "invalid_payment_requirements", v2: "invalid_exact_evm_missing_eip712_domain",
		},
		"another token name": {
			body: func(payment.Version) func(object) { return extra("name", "USD Coin") },
			v1:   "invalid_payment_requirements", v2: "invalid_exact_evm_token_name_mismatch",
		},
		"another token version": {
			body: func(payment.Version) func(object) { return extra("version", "1") },
			v1:   "invalid_payment_requirements", v2: "invalid_exact_evm_token_version_mismatch",
		},
		"the payment is for another network": {
			body: func(v payment.Version) func(object) { return accepted("network", of(v, "base", "eip155:8453")) },
			v1:   "invalid_network", v2: "invalid_exact_evm_network_mismatch",
		},
		"both are for a network that we do not serve": {
			body: func(v payment.Version) func(object) {
				return func(o object) {
					name := of(v, "base", "eip155:8453")
					required("network", name)(o)
					accepted("network", name)(o)
				}
			},
			v1: "invalid_network", v2: "invalid_network",
		},
		"a token of the seller's own": {
			body: func(payment.Version) func(object) { return required("asset", other.Address().Hex()) },
			v1:   "invalid_payment_requirements", v2: "invalid_payment_requirements",
		},
		"the payment is in another token": {
			body: func(v payment.Version) func(object) { return accepted("asset", other.Address().Hex()) },
			v1:   none, v2: "invalid_payment_requirements",
		},
		"an amount of nothing": {
			body: func(v payment.Version) func(object) { return required(of(v, "maxAmountRequired", "amount"), "0") },
			v1:   "invalid_payment_requirements", v2: "invalid_payment_requirements",
		},
		"somebody else signed": {
			body: func(payment.Version) func(object) {
				return func(o object) { o.at("paymentPayload", "payload", "authorization")["from"] = other.Address().Hex() }
			},
			v1: "invalid_exact_evm_payload_signature", v2: "invalid_exact_evm_signature",
		},
		"another recipient was signed": {
			authorization: func(a *chain.Authorization) { a.To = other.Address() },
			v1:            "invalid_exact_evm_payload_recipient_mismatch", v2: "invalid_exact_evm_recipient_mismatch",
		},
		"less was signed": {
			authorization: func(a *chain.Authorization) { a.Value = money.FromUnits(price - 1) },
			v1:            "invalid_exact_evm_payload_authorization_value", v2: "invalid_exact_evm_payload_authorization_value_mismatch",
		},
		"more was signed": {
			authorization: func(a *chain.Authorization) { a.Value = money.FromUnits(price + 1) },
			v1:            "invalid_exact_evm_payload_authorization_value", v2: "invalid_exact_evm_payload_authorization_value_mismatch",
		},
		"the payment accepted another amount": {
			body: func(payment.Version) func(object) { return accepted("amount", "1") },
			v1:   none, v2: "invalid_payment_requirements",
		},
		"the payment accepted another recipient": {
			body: func(payment.Version) func(object) { return accepted("payTo", other.Address().Hex()) },
			v1:   none, v2: "invalid_payment_requirements",
		},
		"its time is over": {
			authorization: func(a *chain.Authorization) { a.ValidBefore = g.now(t) },
			v1:            "invalid_exact_evm_payload_authorization_valid_before", v2: "invalid_exact_evm_payload_authorization_valid_before",
		},
		"its time has not come": {
			authorization: func(a *chain.Authorization) { a.ValidAfter = g.now(t) + 1_000; a.ValidBefore = a.ValidAfter + 60 },
			v1:            "invalid_exact_evm_payload_authorization_valid_after", v2: "invalid_exact_evm_payload_authorization_valid_after",
		},
		"its nonce is used": {
			signed: &spent,
			v1:     "invalid_transaction_state", v2: "invalid_exact_evm_nonce_already_used",
		},
	}
	for name, tt := range tests {
		for _, version := range versions {
			want := of(version, tt.v1, tt.v2)
			s := g.authorize(t, tt.authorization)
			if tt.signed != nil {
				s = *tt.signed
			}
			body := g.body(version, s, nil)
			if tt.body != nil {
				tt.body(version)(body)
			}
			a := ask(t, url+"/verify", body)
			payer := body.at("paymentPayload", "payload", "authorization")["from"]
			if a.status != http.StatusOK || a.code() != want || a.IsValid != (want == none) || a.Payer != payer {
				t.Errorf("%s, v%d: %d %s, want %q with the payer", name, version, a.status, a.raw, want)
			}
			if want != none && a.InvalidMessage == "" {
				t.Errorf("%s, v%d: no message: %s", name, version, a.raw)
			}
		}
	}
}

func TestDesk_Verify_AsksForSixSecondsOfLife(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	s := g.authorize(t, nil)
	for left, want := range map[uint64]string{
		5: "invalid_exact_evm_payload_authorization_valid_before",
		6: "",
		7: "",
	} {
		url := g.desk(t, func(c *Config) { c.Rails[0].Node = clock{g.node, s.ValidBefore - left} })
		if a := ask(t, url+"/verify", g.body(payment.V2, s, nil)); a.code() != want {
			t.Errorf("%d s before its end: %s, want %q", left, a.raw, want)
		}
	}
}

// A clock is a node that says what time it is.
type clock struct {
	Node
	time uint64
}

func TestDesk_Verify_AsksTheToken(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	url := g.desk(t, nil)
	poor := newKey(t)
	s := g.authorize(t, nil)
	s.From = poor.Address()
	var err error
	if s.Signature, err = poor.SignAuthorization(chain.NewDomain(g.network.Assets[0], devnet.ChainID), s.Authorization); err != nil {
		t.Fatal(err)
	}
	good := g.authorize(t, nil)
	verify := func(name string, s chain.Signed, v1, v2 string) {
		t.Helper()
		for version, want := range map[payment.Version]string{payment.V1: v1, payment.V2: v2} {
			if a := ask(t, url+"/verify", g.body(version, s, nil)); a.status != http.StatusOK || a.code() != want || a.IsValid != (want == "") {
				t.Errorf("%s, v%d: %d %s, want %q", name, version, a.status, a.raw, want)
			}
		}
	}
	verify("too little money", s, "insufficient_funds", "invalid_exact_evm_insufficient_balance")
	if err := g.SetBlocked(t.Context(), g.payer.Address(), true); err != nil {
		t.Fatal(err)
	}
	verify("a blocked payer", good, "invalid_transaction_state", "invalid_exact_evm_transaction_simulation_failed")
	if err := g.SetBlocked(t.Context(), g.payer.Address(), false); err != nil {
		t.Fatal(err)
	}
	verify("not blocked any more", good, "", "")
}

// The request's context ends with the read deadline, and its answer would go nowhere.
func TestDesk_Verify_EndsBeforeTheConnectionDoes(t *testing.T) {
	t.Parallel()
	if read := New(Config{}).Public().ReadTimeout; verifyTime >= read {
		t.Errorf("a verification may take %s, and the connection is read for %s", verifyTime, read)
	}
}

func TestDesk_Supported_ListsBothVersionsAndTheSigner(t *testing.T) {
	t.Parallel()
	two := []Rail{
		{Network: chain.Network{ID: "eip155:84532", V1Name: "base-sepolia"}},
		{Network: chain.Network{ID: "eip155:10"}}, // has no name in version 1
	}
	signer := common.Address{1}.Hex()
	handler := New(Config{Rails: two, Signer: signer}).Public().Handler
	got := strings.TrimSpace(record(handler, http.MethodGet, "/supported", "").Body.String())
	want := `{"kinds":[{"x402Version":2,"scheme":"exact","network":"eip155:84532"},{"x402Version":2,"scheme":"exact","network":"eip155:10"},` +
		`{"x402Version":1,"scheme":"exact","network":"base-sepolia"}],"extensions":[],"signers":{"eip155:*":["` + signer + `"]}}`
	if got != want {
		t.Errorf("/supported is\n%s\nwant\n%s", got, want)
	}
}
