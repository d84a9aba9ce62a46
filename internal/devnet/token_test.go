package devnet_test

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient/gethclient"

	"market/internal/devnet"
	"market/internal/money"
)

// Both forms, because x402 settles a key's signature by the first and a wallet's by the second.
func TestToken_TransferWithAuthorization_MovesMoneyExactlyOnce(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]string{"v, r, s": transferVRS, "bytes": transferBytes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			a := b.authorize(t)
			receipt := b.send(t, b.pack(t, method, a))
			if receipt.Status != types.ReceiptStatusSuccessful {
				t.Fatal("the transfer reverted")
			}
			b.wantPaymentLogs(t, receipt, a)
			if !b.used(t, a) {
				t.Error("the nonce is unused")
			}
			// Circle's token takes 102,592 for a payee's first transfer under the same rules.
			if receipt.GasUsed < 50_000 || receipt.GasUsed > 100_000 {
				t.Errorf("gas used = %d, want 50,000 to 100,000", receipt.GasUsed)
			}

			again := b.send(t, b.pack(t, method, a))
			if again.Status != types.ReceiptStatusFailed {
				t.Error("the second transfer of one authorization succeeded")
			}
			_, err := b.call(t, b.payee, b.pack(t, method, a))
			wantRevert(t, err, "FiatTokenV2: authorization is used or canceled")
			if got := b.balance(t, a.from); got != "9000000" {
				t.Errorf("balance of the payer = %s, want 9000000", got)
			}
			if got := b.balance(t, a.to); got != "1000000" {
				t.Errorf("balance of the payee = %s, want 1000000", got)
			}
		})
	}
}

// wantPaymentLogs asserts the pair that proves a payment: AuthorizationUsed, directly followed by Transfer, and nothing else.
func (b *bench) wantPaymentLogs(t *testing.T, receipt *types.Receipt, a authorization) {
	t.Helper()
	if len(receipt.Logs) != 2 {
		t.Fatalf("%d logs, want 2", len(receipt.Logs))
	}
	used, transfer := receipt.Logs[0], receipt.Logs[1]
	want := []common.Hash{b.token.ABI.Events["AuthorizationUsed"].ID, common.BytesToHash(a.from.Bytes()), a.nonce}
	if !slices.Equal(used.Topics, want) || len(used.Data) != 0 {
		t.Errorf("first log: topics %v, data %x, want topics %v and no data", used.Topics, used.Data, want)
	}
	want = []common.Hash{b.token.ABI.Events["Transfer"].ID, common.BytesToHash(a.from.Bytes()), common.BytesToHash(a.to.Bytes())}
	if !slices.Equal(transfer.Topics, want) || new(big.Int).SetBytes(transfer.Data).Cmp(a.value) != 0 {
		t.Errorf("second log: topics %v, data %x, want topics %v and %s", transfer.Topics, transfer.Data, want, a.value)
	}
	if transfer.Index != used.Index+1 || used.Address != devnet.TokenAddress() || transfer.Address != devnet.TokenAddress() {
		t.Errorf("logs %d of %s and %d of %s, want two adjacent ones of the token", used.Index, used.Address, transfer.Index, transfer.Address)
	}
}

// The chain stands still, so the block time that the token sees is known to the second.
func TestToken_TransferWithAuthorization_IsValidStrictlyBetweenItsTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Pause()
	defer b.Resume()
	now := int64(b.head(t).Time)
	const early, late = "FiatTokenV2: authorization is not yet valid", "FiatTokenV2: authorization is expired"
	tests := map[string]struct {
		after, before int64
		want          string // revert text; empty where the transfer goes through
	}{
		"valid since the second before": {now - 1, now + 60, ""},
		"valid after this second":       {now, now + 60, early},
		"valid after the next":          {now + 1, now + 60, early},
		"valid before the second after": {0, now + 1, ""},
		"valid before this second":      {0, now, late},
		"valid before the last":         {0, now - 1, late},
	}
	for name, tt := range tests {
		for _, method := range []string{transferVRS, transferBytes} {
			_, err := b.call(t, b.payee, b.pack(t, method, b.authorize(t, func(a *authorization) {
				a.validAfter, a.validBefore = big.NewInt(tt.after), big.NewInt(tt.before)
			})))
			if got := revertText(err); got != tt.want {
				t.Errorf("%s: reverts with %q, want %q", name, got, tt.want)
			}
		}
	}
}

