package devnet_test

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"market/internal/devnet"
	"market/internal/money"
)

func units(n uint64) money.Amount { return money.FromUnits(n) }

func TestChain_SetBlocked_StopsMoneyFromAndToTheAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := b.authorize(t)
	for name, account := range map[string]common.Address{"the payer": a.from, "the payee": a.to} {
		must(t, b.SetBlocked(t.Context(), account, true))
		_, err := b.call(t, addressOf(b.relayer), b.pack(t, transferVRS, a))
		if got, want := revertText(err), "Blacklistable: account is blacklisted"; got != want {
			t.Errorf("%s is blocked: reverts with %q, want %q", name, got, want)
		}
		must(t, b.SetBlocked(t.Context(), account, false))
		if _, err := b.call(t, addressOf(b.relayer), b.pack(t, transferVRS, a)); err != nil {
			t.Errorf("%s is blocked no more: %v", name, err)
		}
	}
}

func TestChain_SetPaused_StopsAllMoneyButNotTheOwner(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := b.authorize(t)
	must(t, b.SetPaused(t.Context(), true))
	for _, data := range [][]byte{
		b.pack(t, transferVRS, a), b.pack(t, transferBytes, a), b.pack(t, cancelVRS, a),
		b.encode(t, "transfer(address,uint256)", b.payee, big.NewInt(0)),
	} {
		_, err := b.call(t, addressOf(b.relayer), data)
		wantRevert(t, err, "Pausable: paused")
	}
	must(t, b.Mint(t.Context(), b.payee, units(5)))
	if got := b.balance(t, b.payee); got != "5" {
		t.Errorf("balance after minting = %s, want 5", got)
	}
	must(t, b.SetPaused(t.Context(), false))
	if _, err := b.call(t, addressOf(b.relayer), b.pack(t, transferVRS, a)); err != nil {
		t.Errorf("paused no more: %v", err)
	}
}

func TestChain_SetLie_ReportsSuccessAndMovesNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lie  devnet.Lie
		logs int
		used bool
	}{
		"silent":    {devnet.Silent, 0, false},
		"used only": {devnet.UsedOnly, 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			must(t, b.SetLie(t.Context(), tt.lie))
			a := b.authorize(t)
			receipt := b.send(t, b.pack(t, transferVRS, a))
			if receipt.Status != types.ReceiptStatusSuccessful {
				t.Error("the transfer reverted")
			}
			if len(receipt.Logs) != tt.logs {
				t.Errorf("%d logs, want %d", len(receipt.Logs), tt.logs)
			}
			if got := b.used(t, a); got != tt.used {
				t.Errorf("nonce used = %t, want %t", got, tt.used)
			}
			if got := b.balance(t, a.to); got != "0" {
				t.Errorf("balance of the payee = %s, want 0", got)
			}

			forged := a
			forged.nonce[0] ^= 1
			_, err := b.call(t, b.payee, b.pack(t, transferVRS, forged))
			wantRevert(t, err, "FiatTokenV2: invalid signature") // a lie about valid ones only

			must(t, b.SetLie(t.Context(), devnet.Honest))
			honest := b.authorize(t)
			b.wantPaymentLogs(t, b.send(t, b.pack(t, transferVRS, honest)), honest)
		})
	}
}

func TestChain_SetLie_RefusesWhatIsNoLie(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, lie := range []devnet.Lie{-1, 0, devnet.UsedOnly + 1} {
		if err := b.SetLie(t.Context(), lie); err == nil {
			t.Errorf("lie %d was set", lie)
		}
	}
}

func TestToken_SwitchesAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stranger := addressOf(b.relayer)
	for signature, args := range map[string][]any{
		"mint(address,uint256)":   {stranger, big.NewInt(1)},
		"blocklist(address,bool)": {b.payee, true},
		"pause(bool)":             {true},
		"lie(uint8)":              {uint8(1)},
	} {
		data := b.encode(t, signature, args...)
		_, err := b.call(t, stranger, data)
		if got, want := revertText(err), "Ownable: caller is not the owner"; got != want {
			t.Errorf("%s: reverts with %q, want %q", signature, got, want)
		}
	}
}
