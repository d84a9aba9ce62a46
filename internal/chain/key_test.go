package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

func TestKey_SignAuthorization_MatchesTheGoldenVector(t *testing.T) {
	t.Parallel()
	k := parseKey(t, goldenKey)
	s, err := k.SignAuthorization(NewDomain(usdc(), 84532), goldenAuthorization())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", s.Bytes()); got != goldenSignature {
		t.Errorf("signature = %s, want %s", got, goldenSignature)
	}
}

func TestKey_SignAuthorization_RefusesAnotherAccountsMoney(t *testing.T) {
	t.Parallel()
	a := goldenAuthorization()
	a.From[0] ^= 1
	if s, err := parseKey(t, goldenKey).SignAuthorization(NewDomain(usdc(), 84532), a); err == nil {
		t.Errorf("signed %x", s)
	}
}

func TestKey_SignTransaction_IsForOneChain(t *testing.T) {
	t.Parallel()
	k := parseKey(t, goldenKey)
	to := usdc().Address
	tx, err := k.SignTransaction(types.NewTx(&types.DynamicFeeTx{To: &to, GasTipCap: new(big.Int), GasFeeCap: new(big.Int)}), 84532)
	if err != nil {
		t.Fatal(err)
	}
	if got := tx.ChainId().Uint64(); got != 84532 {
		t.Errorf("chain id = %d, want 84532", got)
	}
	from, err := types.Sender(types.LatestSignerForChainID(big.NewInt(84532)), tx)
	if err != nil || from != k.Address() {
		t.Errorf("sender = %s, %v, want %s", from, err, k.Address())
	}
}

func TestKey_TheZeroKeySignsNothing(t *testing.T) {
	t.Parallel()
	if _, err := (Key{}).SignAuthorization(Domain{}, Authorization{}); !errors.Is(err, ErrNoKey) {
		t.Errorf("authorization: %v, want ErrNoKey", err)
	}
	if _, err := (Key{}).SignTransaction(types.NewTx(&types.DynamicFeeTx{}), 1); !errors.Is(err, ErrNoKey) {
		t.Errorf("transaction: %v, want ErrNoKey", err)
	}
}

func TestKey_NeverShowsItself(t *testing.T) {
	t.Parallel()
	k := parseKey(t, goldenKey)
	outer := struct {
		Gas Key
		All []Key
		Ptr *Key
	}{k, []Key{k}, &k}
	var shown []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o"} {
		shown = append(shown, fmt.Sprintf(verb, k), fmt.Sprintf(verb, &k), fmt.Sprintf(verb, outer))
	}
	shown = append(shown, k.String(), k.GoString(), fmt.Sprint(k), fmt.Errorf("with %v", k).Error())
	for _, v := range []any{k, &k, outer, map[string]Key{"k": k}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(b))
	}
	secret := strings.TrimPrefix(goldenKey, "0x")
	decimal := new(big.Int).SetBytes(common.FromHex(goldenKey)).String()
	for _, s := range shown {
		if lower := strings.ToLower(s); strings.Contains(lower, secret[:16]) || strings.Contains(s, decimal[:16]) {
			t.Errorf("the key shows in %q", s)
		}
	}
	if !strings.Contains(k.String(), k.Address().Hex()) {
		t.Errorf("String = %q, want the address in it", k)
	}
}

func TestParseKey_RefusesWithoutRepeating(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":                "",
		"a digit short":        goldenKey[:len(goldenKey)-1],
		"a digit more":         goldenKey + "0",
		"not hexadecimal":      strings.Repeat("zy", 32),
		"zero":                 strings.Repeat("0", 64),
		"the curve's order":    "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
		"a prefix twice":       "0x" + goldenKey,
		"a newline at the end": goldenKey + "\n",
	} {
		k, err := ParseKey(text)
		if err == nil {
			t.Errorf("%s: ParseKey = %v, want an error", name, k)
			continue
		}
		if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error repeats the text: %v", name, err)
		}
	}
}
