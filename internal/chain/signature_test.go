package chain

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

func TestParseSignature_TakesWhatTheTokenTakes(t *testing.T) {
	t.Parallel()
	good := unhex(t, goldenSignature)
	order := crypto.S256().Params().N
	half := new(big.Int).Rsh(order, 1)
	with := func(r, s *big.Int, v byte) []byte {
		return append(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), v)
	}
	v := func(v byte) []byte { return append(bytes.Clone(good[:64]), v) }
	one := big.NewInt(1)
	tests := map[string]struct {
		in    []byte
		wantV uint8 // 0: refused
	}{
		"27 stays":                          {v(27), 27},
		"28 stays":                          {v(28), 28},
		"parity 0 becomes 27":               {v(0), 27},
		"parity 1 becomes 28":               {v(1), 28},
		"v of 2 is refused":                 {v(2), 0},
		"v of 25 is refused":                {v(25), 0},
		"v of 26 is refused":                {v(26), 0},
		"v of 29 is refused":                {v(29), 0},
		"v of 255 is refused":               {v(255), 0},
		"nothing is refused":                {nil, 0},
		"63 bytes are refused":              {good[:63], 0},
		"the compact 64 bytes are refused":  {good[:64], 0},
		"200 KB are refused":                {make([]byte, 200<<10), 0},
		"r of 0 is refused":                 {with(new(big.Int), one, 27), 0},
		"r of 1 is in range":                {with(one, one, 27), 27},
		"the largest r is in range":         {with(new(big.Int).Sub(order, one), one, 27), 27},
		"r of the curve's order is refused": {with(order, one, 27), 0},
		"s of 0 is refused":                 {with(one, new(big.Int), 27), 0},
		"the largest low s is in range":     {with(one, half, 27), 27},
		"the smallest high s is refused":    {with(one, new(big.Int).Add(half, one), 27), 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseSignature(tt.in)
			if tt.wantV == 0 {
				if !errors.Is(err, ErrSignature) || got != (Signature{}) {
					t.Fatalf("ParseSignature = %x, %v, want ErrSignature", got.Bytes(), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			v, r, half, ok := got.vrs()
			if !ok || !got.OfKey() || v != tt.wantV || r != common.Hash(tt.in[:32]) || half != common.Hash(tt.in[32:64]) {
				t.Errorf("ParseSignature = %x: v %d, r %s, s %s, of a key %v; want v %d and r, s unchanged", got.Bytes(), v, r, half, ok, tt.wantV)
			}
		})
	}
}

// B35: what is longer than a key's signature is a contract wallet's or nobody's, and never cut into a key's.
func TestParseSignature_LeavesLongOnesToContractWallets(t *testing.T) {
	t.Parallel()
	key := unhex(t, goldenSignature)
	for name, tt := range map[string]struct {
		in   []byte
		good bool
	}{
		"66 bytes":                   {append(bytes.Clone(key), 0), true},
		"two signatures of keys":     {append(bytes.Clone(key), key...), true},
		"4096 bytes":                 {bytes.Repeat([]byte{1}, SignatureBytesMax), true},
		"4097 bytes":                 {bytes.Repeat([]byte{1}, SignatureBytesMax+1), false},
		"a wrapper of ERC-6492":      {wrapped(t, common.Address{1}, nil, key), false},
		"nothing but the mark of it": {append(make([]byte, 64), wrapperMark...), false},
	} {
		got, err := ParseSignature(tt.in)
		if !tt.good {
			if !errors.Is(err, ErrSignature) || got != (Signature{}) {
				t.Errorf("%s: %x, %v, want ErrSignature", name, got.Bytes(), err)
			}
			continue
		}
		if err != nil || got.OfKey() || !bytes.Equal(got.Bytes(), tt.in) {
			t.Errorf("%s: %x, %v, want the bytes as they are", name, got.Bytes(), err)
		}
		if signer, err := Recover(common.HexToHash(goldenDigest), got); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: it is said to be of key %s, %v", name, signer, err)
		}
	}
}

func TestRecover_NamesTheSigner(t *testing.T) {
	t.Parallel()
	a, digest := goldenAuthorization(), common.HexToHash(goldenDigest)
	raw := unhex(t, goldenSignature)
	for name, v := range map[string]byte{"27 or 28": raw[64], "parity": raw[64] - 27} {
		s, err := ParseSignature(append(raw[:64:64], v))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Recover(digest, s)
		if err != nil || got != a.From {
			t.Errorf("v as %s: Recover = %s, %v, want %s", name, got, err, a.From)
		}
		other := digest
		other[0] ^= 1
		if got, err := Recover(other, s); err == nil && got == a.From {
			t.Errorf("v as %s: another digest recovers to the signer", name)
		}
	}
}

