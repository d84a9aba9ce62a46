package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrNoBinaries is a machine without usable Postgres binaries, where none could be downloaded either. Its text is one line that says
// what to do.
var ErrNoBinaries = errors.New("no Postgres binaries")

// binaries is a folder with initdb and postgres of one version.
type binaries struct {
	dir   string
	major int
}

// findBinaries returns the first folder, in the order of candidateDirs, that holds a usable server: of the wanted major version if
// there is one (0 wants any). A folder given by name is taken or is an error: nobody who names one means another.
func findBinaries(ctx context.Context, as *account, given string, want int) (binaries, error) {
	if given != "" {
		return inspectBinaries(ctx, as, given)
	}
	return firstUsable(candidateDirs(ctx), want, func(dir string) (binaries, error) { return inspectBinaries(ctx, as, dir) })
}

// firstUsable takes the first folder with the wanted major version, or else the first that works at all.
func firstUsable(dirs []string, want int, inspect func(dir string) (binaries, error)) (binaries, error) {
	var first binaries
	for _, dir := range dirs {
		b, err := inspect(dir)
		if err != nil {
			continue
		}
		if want == 0 || b.major == want {
			return b, nil
		}
		if first.dir == "" {
			first = b
		}
	}
	if first.dir == "" {
		return binaries{}, ErrNoBinaries
	}
	return first, nil
}

// candidateDirs lists where Postgres may be, most telling first.
func candidateDirs(ctx context.Context) []string {
	var dirs []string
	if path, err := exec.LookPath("initdb"); err == nil {
		// Distributions put links on the PATH and the server beside the link's target only.
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
	} {
		matches, _ := filepath.Glob(pattern) // a pattern of ours cannot be malformed
		dirs = append(dirs, newestFirst(matches)...)
	}
	return dirs
}

var digits = regexp.MustCompile(`[0-9]+`)

// newestFirst sorts by the number in the path, so that 16 comes before 9.
func newestFirst(dirs []string) []string {
	number := func(dir string) int {
		n, _ := strconv.Atoi(digits.FindString(dir)) // none counts as 0
		return n
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(number(b), number(a)) })
	return dirs
}

var versionForm = regexp.MustCompile(`^postgres \(PostgreSQL\) ([0-9]+)`)

// inspectBinaries asks the server for its version, as the account that will run it: a folder that the account cannot enter is as good as
// none.
func inspectBinaries(ctx context.Context, as *account, dir string) (binaries, error) {
	b := binaries{dir: dir}
	if info, err := os.Stat(filepath.Join(dir, "initdb")); err != nil || info.Mode()&0o111 == 0 {
		return binaries{}, fmt.Errorf("%s holds no initdb", dir)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := b.run(ctx, as, "/", "postgres", "-V")
	if err != nil {
		return binaries{}, fmt.Errorf("%s holds no working postgres: %w", dir, err)
	}
	match := versionForm.FindSubmatch(out)
	if match == nil {
		return binaries{}, fmt.Errorf("%s/postgres does not tell its version", dir)
	}
	b.major, err = strconv.Atoi(string(match[1]))
	if err != nil || b.major < majorMin {
		return binaries{}, fmt.Errorf("%s holds Postgres %s; at least %d is needed", dir, match[1], majorMin)
	}
	return b, nil
}
