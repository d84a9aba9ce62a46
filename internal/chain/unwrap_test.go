package chain

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// wrapped is a signature as ERC-6492 wraps it.
func wrapped(t testing.TB, factory common.Address, call, inner []byte) []byte {
	t.Helper()
	packed, err := wrapperForm.Pack(factory, call, inner)
	if err != nil {
		t.Fatal(err)
	}
	return append(packed, common.FromHex("6492649264926492649264926492649264926492649264926492649264926492")...)
}

func TestUnwrap_TakesTheWrapperOff(t *testing.T) {
	t.Parallel()
	key := unhex(t, goldenSignature)
	factory := common.Address{1}
	for name, tt := range map[string]struct {
		in         []byte
		want       []byte // nil: refused
		undeployed bool
	}{
		"no wrapper":                   {key, key, false},
		"a wallet to be deployed":      {wrapped(t, factory, []byte{1, 2, 3}, key), key, true},
		"an empty call of the factory": {wrapped(t, factory, nil, key), key, true},
		"no factory":                   {wrapped(t, common.Address{}, nil, key), key, false},
		"a wrapper in a wrapper":       {wrapped(t, factory, nil, wrapped(t, factory, nil, key)), wrapped(t, factory, nil, key), true},
		"nothing before the mark":      {bytes.Clone(wrapperMark), nil, false},
		"offsets that lead nowhere":    {append(bytes.Repeat([]byte{0xff}, 3*word), wrapperMark...), nil, false},
		"a length beyond the end":      {append(wrapped(t, factory, nil, key)[:5*word], wrapperMark...), nil, false},
	} {
		got, undeployed, err := Unwrap(tt.in)
		if tt.want == nil {
			if !errors.Is(err, ErrSignature) {
				t.Errorf("%s: %x, %v, want ErrSignature", name, got, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got, tt.want) || undeployed != tt.undeployed {
			t.Errorf("%s: %x, undeployed %v, %v, want %x, %v", name, got, undeployed, err, tt.want, tt.undeployed)
		}
	}
}
