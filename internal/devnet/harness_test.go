package devnet_test

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"market/contracts"
	"market/internal/devnet"
	"market/internal/money"
)

// What the tests call by signature.
const (
	transferVRS   = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
	transferBytes = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)"
	receiveBytes  = "receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)"
	receiveVRS    = "receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
	cancelVRS     = "cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)"
	cancelBytes   = "cancelAuthorization(address,bytes32,bytes)"
	stateOf       = "authorizationState(address,bytes32)"
)

// A bench is a chain, the connection that a stranger would have to it, and three accounts.
type bench struct {
	*devnet.Chain
	rpc    *rpc.Client
	client *ethclient.Client // over HTTP
	token  contracts.Contract

	relayer *ecdsa.PrivateKey // has gas, sends what others signed
	payer   *ecdsa.PrivateKey // has 10 USDC and no gas
	payee   common.Address    // has nothing
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{token: contracts.Token(), relayer: newKey(t), payer: newKey(t), payee: addressOf(newKey(t))}
	b.Chain = start(t, devnet.Options{Burst: 30, Alloc: map[common.Address]*big.Int{addressOf(b.relayer): big.NewInt(params.Ether)}})
	b.rpc = dial(t, b.Chain)
	b.client = ethclient.NewClient(b.rpc)
	must(t, b.Mint(t.Context(), addressOf(b.payer), money.FromUnits(10_000_000)))
	return b
}

func start(t *testing.T, opts devnet.Options) *devnet.Chain {
	t.Helper()
	chain, err := devnet.Start(t.Context(), opts)
	must(t, err)
	t.Cleanup(func() {
		if err := chain.Close(); err != nil {
			t.Error(err)
		}
	})
	return chain
}

