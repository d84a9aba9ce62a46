package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"market/internal/app/apptest"
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

// launch starts a server and returns when its door is open.
func launch(t testing.TB, env []string) *apptest.Process {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p, err := apptest.Begin(exec.Command(file, "serve"), env) //nolint:gosec // the program that was just built
	if err != nil {
		t.Fatal(err)
	}
	return p
}

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
