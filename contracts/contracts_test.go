package contracts_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"market/contracts"
)

// The selectors are those of Circle's token, which clients and facilitators have compiled in.
func TestToken_HasTheSelectorsOfEIP3009(t *testing.T) {
	t.Parallel()
	token := contracts.Token()
	for signature, selector := range map[string]string{
		"transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)": "0xe3ee160e",
		"transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)":                 "0xcf092995",
		"receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)":  "0xef55bec6",
		"receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)":                  "0x88b7ab63",
		"cancelAuthorization(address,bytes32,uint8,bytes32,bytes32)":                                       "0x5a049a70",
		"authorizationState(address,bytes32)":                                                              "0xe94a0102",
		"DOMAIN_SEPARATOR()":                                                                               "0x3644e515",
		"balanceOf(address)":                                                                               "0x70a08231",
		"transfer(address,uint256)":                                                                        "0xa9059cbb",
		"isBlacklisted(address)":                                                                           "0xfe575a87",
		"paused()":                                                                                         "0x5c975abb",
		"name()":                                                                                           "0x06fdde03",
		"version()":                                                                                        "0x54fd4d50",
		"decimals()":                                                                                       "0x313ce567",
	} {
		id, err := hexutil.Decode(selector)
		if err != nil {
			t.Fatal(err)
		}
		method, err := token.ABI.MethodById(id)
		if err != nil {
			t.Errorf("%s: %v", selector, err)
			continue
		}
		if method.Sig != signature {
			t.Errorf("%s is %s, want %s", selector, method.Sig, signature)
		}
	}
}

func TestToken_HasTheTopicsThatProveAPayment(t *testing.T) {
	t.Parallel()
	token := contracts.Token()
	for name, want := range map[string]string{
		"Transfer":          "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
		"AuthorizationUsed": "0x98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5",
	} {
		if got := token.ABI.Events[name].ID; got != common.HexToHash(want) {
			t.Errorf("topic of %s = %s, want %s", name, got, want)
		}
	}
}

func TestWallet_AnswersERC1271(t *testing.T) {
	t.Parallel()
	wallet := contracts.Wallet()
	method, err := wallet.ABI.MethodById([]byte{0x16, 0x26, 0xba, 0x7e})
	if err != nil || method.Sig != "isValidSignature(bytes32,bytes)" {
		t.Errorf("0x1626ba7e is %v, %v", method, err)
	}
	if inputs := wallet.ABI.Constructor.Inputs; len(inputs) != 2 || len(wallet.Runtime) == 0 || len(wallet.Creation) <= len(wallet.Runtime) {
		t.Errorf("the constructor takes %d values; creation code of %d bytes, runtime code of %d", len(inputs), len(wallet.Creation), len(wallet.Runtime))
	}
}

func TestToken_CarriesBothCodes(t *testing.T) {
	t.Parallel()
	token := contracts.Token()
	if len(token.Runtime) == 0 || len(token.Creation) <= len(token.Runtime) {
		t.Errorf("creation code of %d bytes, runtime code of %d: creation wraps the runtime code, and neither is empty",
			len(token.Creation), len(token.Runtime))
	}
}

func TestContract_Pack_RefusesWhatIsNotInTheABI(t *testing.T) {
	t.Parallel()
	token := contracts.Token()
	for name, pack := range map[string]func() ([]byte, error){
		"an unknown signature":    func() ([]byte, error) { return token.Pack("burn(uint256)") },
		"a name alone":            func() ([]byte, error) { return token.Pack("transferWithAuthorization") },
		"too few arguments":       func() ([]byte, error) { return token.Pack("balanceOf(address)") },
		"an argument of no match": func() ([]byte, error) { return token.Pack("balanceOf(address)", "0x00") },
	} {
		if packed, err := pack(); err == nil {
			t.Errorf("%s: packed %x, want an error", name, packed)
		}
	}
}
