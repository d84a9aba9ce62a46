package chain

import (
	"bytes"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"
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
		"66 bytes are refused":              {append(bytes.Clone(good), 0), 0},
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
					t.Fatalf("ParseSignature = %x, %v, want ErrSignature", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.V() != tt.wantV || !bytes.Equal(got[:64], tt.in[:64]) {
				t.Errorf("ParseSignature = %x, want v %d and r, s unchanged", got, tt.wantV)
			}
			if got.R() != common.Hash(tt.in[:32]) || got.S() != common.Hash(tt.in[32:64]) {
				t.Errorf("R, S = %s, %s, want the two halves", got.R(), got.S())
			}
		})
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

func TestRecover_RefusesWhatWasNeverParsed(t *testing.T) {
	t.Parallel()
	var high Signature
	copy(high[:], unhex(t, goldenSignature))
	s := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(high[32:64]))
	s.FillBytes(high[32:64])
	high[64] ^= 27 ^ 28
	for name, s := range map[string]Signature{"zero": {}, "the same with high s": high} {
		if got, err := Recover(common.HexToHash(goldenDigest), s); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: Recover = %s, %v, want ErrSignature", name, got, err)
		}
	}
}

func TestParseSignature_NeverPanicsAndKeepsItsPromise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, err := ParseSignature(rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "bytes"))
		if err == nil && s.check() != nil {
			t.Fatalf("accepted %x, which is out of range", s)
		}
	})
}
