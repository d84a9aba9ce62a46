package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// program is the server with its crash points, built once a run with the flags of all other tests, so that only our own packages are
// compiled for it.
var program = sync.OnceValues(func() (string, error) {
	file := filepath.Join(built, "market")
	build := exec.Command("go", "build", "-race", "-buildvcs=false", "-tags", "crashpoints", "-o", file, "market/cmd/market") //nolint:gosec // our own program
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program with its crash points: %w\n%s", err, out)
	}
	return file, nil
})

// built is where it is, until the tests end.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "crashtest-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	built = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}
