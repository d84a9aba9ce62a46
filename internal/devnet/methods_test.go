package devnet_test

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"market/internal/devnet"
)

func TestToken_DescribesItselfAsTheConstantsSay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for method, want := range map[string]any{
		"name":     devnet.TokenName,
		"version":  devnet.TokenVersion,
		"symbol":   devnet.TokenSymbol,
		"decimals": uint8(devnet.TokenDecimals),
	} {
		answer, err := b.call(t, b.payee, b.encode(t, method+"()"))
		must(t, err)
		values, err := b.token.ABI.Unpack(method, answer)
		must(t, err)
		if !slices.Equal(values, []any{want}) {
			t.Errorf("%s = %v, want %v", method, values, want)
		}
	}
	chainID, err := b.client.ChainID(t.Context())
	must(t, err)
	if chainID.Uint64() != devnet.ChainID {
		t.Errorf("chain id = %s, want %d", chainID, devnet.ChainID)
	}
}

func TestToken_ReceiveWithAuthorization_IsForThePayeeAlone(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]string{"v, r, s": receiveVRS, "bytes": receiveBytes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			a := b.authorize(t, func(a *authorization) { a.to = addressOf(b.relayer) })
			a.signature = b.sign(t, b.payer, a, "ReceiveWithAuthorization")
			_, err := b.call(t, b.payee, b.pack(t, method, a))
			wantRevert(t, err, "FiatTokenV2: caller must be the payee")

			receipt := b.send(t, b.pack(t, method, a))
			b.wantPaymentLogs(t, receipt, a)
			if got := b.balance(t, a.to); got != "1000000" {
				t.Errorf("balance of the payee = %s, want 1000000", got)
			}
		})
	}
}

func TestToken_CancelAuthorization_ForbidsTheTransfer(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]string{"v, r, s": cancelVRS, "bytes": cancelBytes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			a := b.authorize(t)
			cancel := a
			_, err := b.call(t, b.payee, b.pack(t, method, cancel))
			wantRevert(t, err, "FiatTokenV2: invalid signature") // that of the transfer is no leave to cancel it

			cancel.signature = b.sign(t, b.payer, a, "CancelAuthorization")
			receipt := b.send(t, b.pack(t, method, cancel))
			want := []common.Hash{b.token.ABI.Events["AuthorizationCanceled"].ID, common.BytesToHash(a.from.Bytes()), a.nonce}
			if len(receipt.Logs) != 1 || !slices.Equal(receipt.Logs[0].Topics, want) {
				t.Errorf("logs = %v, want one with topics %v", receipt.Logs, want)
			}
			for _, refused := range [][]byte{b.pack(t, transferVRS, a), b.pack(t, method, cancel)} {
				_, err = b.call(t, b.payee, refused)
				wantRevert(t, err, "FiatTokenV2: authorization is used or canceled")
			}
		})
	}
}

func TestToken_IsAnERC20(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	relayer := addressOf(b.relayer)
	must(t, b.Mint(t.Context(), relayer, units(100)))

	transfer := b.send(t, b.encode(t, "transfer(address,uint256)", b.payee, big.NewInt(40)))
	if transfer.Status != types.ReceiptStatusSuccessful || len(transfer.Logs) != 1 {
		t.Fatalf("transfer: status %d with %d logs, want 1 with 1", transfer.Status, len(transfer.Logs))
	}
	b.send(t, b.encode(t, "transfer(address,uint256)", relayer, big.NewInt(60))) // to itself
	b.send(t, b.encode(t, "approve(address,uint256)", relayer, big.NewInt(50)))
	b.send(t, b.encode(t, "transferFrom(address,address,uint256)", relayer, b.payee, big.NewInt(50)))
	if got := b.balance(t, b.payee); got != "90" {
		t.Errorf("balance of the payee = %s, want 90", got)
	}
	if got := b.balance(t, relayer); got != "10" {
		t.Errorf("balance of the relayer = %s, want 10", got)
	}

	for want, data := range map[string][]byte{
		"ERC20: transfer amount exceeds balance":   b.encode(t, "transfer(address,uint256)", b.payee, big.NewInt(11)),
		"ERC20: transfer to the zero address":      b.encode(t, "transfer(address,uint256)", common.Address{}, big.NewInt(1)),
		"ERC20: transfer amount exceeds allowance": b.encode(t, "transferFrom(address,address,uint256)", relayer, b.payee, big.NewInt(1)),
		"ERC20: approve to the zero address":       b.encode(t, "approve(address,uint256)", common.Address{}, big.NewInt(1)),
	} {
		_, err := b.call(t, relayer, data)
		wantRevert(t, err, want)
	}
}
