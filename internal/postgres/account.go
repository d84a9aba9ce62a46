package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// An account is the unprivileged user that runs the server when the program itself runs as root, which Postgres refuses.
type account struct {
	name     string
	uid, gid int
}

// serverAccount returns nil when the program is not root: then the server runs as the same user.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if errUID != nil || errGID != nil || uid == 0 {
			continue
		}
		return &account{name, uid, gid}, nil
	}
	return nil, errors.New("running as root, and there is no user postgres or nobody to run the database server as")
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)} //nolint:gosec // parsed from the user database
}

// own makes a path, which we have just created, the account's.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// id is the user that the server runs as.
func (a *account) id() int {
	if a == nil {
		return os.Geteuid()
	}
	return a.uid
}

// canReach says whether the account may pass through every folder above a path. A home folder of root, usually 0700, is the common trap.
func (a *account) canReach(path string) error {
	if a == nil {
		return nil
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !a.maySearch(info) {
			return fmt.Errorf("user %s, who runs the database server, may not enter %s: choose another data directory", a.name, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (a *account) maySearch(info os.FileInfo) bool {
	const other, group, owner = 0o001, 0o010, 0o100
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case ok && int(stat.Uid) == a.uid:
		return mode&owner != 0
	case ok && int(stat.Gid) == a.gid:
		return mode&group != 0
	default:
		return mode&other != 0
	}
}