func TestToken_TransferWithAuthorization_TakesOnlyThePayersOwnSignature(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	good := b.authorize(t)
	other := b.sign(t, newKey(t), good, "TransferWithAuthorization")
	order := crypto.S256().Params().N

	tests := map[string]struct {
		spoil func(a *authorization)
		want  string
	}{
		"of another key":          {func(a *authorization) { a.signature = other }, "FiatTokenV2: invalid signature"},
		"of another value":        {func(a *authorization) { a.value = big.NewInt(1) }, "FiatTokenV2: invalid signature"},
		"of another payee":        {func(a *authorization) { a.to = addressOf(b.relayer) }, "FiatTokenV2: invalid signature"},
		"of another nonce":        {func(a *authorization) { a.nonce[0] ^= 1 }, "FiatTokenV2: invalid signature"},
		"of an earlier start":     {func(a *authorization) { a.validAfter = big.NewInt(1) }, "FiatTokenV2: invalid signature"},
		"of a longer life":        {func(a *authorization) { a.validBefore = new(big.Int).Lsh(a.validBefore, 1) }, "FiatTokenV2: invalid signature"},
		"of a message to receive": {func(a *authorization) { a.signature = b.sign(t, b.payer, good, "ReceiveWithAuthorization") }, "FiatTokenV2: invalid signature"},
		"mirrored to the high s": {func(a *authorization) {
			s := new(big.Int).Sub(order, new(big.Int).SetBytes(a.signature[32:64]))
			s.FillBytes(a.signature[32:64])
			a.signature[64] ^= 27 ^ 28
		}, "ECRecover: invalid signature 's' value"},
		"with v of 0 or 1": {func(a *authorization) { a.signature[64] -= 27 }, "ECRecover: invalid signature 'v' value"},
		"of nobody":        {func(a *authorization) { clear(a.signature[:64]) }, "ECRecover: invalid signature"},
	}
	for name, tt := range tests {
		for _, method := range []string{transferVRS, transferBytes} {
			bad := good
			bad.signature = bytes.Clone(good.signature)
			tt.spoil(&bad)
			_, err := b.call(t, b.payee, b.pack(t, method, bad))
			if got := revertText(err); got != tt.want {
				t.Errorf("a signature %s: reverts with %q, want %q", name, got, tt.want)
			}
		}
	}
	for _, size := range []int{0, 64, 66} {
		bad := good
		bad.signature = make([]byte, size)
		_, err := b.call(t, b.payee, b.pack(t, transferBytes, bad))
		wantRevert(t, err, "ECRecover: invalid signature length")
	}
	if _, err := b.call(t, b.payee, b.pack(t, transferVRS, good)); err != nil {
		t.Errorf("the unspoiled one: %v", err)
	}
}

func TestToken_TransferWithAuthorization_NeedsTheMoney(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for value, want := range map[int64]string{
		9_999_999:  "",
		10_000_000: "",
		10_000_001: "ERC20: transfer amount exceeds balance",
	} {
		a := b.authorize(t, func(a *authorization) { a.value = big.NewInt(value) })
		_, err := b.call(t, b.payee, b.pack(t, transferVRS, a))
		if got := revertText(err); got != want {
			t.Errorf("%d of 10000000: reverts with %q, want %q", value, got, want)
		}
	}
}

