package delivery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/call"
	"market/internal/chain"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/refusal"
)

// A scripted node answers what a test wrote down, and counts how often it was asked.
type scripted struct {
	account               chain.AccountState
	accountErr, simulated error
	takes                 bool
	takesErr              error
	used                  []bool
	reads                 int
}

func (n *scripted) Head(context.Context) (chain.Head, error) { n.reads++; return chain.Head{}, nil }

func (n *scripted) Account(context.Context, common.Address, common.Address, common.Hash) (chain.AccountState, error) {
	n.reads++
	return n.account, n.accountErr
}

func (n *scripted) Simulate(context.Context, common.Address, uint64, chain.Signed) error {
	n.reads++
	return n.simulated
}

func (n *scripted) Used(_ context.Context, _, _ common.Address, nonces []common.Hash) ([]bool, error) {
	n.reads++
	return n.used[:len(nonces)], n.accountErr
}

func (n *scripted) Takes(context.Context, common.Address, common.Hash, chain.Signature) (bool, error) {
	n.reads++
	return n.takes, n.takesErr
}

var errDoubt = refusal.New(call.PaymentInvalid, "nobody signed").WithCause(payment.CodeUndeployed)

// A stranger's garbage costs two reads at most, and a node in trouble is never taken for an answer.
func TestPath_AskWallet_BelievesOnlyTheChain(t *testing.T) {
	t.Parallel()
	trouble := &chain.Trouble{Method: "eth_call", Err: errors.New("gone")}
	code := chain.AccountState{HasCode: true, Balance: money.FromUnits(1)}
	used := code
	used.NonceUsed = true
	type test struct {
		node   scripted
		reason call.Reason // empty: believed
		word   payment.Code
		reads  int
	}
	tests := map[string]test{
		"no code is what the doubt says":           {scripted{}, call.PaymentInvalid, payment.CodeUndeployed, 1},
		"a node that does not know the account":    {scripted{accountErr: trouble}, call.NotReady, "", 1},
		"a transfer that goes through":             {scripted{account: code}, "", "", 2},
		"a node that can not simulate":             {scripted{account: code, simulated: trouble}, call.NotReady, "", 2},
		"a used nonce and a wallet that says yes":  {scripted{account: used, takes: true}, "", "", 2},
		"a used nonce and a wallet that says no":   {scripted{account: used}, call.PaymentInvalid, payment.CodeSignature, 2},
		"a used nonce and a node that can not ask": {scripted{account: used, takesErr: trouble}, call.NotReady, "", 2},
	}
	for _, kind := range chain.RevertKinds() {
		revert := &chain.Revert{Kind: kind}
		want := test{scripted{account: code, simulated: revert}, call.PaymentInvalid, payment.Code(revert.Code()), 2}
		switch kind {
		case chain.RevertPaused, chain.RevertNonceUsed:
			want.reason, want.word = call.NotReady, ""
		case chain.RevertInsufficient:
			want.reason = call.PayerUnfunded
		case chain.RevertExpired, chain.RevertNotYetValid, chain.RevertBlocked, chain.RevertBadSignature, chain.RevertUnclear:
		}
		tests[fmt.Sprintf("a transfer that fails, kind %d", kind)] = want
	}
	for name, tt := range tests {
		node := tt.node
		paid := &admitted{rail: Rail{Node: &node}, doubt: errDoubt}
		p := &Path{Config: Config{Now: time.Now}}
		no := p.askWallet(t.Context(), paid)
		if node.reads != tt.reads {
			t.Errorf("%s: %d reads of the node, want %d", name, node.reads, tt.reads)
		}
		switch {
		case tt.reason == "" && no != nil, tt.reason != "" && (no == nil || no.Reason != tt.reason):
			t.Errorf("%s: %v, want %q", name, no, tt.reason)
		case revertedBy(tt.node.simulated, chain.RevertNonceUsed) && !strings.Contains(no.Detail, "this payment was used a moment ago"):
			t.Errorf("%s: %s", name, no.Detail)
		case tt.word != "" && payment.CodeOfError(no) != tt.word:
			t.Errorf("%s: x402's word is %s, want %s", name, payment.CodeOfError(no), tt.word)
		}
	}
}

func revertedBy(err error, kind chain.RevertKind) bool {
	revert, ok := errors.AsType[*chain.Revert](err)
	return ok && revert.Kind == kind
}

// What was claimed once is believed by its bytes, without a question; nothing else under its nonce is.
func TestPath_Vouch_KnowsTheBytesThatWereClaimed(t *testing.T) {
	t.Parallel()
	other, err := chain.ParseSignature(bytes.Repeat([]byte{2}, 100))
	if err != nil {
		t.Fatal(err)
	}
	same := func(*chain.Signed) {}
	resigned := func(s *chain.Signed) { s.Signature = other }
	dearer := func(s *chain.Signed) { s.Value = money.FromUnits(1) }
	tests := map[string]struct {
		released bool
		change   func(*chain.Signed)
		reason   call.Reason // empty: believed
		reads    int
	}{
		"the same bytes":                             {false, same, "", 0},
		"another signature":                          {false, resigned, call.PaymentReused, 0},
		"another value under the same signature":     {false, dearer, call.PaymentReused, 0},
		"the same bytes of a released call":          {true, same, "", 0},
		"another signature where a call is released": {true, resigned, call.PaymentInvalid, 1},
	}
	s := newShelf(t)
	for name, tt := range tests {
		c := s.claim(t)
		if tt.released {
			if err := (payment.Store{}).Unsettle(t.Context(), s.db, c.ID, s.owner, call.StateReleased, "", common.Hash{}); err != nil {
				t.Fatal(err)
			}
		}
		node := &scripted{} // knows no code anywhere
		paid := &admitted{rail: Rail{Network: chain.Network{ID: c.Network}, Node: node}, signed: c.Signed, doubt: errDoubt}
		tt.change(&paid.signed)
		p := &Path{Config: Config{DB: s.db, Now: time.Now}}
		no := p.vouch(t.Context(), paid)
		if tt.reason == "" && no != nil || tt.reason != "" && (no == nil || no.Reason != tt.reason) {
			t.Errorf("%s: %v, want %q", name, no, tt.reason)
		}
		if believed := paid.doubt == nil; believed != (tt.reason == "") {
			t.Errorf("%s: doubt %v", name, paid.doubt)
		}
		if node.reads != tt.reads {
			t.Errorf("%s: the node was read %d times, want %d", name, node.reads, tt.reads)
		}
	}
}
