package secretbox

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	first  = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	second = "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
)

func box(t testing.TB, lines ...string) Box {
	t.Helper()
	b, err := parseKeys([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBox_OpensWhatItSealedAndNothingElse(t *testing.T) {
	t.Parallel()
	b := box(t, first)
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		context := rapid.SliceOf(rapid.Byte()).Draw(t, "context")
		sealed, err := b.Seal(plain, context)
		if err != nil || len(sealed) != len(plain)+Overhead {
			t.Fatalf("Seal: %d bytes, %v", len(sealed), err)
		}
		opened, err := b.Open(sealed, context)
		if err != nil || !bytes.Equal(opened, plain) {
			t.Fatalf("Open = %x, %v, want %x", opened, err, plain)
		}
		if _, err := b.Open(sealed, append(context, 0)); !errors.Is(err, ErrNotAuthentic) {
			t.Fatalf("opened in another context: %v", err)
		}
		damaged := bytes.Clone(sealed)
		damaged[rapid.IntRange(0, len(sealed)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := b.Open(damaged, context); !errors.Is(err, ErrNotAuthentic) && !errors.Is(err, ErrUnknownKey) {
			t.Fatalf("opened damaged: %v", err)
		}
		short := sealed[:rapid.IntRange(0, len(sealed)-1).Draw(t, "length")]
		if _, err := b.Open(short, context); !errors.Is(err, ErrNotAuthentic) {
			t.Fatalf("opened cut: %v", err)
		}
	})
}

func TestBox_NeverSealsTheSameTwice(t *testing.T) {
	t.Parallel()
	b := box(t, first)
	one, errOne := b.Seal([]byte("plain"), nil)
	other, errOther := b.Seal([]byte("plain"), nil)
	if err := errors.Join(errOne, errOther); err != nil || bytes.Equal(one[headerBytes:], other[headerBytes:]) {
		t.Errorf("sealed = %x, %x, %v", one, other, err)
	}
	if bytes.Contains(one, []byte("plain")) {
		t.Errorf("the plain text shows: %x", one)
	}
}

func TestBox_KeysRotate(t *testing.T) {
	t.Parallel()
	before, between, after := box(t, first), box(t, second, first), box(t, second)
	old, err := before.Seal([]byte("old"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := between.Open(old, nil); err != nil || string(opened) != "old" {
		t.Errorf("with the new key in front: %q, %v", opened, err)
	}
	if _, err := after.Open(old, nil); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("without the old key: %v, want ErrUnknownKey", err)
	}
	fresh, err := between.Seal([]byte("fresh"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := after.Open(fresh, nil); err != nil || string(opened) != "fresh" {
		t.Errorf("the key in front did not seal: %q, %v", opened, err)
	}
	if _, err := before.Open(fresh, nil); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("the old key opens what the new one sealed: %v", err)
	}
}

func TestBox_TheZeroBoxSealsNothing(t *testing.T) {
	t.Parallel()
	if _, err := (Box{}).Seal([]byte("plain"), nil); !errors.Is(err, ErrNoKey) {
		t.Errorf("error = %v, want ErrNoKey", err)
	}
}

func TestBox_PrefixTellsWhatTheCurrentKeySealed(t *testing.T) {
	t.Parallel()
	before, after := box(t, first), box(t, second, first)
	old, errOld := before.Seal([]byte("old"), nil)
	fresh, errFresh := after.Seal([]byte("fresh"), nil)
	if err := errors.Join(errOld, errFresh); err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(old, before.Prefix()) || bytes.HasPrefix(old, after.Prefix()) || !bytes.HasPrefix(fresh, after.Prefix()) {
		t.Errorf("prefixes %x and %x do not tell %x from %x", before.Prefix(), after.Prefix(), old, fresh)
	}
	if len((Box{}).Prefix()) != 0 {
		t.Error("a box without keys has a prefix")
	}
}

func TestDevelopmentBox_IsTheSameInEveryProgram(t *testing.T) {
	t.Parallel()
	sealed, err := DevelopmentBox().Seal([]byte("plain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := DevelopmentBox().Open(sealed, nil); err != nil || string(plain) != "plain" {
		t.Errorf("opened %q, %v", plain, err)
	}
}

func TestRandomBox_HasAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	sealed, err := RandomBox().Seal([]byte("plain"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := RandomBox().Open(sealed, nil); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("error = %v, want ErrUnknownKey", err)
	}
}

func TestBox_NeverShowsItsKeys(t *testing.T) {
	t.Parallel()
	b := box(t, first)
	encoded, err := json.Marshal(struct{ Box Box }{b})
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(encoded), fmt.Sprintf("%v %+v %#v %s %q %x %d", b, b, b, b, b, b, b), fmt.Sprint(struct{ B Box }{b})} {
		if strings.Contains(shown, first[:8]) || strings.Contains(shown, "[0 1 2") || !strings.Contains(shown, "box with 1 keys") {
			t.Errorf("printed as %s", shown)
		}
	}
}

func TestOpenKeys_ReadsKeysAndNothingElse(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var lines []string
		for i := range n {
			lines = append(lines, hex.EncodeToString(append([]byte{byte(i)}, make([]byte, 30)...))+"ff")
		}
		return strings.Join(lines, "\n")
	}
	tests := map[string]struct {
		text string
		keys int
		want string // of the error
	}{
		"one key":                 {first, 1, ""},
		"one key and a line end":  {first + "\n", 1, ""},
		"two keys":                {first + "\n" + second + "\n", 2, ""},
		"capitals":                {strings.ToUpper(second), 1, ""},
		"as many as may be":       {many(keysMax) + "\n", keysMax, ""},
		"more than may be":        {many(keysMax + 1), 0, "more than 16"},
		"nothing":                 {"", 0, "no keys"},
		"a line end alone":        {"\n", 0, "line 1"},
		"an empty line between":   {first + "\n\n" + second, 0, "line 2"},
		"two line ends":           {first + "\n\n", 0, "line 2"},
		"Windows line ends":       {first + "\r\n", 0, "line 1"},
		"a digit short":           {first[1:], 0, "line 1"},
		"a digit long":            {first + "0", 0, "line 1"},
		"a prefix":                {"0x" + first[2:], 0, "line 1"},
		"a comment":               {"# keys\n" + first, 0, "line 1"},
		"the same twice":          {first + "\n" + first, 0, "line 2 repeats"},
		"the same in other cases": {second + "\n" + strings.ToUpper(second), 0, "line 2 repeats"},
		"a placeholder":           {strings.Repeat("0", 64), 0, "no random key"},
		"another placeholder":     {strings.Repeat("ab", 32), 0, "no random key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "keys")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			b, err := OpenKeys(path)
			if test.want == "" {
				if err != nil || len(b.keys) != test.keys {
					t.Errorf("%d keys, %v, want %d", len(b.keys), err, test.keys)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want %q in it", err, test.want)
			} else if strings.Contains(err.Error(), first[2:20]) {
				t.Errorf("the error repeats a key: %v", err)
			}
		})
	}
	if _, err := OpenKeys(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: error = %v", err)
	}
}
