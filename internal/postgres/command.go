package postgres

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// commandTimeout bounds initdb, which on a slow disk takes a while, and everything quicker.
const commandTimeout = 2 * time.Minute

// lastLines is the end of a program's output, for an error.
func lastLines(text []byte) string {
	const max = 2000
	if len(text) > max {
		text = text[len(text)-max:]
	}
	return strings.TrimSpace(string(text))
}

// run runs one of the binaries to its end, as the server's account, with nothing of our environment.
func (b binaries) run(ctx context.Context, as *account, dir, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, name), args...)
	cmd.Dir = dir
	cmd.Env = serverEnvironment(b.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential()}
	return cmd.CombinedOutput()
}

// serverEnvironment keeps our own environment, which holds secrets and PG* variables, away from the server.
func serverEnvironment(binDir string) []string {
	return []string{"PATH=" + binDir + ":/usr/bin:/bin", "TZ=UTC", "LC_ALL=C"}
}
