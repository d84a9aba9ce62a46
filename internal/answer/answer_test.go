package answer

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"market/internal/call"
	"market/internal/secretbox"
)

func TestStore_OpensWhatItSealed(t *testing.T) {
	t.Parallel()
	s := NewStore(secretbox.RandomBox())
	text := rapid.StringMatching(`[ -~]{0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		a := Answer{
			Status: rapid.IntRange(200, 599).Draw(t, "status"),
			Header: rapid.MapOf(text, rapid.SliceOfN(text, 1, 3)).Draw(t, "header"),
			Body:   rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
		}
		k := Kept{Call: call.NewID(), Status: a.Status}
		var err error
		if k.Sealed, err = s.Seal(k.Call, a); err != nil {
			t.Fatal(err)
		}
		got, err := s.Open(k)
		if diff := cmp.Diff(a, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("Open: %v (-want +got):\n%s", err, diff)
		}
	})
}

func TestStore_Open_WantsTheRowThatWasSealed(t *testing.T) {
	t.Parallel()
	s := NewStore(secretbox.RandomBox())
	id := call.NewID()
	sealed, err := s.Seal(id, Answer{Status: 200, Body: []byte("secret")})
	if err != nil || bytes.Contains(sealed, []byte("secret")) {
		t.Fatalf("sealed = %x, %v", sealed, err)
	}
	short, err := s.box.Seal([]byte{0, 0, 0}, contextOf(id, 200))
	if err != nil {
		t.Fatal(err)
	}
	long, err := s.box.Seal([]byte{0, 0, 0, 9, '{', '}'}, contextOf(id, 200))
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]Kept{
		"of another call":                   {Call: call.NewID(), Status: 200, Sealed: sealed},
		"with another status":               {Call: id, Status: 404, Sealed: sealed},
		"damaged":                           {Call: id, Status: 200, Sealed: append(bytes.Clone(sealed), 0)},
		"empty":                             {Call: id, Status: 200},
		"sealed otherwise, too short":       {Call: id, Status: 200, Sealed: short},
		"sealed otherwise, with less in it": {Call: id, Status: 200, Sealed: long},
	} {
		if a, err := s.Open(k); err == nil {
			t.Errorf("%s: opened as %+v", name, a)
		}
	}
	if _, err := NewStore(secretbox.RandomBox()).Open(Kept{Call: id, Status: 200, Sealed: sealed}); !errors.Is(err, secretbox.ErrUnknownKey) {
		t.Errorf("without the key: %v, want ErrUnknownKey", err)
	}
	if _, err := (Store{}).Seal(id, Answer{}); !errors.Is(err, secretbox.ErrNoKey) {
		t.Errorf("a store without a box: %v, want ErrNoKey", err)
	}
}

func TestStore_Seal_HasALimit(t *testing.T) {
	t.Parallel()
	s := NewStore(secretbox.RandomBox())
	header := func(n int) http.Header { // n bytes as JSON
		return http.Header{"A": {strings.Repeat("a", n-len(`{"A":[""]}`))}}
	}
	tests := map[string]struct {
		answer Answer
		want   error
	}{
		"a body just under it":   {Answer{Body: make([]byte, BodyBytesMax-1)}, nil},
		"a body on it":           {Answer{Body: make([]byte, BodyBytesMax)}, nil},
		"a body just over it":    {Answer{Body: make([]byte, BodyBytesMax+1)}, ErrTooLarge},
		"a header just under it": {Answer{Header: header(headerBytesMax - 1)}, nil},
		"a header on it":         {Answer{Header: header(headerBytesMax)}, nil},
		"a header just over it":  {Answer{Header: header(headerBytesMax + 1)}, ErrTooLarge},
	}
	for name, test := range tests {
		if _, err := s.Seal(call.NewID(), test.answer); !errors.Is(err, test.want) {
			t.Errorf("%s: error = %v, want %v", name, err, test.want)
		}
	}
}
