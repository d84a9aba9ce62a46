package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
)

const keyFileMax = 64 << 10 // bytes, of a keystore file and of a password file

// OpenKeystore decrypts a go-ethereum keystore file with the password in the first line of another file.
func OpenKeystore(path, passwordFile string) (Key, error) {
	sealed, err := readKeyFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("read keystore: %w", err)
	}
	secret, err := readKeyFile(passwordFile)
	if err != nil {
		return Key{}, fmt.Errorf("read keystore password: %w", err)
	}
	password, _, _ := bytes.Cut(secret, []byte("\n"))
	opened, err := keystore.DecryptKey(sealed, string(bytes.TrimSuffix(password, []byte("\r"))))
	if err != nil {
		return Key{}, fmt.Errorf("open keystore %s: %w", path, err)
	}
	k := newKey(opened.PrivateKey)
	// The address in the file is not part of what is authenticated. Where it is given, it is what the operator thinks this key is.
	var named struct {
		Address string `json:"address"`
	}
	if err := json.Unmarshal(sealed, &named); err != nil {
		return Key{}, fmt.Errorf("open keystore %s: %w", path, err)
	}
	if named.Address != "" && common.HexToAddress(named.Address) != k.address {
		return Key{}, fmt.Errorf("open keystore %s: it names %s and holds the key of %s", path, named.Address, k.address)
	}
	return k, nil
}

func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's own configuration names it
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	b, err := io.ReadAll(io.LimitReader(f, keyFileMax+1))
	if err == nil && len(b) > keyFileMax {
		err = fmt.Errorf("%s is larger than %d bytes", path, keyFileMax)
	}
	return b, err
}
