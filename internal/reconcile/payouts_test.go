package reconcile

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/chain"
)

const (
	payeeSQL = `INSERT INTO accounts (id, wallet) VALUES ($1, $2)`
	leftSQL  = `
WITH left_us AS (
	INSERT INTO payouts (id, account_id, network, asset, treasury, number, amount, address, nonce, from_block, state, made_by, signed_at)
	VALUES ($1, $2, $3, $4, $5, 1, $6, $7, decode(repeat('cd', 32), 'hex'), 0, 'sent', 'the test', market_now())
)
INSERT INTO payout_signatures (payout_id, valid_before, from_block, address, signature) VALUES ($1, 1800000000, 0, $7, decode(repeat('ab', 65), 'hex'))`
	paidOutSQL = `UPDATE payouts SET state = 'confirmed', transaction = $2, log_index = $3, block_number = $4, confirmed_at = market_now() WHERE id = $1`
)

// leaves writes a payout as it is when it has been signed. What it pays for is another test's matter.
func (b *bench) leaves(t *testing.T, to common.Address, units int64) uuid.UUID {
	t.Helper()
	id, account := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	var wallet common.Address
	_, _ = rand.Read(wallet[:]) // never fails
	b.exec(t, payeeSQL, account, wallet[:])
	b.exec(t, `ALTER TABLE payouts DISABLE TRIGGER payouts_checked`)
	b.exec(t, leftSQL, id, account, b.key.Network, b.key.Asset[:], b.key.Treasury[:], units, to[:])
	b.exec(t, `ALTER TABLE payouts ENABLE TRIGGER payouts_checked`)
	return id
}

func (b *bench) paidOut(t *testing.T, id uuid.UUID, by chain.Transfer) {
	t.Helper()
	b.exec(t, paidOutSQL, id, by.Transaction[:], by.LogIndex, by.BlockNumber)
}

func TestReconciler_APayoutIsNoDifferenceOnItsWayOrWhenItHasArrived(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	to := common.Address{19: 9}
	b.paid(t, 900)
	id := b.leaves(t, to, 700)
	out := b.spend(t, to, 700)
	b.last(t, 24*time.Hour)
	b.want(t, "left", false)
	b.paidOut(t, id, out)
	b.last(t, time.Hour)
	b.want(t, "arrived", false)
	if s := b.state(t); s.Unmatched != 0 {
		t.Errorf("%d transfers have no row", s.Unmatched)
	}
}

// B119, by whatever hand it comes to that: what is paid out again is nobody's.
func TestReconciler_OfTwoPayoutsOfOneNumberTheSecondIsDifferent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	to := common.Address{19: 9}
	b.paid(t, 900)
	b.paid(t, 900)
	id := b.leaves(t, to, 700)
	b.paidOut(t, id, b.spend(t, to, 700))
	b.spend(t, to, 700)
	b.last(t, time.Hour)
	b.want(t, "twice", true, Outflow)
}

func TestReconciler_APayoutThatTheChainDoesNotHaveIsDifferent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	to := common.Address{19: 9}
	b.paid(t, 900)
	id := b.leaves(t, to, 700)
	out := b.spend(t, to, 700)
	b.node.mu.Lock()
	b.node.hides[out.Transaction] = true
	b.node.mu.Unlock()
	b.paidOut(t, id, out)
	b.last(t, time.Hour)
	b.want(t, "without its log", true, Wallet, Row)
}