// An account with code is asked by ERC-1271 and by nothing else, even where its key signed.
func TestToken_TransferWithAuthorization_AsksAnAccountWithCode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tests := map[string]struct {
		code string // of the payer's account
		want string
	}{
		"a wallet that says yes":          {"0x631626ba7e60e01b5f5260205ff3", ""},
		"a wallet that says another word": {"0x63deadbeef60e01b5f5260205ff3", "FiatTokenV2: invalid signature"},
		"a wallet that says yes and more": {"0x631626ba7e60e01b6001175f5260205ff3", "FiatTokenV2: invalid signature"},
		"a wallet that says too little":   {"0x631626ba7e60e01b5f52601f5ff3", "FiatTokenV2: invalid signature"},
		"a wallet that says nothing":      {"0x00", "FiatTokenV2: invalid signature"},
		"a wallet that reverts":           {"0x5f5ffd", "FiatTokenV2: invalid signature"},
	}
	token := devnet.TokenAddress()
	for name, tt := range tests {
		a := b.authorize(t)
		overrides := map[common.Address]gethclient.OverrideAccount{a.from: {Code: hexutil.MustDecode(tt.code)}}
		for _, method := range []string{transferVRS, transferBytes} {
			call := ethereum.CallMsg{From: b.payee, To: &token, Data: b.pack(t, method, a)}
			_, err := gethclient.New(b.rpc).CallContract(t.Context(), call, nil, &overrides)
			if got := revertText(err); got != tt.want {
				t.Errorf("%s: reverts with %q, want %q", name, got, tt.want)
			}
		}
	}
}

// The vector was made with another implementation (viem) and its public test key. Block time is overridden, so the test does not
// depend on the day that it runs on.
func TestToken_AcceptsTheGoldenVector(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	separator, err := b.call(t, b.payee, b.encode(t, "DOMAIN_SEPARATOR()"))
	must(t, err)
	if want := "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"; hexutil.Encode(separator) != want {
		t.Errorf("domain separator = %x, want %s", separator, want)
	}

	golden := authorization{
		from:        common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"),
		to:          common.HexToAddress("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"),
		value:       big.NewInt(12345),
		validAfter:  new(big.Int),
		validBefore: big.NewInt(1_800_000_000),
		nonce:       common.HexToHash("0xabababababababababababababababababababababababababababababababab"),
		signature: hexutil.MustDecode("0xbf8545a00715e30fafafb560715291e0df679c515ec176d684ba56e794b2bf81" +
			"3995fd27c191691a22314c8feea0607609267369a318ad20b287bc00c684d0c51b"),
	}
	must(t, b.Mint(t.Context(), golden.from, money.FromUnits(12345)))
	forged := golden
	forged.value = big.NewInt(12344)
	tests := map[string]struct {
		sent authorization
		at   uint64 // block time
		want string
	}{
		"in its last second":   {golden, 1_799_999_999, ""},
		"when it has expired":  {golden, 1_800_000_000, "FiatTokenV2: authorization is expired"},
		"with a changed value": {forged, 1_799_999_999, "FiatTokenV2: invalid signature"},
	}
	token := devnet.TokenAddress()
	for name, tt := range tests {
		for _, method := range []string{transferVRS, transferBytes} {
			call := ethereum.CallMsg{From: b.payee, To: &token, Data: b.pack(t, method, tt.sent)}
			_, err := gethclient.New(b.rpc).CallContractWithBlockOverrides(
				t.Context(), call, nil, nil, gethclient.BlockOverrides{Time: tt.at})
			if got := revertText(err); got != tt.want {
				t.Errorf("%s: reverts with %q, want %q", name, got, tt.want)
			}
		}
	}
}

func wantRevert(t *testing.T, err error, want string) {
	t.Helper()
	if got := revertText(err); got != want {
		t.Errorf("reverts with %q, want %q", got, want)
	}
}

// revertText is the reason that a client is told; an error that is no revert is returned as it reads.
func revertText(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "execution reverted: ")
}
