package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Why an embedded server does not start in a directory.
var (
	// ErrForeignDirectory is a directory that holds something and not our marker. Nothing in it is touched.
	ErrForeignDirectory = errors.New("not a data directory of market")
	// ErrDirectoryInUse is a directory that another running program has.
	ErrDirectoryInUse = errors.New("data directory is in use by another program")
	// ErrOtherMajor is a cluster of another major version than the binaries.
	ErrOtherMajor = errors.New("data directory was made by another major version of Postgres")
)

// Names inside the directory. The directory itself, the marker, the lock and the log are ours; data and run are the server's.
const (
	markerName = "market-cluster.json"
	markerNew  = markerName + ".new"
	lockName   = "lock"
	logName    = "postgres.log"
	dataName   = "data"
	runName    = "run"
	initPrefix = "initializing-"
)

// logBytesMax is from where a log is set aside at the next start.
const logBytesMax = 8 << 20

// A cluster is a directory that we made and hold the lock of.
type cluster struct {
	dir     string // absolute, no symbolic links
	as      *account
	lock    *os.File
	major   int    // of Postgres; 0 until it is claimed
	sockets string // folder of the server's socket; empty until the server is started
}

type marker struct {
	Cluster string `json:"cluster"`
	Major   int    `json:"postgres_major"`
}

// openCluster creates the directory or recognises it, and locks it. The caller closes the cluster.
func openCluster(dir string, as *account) (*cluster, error) {
	dir, err := prepareDir(dir)
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, as: as}
	if err := c.recognise(); err != nil {
		return nil, err
	}
	if err := c.acquire(); err != nil {
		return nil, err
	}
	// Once more under the lock: what was an empty directory may have become somebody's cluster.
	if err := c.recognise(); err != nil {
		c.close()
		return nil, err
	}
	if err := as.canReach(c.path(dataName)); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// close lets the lock go. Closing alone would not: a program that this process is just starting has the file open as well, until it runs.
func (c *cluster) close() {
	_ = syscall.Flock(int(c.lock.Fd()), syscall.LOCK_UN)
	_ = c.lock.Close()
}

// prepareDir makes the directory where there is none and returns its real path. As root others may pass through it (not list it),
// because the server's account has to; what is inside is closed to them.
func prepareDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil && os.Geteuid() == 0:
		if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // see above
			return "", fmt.Errorf("data directory: %w", err)
		}
	case err != nil && !errors.Is(err, os.ErrExist):
		return "", fmt.Errorf("data directory: %w", err)
	}
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	// In a shared place such as /tmp another user could have laid out a cluster for us to trust.
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%w: %s is not a directory of the user who runs this program", ErrForeignDirectory, dir)
	}
	return dir, nil
}

// recognise reads the marker. A directory without one must hold nothing but what we may have left before writing it.
func (c *cluster) recognise() error {
	text, err := os.ReadFile(c.path(markerName))
	if errors.Is(err, os.ErrNotExist) {
		entries, err := os.ReadDir(c.dir)
		if err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		for _, entry := range entries {
			if name := entry.Name(); name != lockName && name != markerNew && name != markerName {
				return fmt.Errorf("%w: %s holds %s and no %s", ErrForeignDirectory, c.dir, name, markerName)
			}
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	var m marker
	if err := json.Unmarshal(text, &m); err != nil || m.Cluster != "market" || m.Major <= 0 {
		return fmt.Errorf("%w: %s is not a marker of ours", ErrForeignDirectory, c.path(markerName))
	}
	c.major = m.Major
	return nil
}

func (c *cluster) acquire() error {
	lock, err := os.OpenFile(c.path(lockName), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("lock data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("%w: %s", ErrDirectoryInUse, c.dir)
		}
		return fmt.Errorf("lock data directory: %w", err)
	}
	c.lock = lock
	return nil
}

// claim writes the marker of a new directory, or checks that an old one fits the binaries.
func (c *cluster) claim(major int) error {
	if c.major == major {
		return nil
	}
	if c.major != 0 {
		return fmt.Errorf("%w: %s is of Postgres %d and the binaries are %d; install Postgres %d or move the data with pg_upgrade",
			ErrOtherMajor, c.dir, c.major, major, c.major)
	}
	text, err := json.Marshal(marker{Cluster: "market", Major: major})
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.path(markerNew), append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("mark data directory: %w", err)
	}
	if err := os.Rename(c.path(markerNew), c.path(markerName)); err != nil {
		return fmt.Errorf("mark data directory: %w", err)
	}
	c.major = major
	return nil
}

// initialize makes the database files where there are none. They are made under another name and renamed when they are whole: a program
// that dies half way leaves nothing that looks like a cluster.
func (c *cluster) initialize(ctx context.Context, bin binaries, durable bool) error {
	left, err := filepath.Glob(c.path(initPrefix + "*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	if _, err := os.Stat(c.path(dataName)); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fresh, err := os.MkdirTemp(c.dir, initPrefix)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := c.as.own(fresh); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	args := []string{"-D", fresh, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"}
	if !durable {
		args = append(args, "-N")
	}
	if out, err := bin.run(ctx, c.as, fresh, "initdb", args...); err != nil {
		_ = os.RemoveAll(fresh)
		return fmt.Errorf("initdb: %w: %s", err, lastLines(out))
	}
	if err := os.Rename(fresh, c.path(dataName)); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return syncDir(c.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// openLog opens the server's log for appending; one that has grown large is set aside first.
func (c *cluster) openLog() (*os.File, error) {
	path := c.path(logName)
	if info, err := os.Lstat(path); err == nil && info.Size() > logBytesMax {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
}
