package facilitator

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

// lookEvery is the pause between two looks for a transfer that a facilitator says it has made.
const lookEvery = 250 * time.Millisecond

// A Settler puts an authorization on the chain and says what became of it.
type Settler interface {
	Settle(ctx context.Context, s chain.Signed) chain.Settlement
}

// Checked settles through a facilitator that is not ours and believes it only as far as our own node bears it out. What it says of the
// chain is looked up; what it says of itself ("I sent nothing") nobody can check, so an authorization that it saw is never released.
type Checked struct {
	settler Settler
	node    *chain.Node
}

// NewChecked returns a settler whose word has been checked.
func NewChecked(settler Settler, node *chain.Node) *Checked { return &Checked{settler, node} }

var errWord = errors.New("the facilitator's word is not borne out by our node")

// Settle returns settled only with a proof that our node gave, and blames the payer only for what our node sees.
func (c *Checked) Settle(ctx context.Context, s chain.Signed) chain.Settlement {
	said := c.settler.Settle(ctx, s)
	switch said.Status {
	case chain.StatusSettled:
		return c.prove(ctx, s, said)
	case chain.StatusReleased, chain.StatusRejected:
		if said.PayerFault && c.unable(ctx, s) {
			said.Status = chain.StatusRejected
			return said
		}
	case chain.StatusUnknown:
	}
	return unknown(said.Transaction, whyPending, said.Err)
}

// prove waits until our node has the transfer deep enough, in the transaction that the facilitator names.
func (c *Checked) prove(ctx context.Context, s chain.Signed, said chain.Settlement) chain.Settlement {
	sent := said.Transaction
	if sent == (common.Hash{}) {
		sent = said.Proof.Transaction
	}
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		receipts, err := c.node.Receipts(ctx, []common.Hash{sent})
		if err == nil {
			switch proof, v := judge(receipts[0], s.Expect(), c.node.Network().ServeAtDepth); v {
			case verdictSettled:
				got := settled(proof)
				got.ByUs = said.ByUs
				return got
			case verdictReverted, verdictUnproved:
				return unknown(sent, whyMismatch, errWord)
			case verdictWait:
			}
		}
		select {
		case <-ctx.Done():
			return unknown(sent, whyPending, errors.Join(errWord, err, ctx.Err()))
		case <-again.C:
		}
	}
}

// unable says whether our node sees that the payer can not pay. A used nonce may have been used by this very payment.
func (c *Checked) unable(ctx context.Context, s chain.Signed) bool {
	account, err := c.node.Account(ctx, s.Asset, s.From, s.Nonce)
	return err == nil && !account.NonceUsed && account.Balance.Cmp(s.Value) < 0
}
