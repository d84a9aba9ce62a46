package chain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
)

func TestOpenKeystore_ReadsWhatGoEthereumWrites(t *testing.T) {
	t.Parallel()
	want := parseKey(t, goldenKey)
	path, password := writeKeystore(t, want, "correct horse", nil)
	for name, secret := range map[string]string{
		"as it is": "correct horse", "with a newline": "correct horse\n", "with a Windows newline": "correct horse\r\n",
	} {
		if err := os.WriteFile(password, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := OpenKeystore(path, password)
		if err != nil || got.Address() != want.Address() || !got.private.Equal(want.private) {
			t.Errorf("password %s: OpenKeystore = %v, %v, want %v", name, got, err, want)
		}
	}
}

func TestOpenKeystore_Refuses(t *testing.T) {
	t.Parallel()
	k := parseKey(t, goldenKey)
	path, password := writeKeystore(t, k, "correct horse", nil)
	misnamed, _ := writeKeystore(t, k, "correct horse", func(s string) string {
		return strings.Replace(s, strings.ToLower(k.Address().Hex()[2:]), strings.Repeat("0", 40), 1)
	})
	write := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for name, files := range map[string][2]string{
		"a wrong password":              {path, write("password", "wrong horse")},
		"no such file":                  {path + "x", password},
		"no password file":              {path, password + "x"},
		"a file that is no keystore":    {write("key", "{}"), password},
		"a file that is too large":      {write("key", strings.Repeat(" ", keyFileMax+1)), password},
		"a file that names another one": {misnamed, password},
	} {
		got, err := OpenKeystore(files[0], files[1])
		if err == nil {
			t.Errorf("%s: OpenKeystore = %v, want an error", name, got)
		} else if strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: the error shows the password: %v", name, err)
		}
	}
}

func writeKeystore(t *testing.T, k Key, password string, change func(string) string) (path, passwordFile string) {
	t.Helper()
	sealed, err := keystore.EncryptKey(&keystore.Key{Id: uuid.New(), Address: crypto.PubkeyToAddress(k.private.PublicKey), PrivateKey: k.private},
		password, keystore.LightScryptN, keystore.LightScryptP)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		sealed = []byte(change(string(sealed)))
	}
	dir := t.TempDir()
	path, passwordFile = filepath.Join(dir, "key.json"), filepath.Join(dir, "password")
	for file, b := range map[string][]byte{path: sealed, passwordFile: []byte(password)} {
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path, passwordFile
}
