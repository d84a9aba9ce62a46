package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"market/internal/postgres"
)

// StartTemporary starts an embedded server that keeps nothing: its directory is removed when it, or the whole process, is gone.
func StartTemporary(ctx context.Context) (*postgres.Server, error) {
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return nil, err
	}
	// The server may run as another user, who has to pass through.
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // what is inside is private
		return nil, err
	}
	if err := startJanitor(dir); err != nil {
		return nil, err
	}
	server, err := postgres.StartEmbedded(ctx, postgres.Embedded{
		Dir:    filepath.Join(dir, "cluster"),
		BinDir: os.Getenv("PG_BIN"),
		Settings: map[string]string{
			"fsync":              "off",
			"synchronous_commit": "off",
			"full_page_writes":   "off",
			"max_connections":    "600",
			// A checkpoint of data that is thrown away is wasted.
			"checkpoint_timeout": "1h",
			"max_wal_size":       "4GB",
			"autovacuum":         "off",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start test database server: %w", err)
	}
	return server, nil
}

// janitorScript waits until its input ends, which is when the test process does, however that happens. Then it stops the server, should
// the kernel not have done so, and removes the directory.
const janitorScript = `
cat >/dev/null
pid=$(head -n 1 "$1/cluster/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ]; then
	kill -QUIT "$pid" 2>/dev/null
	tries=0
	while kill -0 "$pid" 2>/dev/null && [ $tries -lt 100 ]; do tries=$((tries+1)); sleep 0.1; done
fi
rm -rf "$1"
`

// startJanitor runs the script in a process that outlives this one. No test hook runs after the last test of a process, and none at all
// when it is killed.
func startJanitor(dir string) error {
	input, output, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("sh", "-c", janitorScript, "sh", dir) //nolint:gosec // the script is a constant, the directory our own
	cmd.Dir = "/"
	cmd.Stdin = input
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the tests, not the cleaning
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start janitor: %w", err)
	}
	janitors = append(janitors, output)
	return input.Close()
}

// janitors holds the writing ends of the janitors' pipes open until the process ends. Nothing is ever written.
var janitors []*os.File
