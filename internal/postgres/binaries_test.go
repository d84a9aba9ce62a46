package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

func TestNewestFirst_ComparesNumbers(t *testing.T) {
	t.Parallel()
	got := newestFirst([]string{"/opt/homebrew/opt/postgresql/bin", "/usr/lib/postgresql/9.6/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/15/bin"})
	want := []string{"/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/9.6/bin", "/opt/homebrew/opt/postgresql/bin"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFirstUsable_PrefersTheVersionOfTheCluster(t *testing.T) {
	t.Parallel()
	there := map[string]int{"/new": 17, "/old": 15}
	inspect := func(dir string) (binaries, error) {
		if major, ok := there[dir]; ok {
			return binaries{dir, major}, nil
		}
		return binaries{}, errors.New("none")
	}
	tests := map[string]struct {
		dirs []string
		want int
		dir  string
	}{
		"a new cluster takes the first that works":         {[]string{"/none", "/new", "/old"}, 0, "/new"},
		"an old cluster takes its own version":             {[]string{"/none", "/new", "/old"}, 15, "/old"},
		"a version that is not there leaves it to a check": {[]string{"/none", "/new", "/old"}, 14, "/new"},
		"none works": {[]string{"/none"}, 0, ""},
	}
	for name, c := range tests {
		got, err := firstUsable(c.dirs, c.want, inspect)
		if got.dir != c.dir || errors.Is(err, ErrNoBinaries) != (c.dir == "") {
			t.Errorf("%s: %q, %v; want %q", name, got.dir, err, c.dir)
		}
	}
}

func TestInspectBinaries_TakesAFolderOnlyIfItsServerTellsAGoodVersion(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		postgres string // empty: none
		major    int    // 0: refused
	}{
		"a server of a distribution":  {"#!/bin/sh\necho 'postgres (PostgreSQL) 17.2 (Debian 17.2-1)'\n", 17},
		"a version before its first":  {"#!/bin/sh\necho 'postgres (PostgreSQL) 18beta1'\n", 18},
		"the oldest that is good":     {"#!/bin/sh\necho 'postgres (PostgreSQL) 14.0'\n", 14},
		"one that is too old":         {"#!/bin/sh\necho 'postgres (PostgreSQL) 13.9'\n", 0},
		"something else of that name": {"#!/bin/sh\necho hello\n", 0},
		"one that fails":              {"#!/bin/sh\necho 'postgres (PostgreSQL) 17.2'\nexit 1\n", 0},
		"tools without the server":    {"", 0},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := reachableDir(t)
			writeProgram(t, filepath.Join(dir, "initdb"), "#!/bin/sh\n")
			if c.postgres != "" {
				writeProgram(t, filepath.Join(dir, "postgres"), c.postgres)
			}
			b, err := findBinaries(t.Context(), testAccount(t), dir, 0)
			if b.major != c.major || (err == nil) != (c.major != 0) {
				t.Errorf("major = %d, %v; want %d", b.major, err, c.major)
			}
		})
	}
}

func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	// A child that another test forks meanwhile would hold the file open for writing, and what is open for writing cannot be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // another account runs it
		t.Fatal(err)
	}
}
