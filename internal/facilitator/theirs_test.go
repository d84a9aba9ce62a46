package facilitator

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
)

// simulates says whether a call of a node is the simulation of a settlement.
func simulates(method string, params []json.RawMessage) bool {
	selector := hexutil.Encode(crypto.Keccak256([]byte("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"))[:4])
	return method == "eth_call" && strings.Contains(string(params[0]), selector)
}

// settleBy settles through one teller, and says how often it was asked.
func (g *ground) settleBy(t *testing.T, node *chain.Node, answer says, s chain.Signed) (chain.Settlement, int32) {
	t.Helper()
	d := newTeller(t, answer)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	f := NewFailover(node, []common.Address{g.treasury.Address()}, []Link{d.link(t)}, time.Now)
	return f.Settle(ctx, s), d.asked.Load()
}

// A payer whose wallet is empty could keep somebody else's facilitator, and whoever waits for it, busy for nothing.
func TestFailover_Settle_WhatCanNotPayIsShownToNobody(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	engine := g.engine(t, g.node, nil)
	head, err := g.node.FreshHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	used := g.authorize(t, 10, nil)
	g.wantSettled(t, used, g.settle(t, engine, used))
	want := func(name string, node *chain.Node, s chain.Signed, why string, fault bool) {
		t.Helper()
		got, asked := g.settleBy(t, node, says{500, nil, "", nil}, s)
		if got.Status != chain.StatusReleased || got.Why != why || got.PayerFault != fault || got.Err == nil || asked != 0 {
			t.Errorf("%s: %+v, the facilitator was asked %d times; want released, %s, payer's fault %v", name, got, asked, why, fault)
		}
	}
	want("no funds", g.node, g.authorize(t, funds*2, nil), "insufficient_funds", true)
	want("expired", g.node, g.authorize(t, 10, func(a *chain.Authorization) { a.ValidBefore = head.Time }),
		"invalid_exact_evm_payload_authorization_valid_before", true)
	want("the nonce paid something else", g.node, g.authorize(t, 11, func(a *chain.Authorization) { a.Nonce = used.Nonce }),
		"invalid_exact_evm_nonce_already_used", true)
	down := edge(t, g.URL(), func(method string, params []json.RawMessage) string {
		if simulates(method, params) {
			return brokenMember
		}
		return ""
	})
	want("our node is in trouble", g.dial(t, down), g.authorize(t, 10, nil), whyTrouble, false)
	if err := g.SetPaused(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	want("the token is paused", g.node, g.authorize(t, 10, nil), "invalid_exact_evm_transaction_simulation_failed", false)
	got, asked := g.settleBy(t, g.node, says{500, nil, "", nil}, used)
	if err := g.SetPaused(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if got.Status == chain.StatusSettled || asked != 0 {
		t.Errorf("paid already, in a token that is paused: %+v, asked %d times", got, asked)
	}
	got, asked = g.settleBy(t, g.node, says{500, nil, "", nil}, used)
	g.wantSettled(t, used, got)
	if asked != 0 {
		t.Errorf("paid already: the facilitator was asked %d times", asked)
	}
}

// A payer that puts its own authorization on the chain while its facilitator answers nothing proves nothing of that facilitator; what it answers with does.
func TestFailover_Settle_OnlyWhatTheFacilitatorAnsweredIsByUs(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	own, theirs := g.authorize(t, 10, nil), g.authorize(t, 10, nil)
	got, _ := g.settleBy(t, g.node, says{500, nil, "", func() {
		g.sendAs(t, g.stranger, own, 1)
		eventually(t, "it is mined", func() bool {
			used, err := g.node.AuthorizationUsed(t.Context(), own.Asset, own.From, own.Nonce)
			return err == nil && used
		})
	}}, own)
	g.wantSettled(t, own, got)
	if got.ByUs {
		t.Error("what the payer did itself is taken for the facilitator's work")
	}
	got, _ = g.settleBy(t, g.node, gives(yes(theirs, common.Hash{}), func() common.Hash { return g.sendAs(t, g.stranger, theirs, 1) }), theirs)
	g.wantSettled(t, theirs, got)
	if !got.ByUs {
		t.Error("what the facilitator answered with is not taken for its work")
	}
	engine := g.engine(t, g.node, nil)
	third := g.authorize(t, 10, nil)
	if got := g.settle(t, engine, third); !got.ByUs {
		t.Errorf("our engine's own transaction: %+v", got)
	}
	if got := g.settle(t, engine, third); got.Status != chain.StatusSettled || got.ByUs {
		t.Errorf("the same payment again: %+v", got)
	}
}

// Behind one address there can be several nodes. One that says that a nonce is used, beside one that has not seen it, proves nothing.
func TestFailover_Settle_ANonceThatIsNotUsedAtTheHeadBlamesNobody(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	var ahead atomic.Bool
	node := g.dial(t, edge(t, g.URL(), func(method string, params []json.RawMessage) string {
		if ahead.Load() && simulates(method, params) {
			return `"error":{"code":3,"message":"execution reverted: FiatTokenV2: authorization is used or canceled"}`
		}
		return ""
	}))
	named := common.HexToHash("0x5e77aa0000000000000000000000000000000000000000000000000000000001")
	body := no("invalid_exact_evm_nonce_already_used")
	body["transaction"] = named.Hex()
	got, asked := g.settleBy(t, node, says{200, body, "", func() { ahead.Store(true) }}, g.authorize(t, 10, nil))
	if got.Status != chain.StatusUnknown || got.Why != whyPending || got.PayerFault || got.Transaction != named || asked != 1 {
		t.Errorf("after it was shown: %+v, asked %d times, want unknown, pending, %s", got, asked, named)
	}
	got, asked = g.settleBy(t, node, says{500, nil, "", nil}, g.authorize(t, 10, nil))
	if got.Status != chain.StatusUnknown || got.Why != whyPending || got.PayerFault || asked != 0 {
		t.Errorf("before it was shown: %+v, asked %d times, want unknown and pending", got, asked)
	}
}

func TestFailover_Settle_AnExpiryThatIsNotBorneOutNamesItsCause(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	node := g.dial(t, edge(t, g.URL(), func(method string, params []json.RawMessage) string {
		if simulates(method, params) {
			return `"error":{"code":3,"message":"execution reverted: FiatTokenV2: authorization is expired"}`
		}
		return ""
	}))
	got, _ := g.settleBy(t, node, says{500, nil, "", nil}, g.authorize(t, 10, nil))
	if got.Status != chain.StatusUnknown || !errors.Is(got.Err, errNotYet) {
		t.Errorf("%+v, want it unknown and the cause %v", got, errNotYet)
	}
}

// Whoever looks for the payment later begins with the transaction that the facilitator named.
func TestFailover_Settle_TheTransactionThatAFacilitatorNamesIsKept(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	named := common.HexToHash("0x5e77aa0000000000000000000000000000000000000000000000000000000001")
	for reason, status := range map[string]int{"unexpected_settle_error": 200, "invalid_exact_evm_transaction_failed": 200, "oops": 500} {
		body := no(reason)
		body["transaction"] = named.Hex()
		got, _ := g.settleBy(t, g.node, says{status, body, "", nil}, g.authorize(t, 10, nil))
		if got.Status != chain.StatusUnknown || got.Transaction != named {
			t.Errorf("%s with %d: %+v, want unknown and %s", reason, status, got, named)
		}
	}
}

// wallet deploys a contract wallet with money and returns what it pays with: the authorizations that its owner has signed.
func (g *ground) wallet(t *testing.T, mood devnet.Mood) func() chain.Signed {
	t.Helper()
	owner, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	address, err := g.DeployWallet(t.Context(), crypto.PubkeyToAddress(owner.PublicKey), mood)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Mint(t.Context(), address, money.FromUnits(funds)); err != nil {
		t.Fatal(err)
	}
	return func() chain.Signed {
		s := g.authorize(t, 10, nil)
		s.From = address
		digest := chain.NewDomain(g.network.Assets[0], devnet.ChainID).Digest(s.Authorization)
		raw, err := crypto.Sign(digest[:], owner)
		if err != nil {
			t.Fatal(err)
		}
		raw[64] += 27
		if s.Signature, err = chain.ParseSignature(raw); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// A contract wallet that says yes when it is simulated and no on the chain is counted, whoever pays the gas for it. The account of a key can
// not do that, and what stops every payer is not the wallet's doing.
func TestFailover_Settle_AWalletWhoseTransactionIsUndoneIsBlamed(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	sends := func(s chain.Signed) common.Hash {
		sent := g.sendAs(t, g.stranger, s, 1)
		eventually(t, "it is mined", func() bool {
			receipts, err := g.node.Receipts(t.Context(), []common.Hash{sent})
			return err == nil && receipts[0] != nil
		})
		return sent
	}
	declines := func(paused bool, sent chain.Signed) says {
		return gives(no("invalid_exact_evm_transaction_failed"), func() common.Hash {
			if err := g.SetPaused(t.Context(), paused); err != nil {
				t.Error(err)
			}
			return sends(sent)
		})
	}
	wallet, honest := g.wallet(t, devnet.MoodTwoFaced)(), g.wallet(t, devnet.MoodHonest)()
	account, failing := g.authorize(t, 10, nil), g.authorize(t, funds*2, nil)
	for _, tt := range []struct { // in order: the last one pauses the token
		name   string
		s      chain.Signed
		answer says
		status chain.Status
		why    string
		fault  bool
	}{
		{"a wallet's", wallet, declines(false, wallet), chain.StatusRejected, whyFailed, true},
		{"an account's", account, declines(false, failing), chain.StatusUnknown, whyTrouble, false},
		{
			"a wallet's, while the token is paused", honest, declines(true, honest),
			chain.StatusRejected, "invalid_exact_evm_transaction_simulation_failed", false,
		},
	} {
		got, _ := g.settleBy(t, g.node, tt.answer, tt.s)
		if got.Status != tt.status || got.Why != tt.why || got.PayerFault != tt.fault || got.Transaction == (common.Hash{}) {
			t.Errorf("%s: %+v, want status %d, %s, payer's fault %v", tt.name, got, tt.status, tt.why, tt.fault)
		}
	}
}