func dial(t *testing.T, chain *devnet.Chain) *rpc.Client {
	t.Helper()
	client, err := rpc.DialContext(t.Context(), chain.URL())
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

// An authorization is EIP-3009's message with its signature, as the token's methods take it.
type authorization struct {
	from, to                common.Address
	value                   *big.Int
	validAfter, validBefore *big.Int
	nonce                   [32]byte
	signature               []byte
}

// authorize signs one USDC from payer to payee, valid now and for an hour.
func (b *bench) authorize(t *testing.T, changes ...func(*authorization)) authorization {
	t.Helper()
	a := authorization{
		from: addressOf(b.payer), to: b.payee, value: big.NewInt(1_000_000),
		validAfter: new(big.Int), validBefore: new(big.Int).SetUint64(b.head(t).Time + 3600),
		nonce: crypto.Keccak256Hash(crypto.FromECDSA(newKey(t))),
	}
	for _, change := range changes {
		change(&a)
	}
	a.signature = b.sign(t, b.payer, a, "TransferWithAuthorization")
	return a
}

// sign hashes by go-ethereum's own EIP-712 code, so that the contract is checked against something else than itself.
func (b *bench) sign(t *testing.T, key *ecdsa.PrivateKey, a authorization, primary string) []byte {
	t.Helper()
	typed := apitypes.TypedData{
		PrimaryType: primary,
		Domain: apitypes.TypedDataDomain{
			Name: "USDC", Version: "2", ChainId: math.NewHexOrDecimal256(84532),
			VerifyingContract: "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
		},
		Types: apitypes.Types{
			"EIP712Domain": {{Name: "name", Type: "string"}, {Name: "version", Type: "string"},
				{Name: "chainId", Type: "uint256"}, {Name: "verifyingContract", Type: "address"}},
			primary: {{Name: "from", Type: "address"}, {Name: "to", Type: "address"}, {Name: "value", Type: "uint256"},
				{Name: "validAfter", Type: "uint256"}, {Name: "validBefore", Type: "uint256"}, {Name: "nonce", Type: "bytes32"}},
		},
		Message: apitypes.TypedDataMessage{
			"from": a.from.Hex(), "to": a.to.Hex(), "value": a.value.String(),
			"validAfter": a.validAfter.String(), "validBefore": a.validBefore.String(), "nonce": hexutil.Encode(a.nonce[:]),
		},
	}
	if primary == "CancelAuthorization" {
		typed.Types[primary] = []apitypes.Type{{Name: "authorizer", Type: "address"}, {Name: "nonce", Type: "bytes32"}}
		typed.Message = apitypes.TypedDataMessage{"authorizer": a.from.Hex(), "nonce": hexutil.Encode(a.nonce[:])}
	}
	digest, _, err := apitypes.TypedDataAndHash(typed)
	must(t, err)
	signature, err := crypto.Sign(digest, key)
	must(t, err)
	signature[64] += 27
	return signature
}

// pack encodes the call of one of the methods that take a signature.
func (b *bench) pack(t *testing.T, signature string, a authorization) []byte {
	t.Helper()
	args := []any{a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce}
	if signature == cancelVRS || signature == cancelBytes {
		args = []any{a.from, a.nonce}
	}
	if signature == transferVRS || signature == receiveVRS || signature == cancelVRS {
		v, r, s := a.signature[64], common.BytesToHash(a.signature[:32]), common.BytesToHash(a.signature[32:64])
		return b.encode(t, signature, append(args, v, r, s)...)
	}
	return b.encode(t, signature, append(args, a.signature)...)
}

func (b *bench) encode(t *testing.T, signature string, args ...any) []byte {
	t.Helper()
	data, err := b.token.Pack(signature, args...)
	must(t, err)
	return data
}

// call asks the token at the head, over HTTP; the error is what a stranger sees.
func (b *bench) call(t *testing.T, from common.Address, data []byte) ([]byte, error) {
	t.Helper()
	token := devnet.TokenAddress()
	return b.client.CallContract(t.Context(), ethereum.CallMsg{From: from, To: &token, Data: data}, nil)
}

// send has the relayer send a transaction to the token and returns its receipt. Its gas is fixed, so that what reverts is mined too.
func (b *bench) send(t *testing.T, data []byte) *types.Receipt {
	t.Helper()
	nonce, err := b.client.PendingNonceAt(t.Context(), addressOf(b.relayer))
	must(t, err)
	tx := signTx(t, b.relayer, nonce, devnet.TokenAddress(), new(big.Int), data)
	must(t, b.client.SendTransaction(t.Context(), tx))
	return b.mined(t, tx.Hash())
}

func (b *bench) mined(t *testing.T, hash common.Hash) *types.Receipt {
	t.Helper()
	var receipt *types.Receipt
	poll(t, "receipt of "+hash.Hex(), func() bool {
		found, err := b.client.TransactionReceipt(t.Context(), hash)
		if errors.Is(err, ethereum.NotFound) {
			return false
		}
		must(t, err)
		receipt = found
		return true
	})
	return receipt
}

func (b *bench) head(t *testing.T) *types.Header {
	t.Helper()
	header, err := b.Head(t.Context())
	must(t, err)
	return header
}

func (b *bench) balance(t *testing.T, account common.Address) string {
	t.Helper()
	amount, err := b.BalanceOf(t.Context(), account)
	must(t, err)
	return amount.String()
}

func (b *bench) used(t *testing.T, a authorization) bool {
	t.Helper()
	answer, err := b.call(t, b.payee, b.encode(t, stateOf, a.from, a.nonce))
	must(t, err)
	return new(big.Int).SetBytes(answer).Sign() != 0
}

func signTx(t *testing.T, key *ecdsa.PrivateKey, nonce uint64, to common.Address, wei *big.Int, data []byte) *types.Transaction {
	t.Helper()
	chainID := big.NewInt(devnet.ChainID)
	tx, err := types.SignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
		Gas: 150_000, To: &to, Value: wei, Data: data,
	})
	must(t, err)
	return tx
}

// poll asks until done, for 30 seconds.
func poll(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := crypto.GenerateKey()
	must(t, err)
	return key
}

func addressOf(key *ecdsa.PrivateKey) common.Address { return crypto.PubkeyToAddress(key.PublicKey) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
