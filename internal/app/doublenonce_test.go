package app_test

import (
	"math/big"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"golang.org/x/sync/errgroup"

	"market/contracts"
	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
)

// allInOne is the code of a creation that calls the token with each of these, in order, and leaves no contract behind.
func allInOne(calls [][]byte) []byte {
	const each = 1 + 2 + 1 + 3 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 2 + 1 + 1 + 1 + 1 + 1 + 20 + 1 + 1 + 1
	var code, data []byte
	token := devnet.TokenAddress()
	for _, call := range calls {
		size := len(call)
		offset := each*len(calls) + 1 + len(data)
		data = append(data, call...)
		high, low := byte(size>>8), byte(size)
		code = append(code,
			byte(vm.PUSH2), high, low, byte(vm.PUSH3), byte(offset>>16), byte(offset>>8), byte(offset), byte(vm.PUSH1), 0, byte(vm.CODECOPY),
			byte(vm.PUSH1), 0, byte(vm.PUSH1), 0, // no output
			byte(vm.PUSH2), high, low, byte(vm.PUSH1), 0, // the input, from the start of memory
			byte(vm.PUSH1), 0, // no value
			byte(vm.PUSH20))
		code = append(code, token[:]...)
		code = append(code, byte(vm.GAS), byte(vm.CALL), byte(vm.POP))
	}
	if len(code) != each*len(calls) {
		panic("the offsets of the data are wrong")
	}
	return append(append(code, byte(vm.STOP)), data...)
}

// An attacker is a payer that has gas as well.
type attacker struct {
	chain.Key
	client *ethclient.Client
	raw    func(tx *types.DynamicFeeTx) *types.Transaction
	nonce  uint64
}

func newAttacker(t *testing.T, w *apptest.World) *attacker {
	t.Helper()
	text, key := apptest.NewKey(t)
	private, err := crypto.HexToECDSA(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Chain.FundGas(t.Context(), key.Address(), new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)); err != nil {
		t.Fatal(err)
	}
	client, err := ethclient.DialContext(t.Context(), w.Chain.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	chainID := big.NewInt(devnet.ChainID)
	return &attacker{Key: key, client: client, raw: func(tx *types.DynamicFeeTx) *types.Transaction {
		return types.MustSignNewTx(private, types.LatestSignerForChainID(chainID), tx)
	}}
}

// send puts a transaction of the attacker on the chain; to nil creates.
func (a *attacker) send(t *testing.T, to *common.Address, gas uint64, data []byte) *types.Receipt {
	t.Helper()
	tx := a.raw(&types.DynamicFeeTx{ChainID: big.NewInt(devnet.ChainID), Nonce: a.nonce, GasTipCap: big.NewInt(1e9), GasFeeCap: big.NewInt(5e10),
		Gas: gas, To: to, Data: data})
	a.nonce++
	if err := a.client.SendTransaction(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	var receipt *types.Receipt
	apptest.Eventually(t, "the attacker's transaction is mined", func() bool {
		found, err := a.client.TransactionReceipt(t.Context(), tx.Hash())
		receipt = found
		return err == nil
	})
	return receipt
}

// The double-nonce attack: a payer burns 100 nonces by paying itself, moves one price to the treasury in the same transaction, and then
// presents 100 payments with these nonces. The transfer follows none of their AuthorizationUsed logs, so it pays for none of them. The control
// is the same transaction with one nonce that does pay: it is one payment, and pays for one call.
func TestLies_ManyNoncesAndOneTransferPayForNoCallButTheOneThatItFollows(t *testing.T) {
	t.Parallel()
	const nonces = 100
	for name, tt := range map[string]struct{ honest, served int }{
		"all are burnt":                 {0, 0},
		"all are burnt but one of them": {1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.StartWith(t, apptest.Setup{Burst: 600})
			s := w.List(t, "attacked", apptest.Works, nil)
			ask := apptest.Ask(s.URL)
			terms := w.Challenge(t, ask)
			a := newAttacker(t, w)
			w.Mint(t, a.Address(), 2*apptest.PriceUnits)
			token, abi := devnet.TokenAddress(), contracts.Token()
			pack := func(method string, args ...any) []byte {
				data, err := abi.Pack(method, args...)
				if err != nil {
					t.Fatal(err)
				}
				return data
			}

			price := big.NewInt(apptest.PriceUnits)
			creation := crypto.CreateAddress(a.Address(), a.nonce+1)
			a.send(t, &token, 200_000, pack("approve(address,uint256)", creation, price))
			var (
				headers [nonces]string
				calls   [][]byte
			)
			for i := range nonces {
				headers[i] = w.Sign(t, a.Key, terms)
				payment := apptest.Signed(t, headers[i])
				if i >= tt.honest {
					burnt := payment.Authorization
					burnt.To = a.Address()
					payment = apptest.Authorize(t, a.Key, burnt)
				}
				calls = append(calls, chain.Calldata(payment))
			}
			calls = append(calls, pack("transferFrom(address,address,uint256)", a.Address(), w.Treasury, price))
			mined := a.send(t, nil, 16_000_000, allInOne(calls))
			if want := 2*nonces + 1; mined.Status != types.ReceiptStatusSuccessful || len(mined.Logs) < want {
				t.Fatalf("the attack has status %d and %d logs, want success and at least %d", mined.Status, len(mined.Logs), want)
			}
			wantMoved(t, w, 1+tt.honest, 0)

			var (
				presenting errgroup.Group
				served     atomic.Int64
			)
			presenting.SetLimit(20)
			for _, header := range headers {
				presenting.Go(func() error {
					switch answer := w.Send(t, ask, header); {
					case answer.Status == http.StatusOK:
						served.Add(1)
					case answer.Status != http.StatusPaymentRequired || answer.Code() != "settle_rejected":
						t.Errorf("a burnt nonce: %d %s", answer.Status, answer.Body)
					}
					return nil
				})
			}
			_ = presenting.Wait()
			if int(served.Load()) != tt.served || s.Asked() != tt.served {
				t.Errorf("%d calls were served, the service was asked %d times, want %d", served.Load(), s.Asked(), tt.served)
			}
			wantMoved(t, w, 1+tt.honest, 0)
			if a := w.Pay(t, w.Payer(t, apptest.PriceUnits), terms, ask); a.Status != http.StatusOK {
				t.Errorf("an honest payer: %d %s", a.Status, a.Body)
			}
		})
	}
}
