package postgres

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// socketPathMax is the longest path of a unix socket in bytes, by the strictest system (macOS: 104 with the final zero).
const socketPathMax = 103

const socketFile = ".s.PGSQL.5432"

// socketDir makes the folder of the server's socket, closed to everybody but the server's account. It is inside the cluster's directory
// unless that makes the path too long; then in the temporary folder under a name derived from the directory, so that a restart finds it.
func (c *cluster) socketDir() (string, error) {
	inside := c.path(runName)
	if len(filepath.Join(inside, socketFile)) <= socketPathMax {
		return inside, c.makePrivate(inside)
	}
	sum := sha256.Sum256([]byte(c.dir))
	temp, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return "", err
	}
	outside := filepath.Join(temp, fmt.Sprintf("market-%d-%s", c.as.id(), hex.EncodeToString(sum[:6])))
	if len(filepath.Join(outside, socketFile)) > socketPathMax {
		return "", fmt.Errorf("socket path %s is too long: choose a shorter data or temporary directory", outside)
	}
	if err := c.as.canReach(outside); err != nil {
		return "", err
	}
	return outside, c.makePrivate(outside)
}

// makePrivate makes a folder of the server's account, or checks one that is there: in a shared place it could be somebody else's trap.
func (c *cluster) makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("socket directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || info.Mode().Perm()&0o077 != 0 || (int(stat.Uid) != c.as.id() && int(stat.Uid) != os.Geteuid()) {
		return fmt.Errorf("socket directory: %s is not a private directory of ours", dir)
	}
	if err := c.as.own(dir); err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	return nil
}
