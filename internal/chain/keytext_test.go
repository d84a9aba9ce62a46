package chain

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
)

// The vector is that of the go-ethereum and ethers documentation: personal_sign of "Some data" with the key of 0x2c75….
func TestKey_SignText_IsWhatWalletsSign(t *testing.T) {
	t.Parallel()
	k, err := ParseKey("4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
	if err != nil {
		t.Fatal(err)
	}
	s, err := k.SignText("Some data")
	if err != nil {
		t.Fatal(err)
	}
	const want = "b91467e570a6466aa9e9876cbcd013baba02900b8979d43fe208a4a4f339f5fd6007e74cd82e037b800186422fc2da167c747ef045e5d18a5f5d4300f8e1a0291c"
	if got := strings.TrimPrefix(strings.ToLower(hex.EncodeToString(s.Bytes())), "0x"); got != want {
		t.Errorf("signature = %s, want %s", got, want)
	}
	if who, err := Recover(TextDigest("Some data"), s); err != nil || who != k.Address() {
		t.Errorf("recovered %s, %v, want %s", who, err, k.Address())
	}
	// A text is never what a transaction or an authorization is signed over: those begin otherwise, or are a digest of their own.
	if TextDigest("x") == crypto.Keccak256Hash([]byte("x")) {
		t.Error("a text is signed as it is")
	}
	if _, err := (Key{}).SignText("x"); err == nil {
		t.Error("no key signed")
	}
}
