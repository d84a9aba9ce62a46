package hostiletest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write docs/hostile.md instead of comparing it")

// TestMain starts the name server of the tests, and makes this program trust their certificates as a machine trusts its own.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hostiletest-")
	if err == nil {
		err = authority.write(filepath.Join(dir, "ca.pem"))
	}
	if err == nil {
		err = os.Setenv("SSL_CERT_FILE", filepath.Join(dir, "ca.pem"))
	}
	if err == nil {
		err = os.Setenv("SSL_CERT_DIR", dir)
	}
	if err == nil {
		err = resolver.start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