func TestRecover_TheZeroSignatureIsNobodys(t *testing.T) {
	t.Parallel()
	if got, err := Recover(common.HexToHash(goldenDigest), Signature{}); !errors.Is(err, ErrSignature) {
		t.Errorf("Recover = %s, %v, want ErrSignature", got, err)
	}
}

func TestSignature_IsNotPrinted(t *testing.T) {
	t.Parallel()
	s, err := ParseSignature(unhex(t, goldenSignature))
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%s"} {
		if text := fmt.Sprintf(verb, Signed{Signature: s}); strings.Contains(text, "bf8545") || strings.Contains(text, s.raw[:8]) {
			t.Errorf("%s prints it: %q", verb, text)
		}
	}
}

// B27, B35: the overload hangs on the form of the signature alone, and what the calldata carries is what was parsed.
func TestCalldata_TheOverloadFitsTheSignature(t *testing.T) {
	t.Parallel()
	key := unhex(t, goldenSignature)
	long := append(bytes.Clone(key), 7)
	for name, tt := range map[string]struct {
		in       []byte
		selector string
		carries  []byte
	}{
		"a key's":             {key, "0xe3ee160e", append(append(common.LeftPadBytes(key[64:], word), key[:32]...), key[32:64]...)},
		"a contract wallet's": {long, "0xcf092995", common.RightPadBytes(append(common.LeftPadBytes([]byte{66}, word), long...), 4*word)},
	} {
		s, err := ParseSignature(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		data := Calldata(Signed{Asset: usdc().Address, Authorization: goldenAuthorization(), Signature: s})
		if got := hexutil.Encode(data[:4]); got != tt.selector {
			t.Errorf("%s: selector %s, want %s", name, got, tt.selector)
		}
		if !bytes.HasSuffix(data, tt.carries) {
			t.Errorf("%s: calldata %x does not end in %x", name, data, tt.carries)
		}
	}
}

// FuzzSignature: whatever a stranger calls a signature is refused or kept as it is. Only 65 bytes become a key's, and they stay those but for v.
func FuzzSignature(f *testing.F) {
	key := common.FromHex(goldenSignature)
	f.Add(key)
	f.Add(key[:64])
	f.Add(append(bytes.Clone(key[:64]), 1))
	f.Add(append(bytes.Clone(key), 0))
	f.Add(wrapped(f, common.Address{1}, []byte{1, 2, 3}, key))
	f.Add(wrapped(f, common.Address{}, nil, append(bytes.Clone(key), 0)))
	f.Add(wrapped(f, common.Address{1}, nil, wrapped(f, common.Address{1}, nil, key)))
	f.Add(append(bytes.Repeat([]byte{0xff}, 3*word), wrapperMark...))
	f.Add(make([]byte, SignatureBytesMax+1))
	f.Fuzz(func(t *testing.T, data []byte) {
		inner, undeployed, err := Unwrap(data)
		if err != nil {
			return
		}
		if !isWrapped(data) && (undeployed || !bytes.Equal(inner, data)) {
			t.Fatalf("%x was unwrapped to %x, and has no wrapper", data, inner)
		}
		s, err := ParseSignature(inner)
		if err != nil {
			if s != (Signature{}) {
				t.Fatalf("refused, and returned %x", s.Bytes())
			}
			return
		}
		if again, err := ParseSignature(s.Bytes()); err != nil || again != s {
			t.Fatalf("%x is read back as %x, %v", s.Bytes(), again.Bytes(), err)
		}
		if len(inner) < SignatureBytesMin || len(inner) > SignatureBytesMax || s.OfKey() != (len(inner) == SignatureBytesMin) {
			t.Fatalf("%d bytes were taken, of a key: %v", len(inner), s.OfKey())
		}
		same := inner
		if s.OfKey() {
			same = inner[:64]
		}
		if !bytes.HasPrefix(s.Bytes(), same) {
			t.Fatalf("%x became %x", inner, s.Bytes())
		}
		call := Calldata(Signed{Asset: usdc().Address, Authorization: goldenAuthorization(), Signature: s})
		if ofKey := bytes.HasPrefix(call, common.FromHex("0xe3ee160e")); ofKey != s.OfKey() {
			t.Fatalf("a signature of a key: %v, and calldata %x", s.OfKey(), call[:4])
		}
	})
}
