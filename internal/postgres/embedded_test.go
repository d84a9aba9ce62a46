package postgres

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// reachableDir is a temporary folder that another account may pass through, which t.TempDir is not.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pgt-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := StartEmbedded(t.Context(), Embedded{Dir: dir})
	if err != nil {
		t.Fatalf("start in %s: %v", dir, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = s.Stop(ctx) // a test that cares has stopped it and looked
	})
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(t.Context()); err != nil {
		t.Fatalf("stop: %v", err)
	}
}

func exec1(t *testing.T, s *Server, sql string) {
	t.Helper()
	conn := connect(t, s)
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func connect(t *testing.T, s *Server) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func wantKept(t *testing.T, s *Server) {
	t.Helper()
	var n int
	if err := connect(t, s).QueryRow(t.Context(), `SELECT n FROM kept`).Scan(&n); err != nil || n != 7 {
		t.Errorf("what was committed = %d, %v; want 7", n, err)
	}
}

// startChild runs runChild in a process of its own and returns when it has committed.
func startChild(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0]) //nolint:gosec // this very program
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "committed\n" {
		t.Fatalf("child said %q, %v", line, err)
	}
	return cmd
}

func TestStartEmbedded_ARestartKeepsDataAndIsPrivateAndDurable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), "made", "by", "start")
	s := start(t, dir)
	exec1(t, s, `CREATE TABLE kept AS SELECT 7 AS n`)
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "", "unix_socket_permissions": "0700",
	} {
		var got string
		if err := connect(t, s).QueryRow(t.Context(), `SELECT current_setting($1)`, setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", setting, got, err, want)
		}
	}
	for _, name := range []string{dataName, runName} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v; want it closed to others", name, info.Mode(), err)
		}
	}
	stop(t, s)
	stop(t, s) // again is no error
	select {
	case <-s.Done():
	default:
		t.Error("stopped, and not done")
	}
	wantKept(t, start(t, dir))
}

func TestStartEmbedded_SurvivesTheProgramBeingKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), "db")
	program := startChild(t, dir)
	if _, err := StartEmbedded(t.Context(), Embedded{Dir: dir}); !errors.Is(err, ErrDirectoryInUse) {
		t.Errorf("beside a running program: %v, want ErrDirectoryInUse", err)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	wantKept(t, start(t, dir)) // at once, while the first server may still be going down
}

func TestStartEmbedded_SurvivesTheServerBeingKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), "db")
	s := start(t, dir)
	exec1(t, s, `CREATE TABLE kept AS SELECT 7 AS n`)
	connect(t, s) // a backend that notices late
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if err := s.Stop(t.Context()); err == nil {
		t.Error("stop of a killed server = nil, want how it ended")
	}
	wantKept(t, start(t, dir))
}

func TestStartEmbedded_StopsAServerThatAnEarlierRunLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), "db")
	s := start(t, dir)
	exec1(t, s, `CREATE TABLE kept AS SELECT 7 AS n`)
	stop(t, s)

	// Nobody's server: started as ours was, without what ends it with its starter.
	orphan := exec.Command(filepath.Join(s.bin.dir, "postgres"), "-D", s.cluster.path(dataName), "-k", s.cluster.path(dataName),
		"-c", "listen_addresses=") //nolint:gosec // the binaries of the server above
	orphan.Dir = s.cluster.path(dataName)
	orphan.SysProcAttr = &syscall.SysProcAttr{Credential: s.cluster.as.credential()}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- orphan.Wait() }()
	other := &Server{url: socketURL(s.cluster.path(dataName)), done: make(chan struct{})}
	if err := other.waitReady(t.Context()); err != nil {
		t.Fatalf("orphan: %v", err)
	}

	wantKept(t, start(t, dir))
	if err := <-ended; err != nil {
		t.Errorf("orphan ended with %v, want an orderly end", err)
	}
}

func TestStartEmbedded_APidFileThatNamesAStrangerIsNoObstacle(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), "db")
	s := start(t, dir)
	stop(t, s)
	// A process of the account that the server runs as: Postgres alone would take it for its predecessor.
	stranger := exec.Command("cat")
	stranger.Dir = "/"
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: s.cluster.as.credential()}
	input, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(s.cluster.path(dataName), "postmaster.pid")
	text := fmt.Sprintf("%d\n%s\n1700000000\n5432\n%s\n\n", stranger.Process.Pid, s.cluster.path(dataName), s.cluster.path(runName))
	if err := os.WriteFile(pidFile, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.cluster.as.own(pidFile); err != nil {
		t.Fatal(err)
	}
	start(t, dir)
	_ = input.Close()
	if err := stranger.Wait(); err != nil {
		t.Errorf("stranger ended with %v, want it left alone", err)
	}
}

func TestStartEmbedded_TouchesNoDirectoryThatItDidNotMake(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ name, content string }{
		"a cluster of somebody's": {"PG_VERSION", "15\n"},
		"anything at all":         {"notes.txt", "mine"},
		"a marker that is not":    {markerName, `{"cluster":"other","postgres_major":15}`},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := reachableDir(t)
			if err := os.WriteFile(filepath.Join(dir, c.name), []byte(c.content), 0o640); err != nil { //nolint:gosec // as found
				t.Fatal(err)
			}
			if _, err := StartEmbedded(t.Context(), Embedded{Dir: dir}); !errors.Is(err, ErrForeignDirectory) {
				t.Fatalf("err = %v, want ErrForeignDirectory", err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("directory holds %v, %v; want what it held", entries, err)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o711 {
				t.Errorf("directory mode = %v, %v; want it unchanged", info.Mode(), err)
			}
		})
	}
}

func TestStartEmbedded_RefusesAClusterOfAnotherMajorVersion(t *testing.T) {
	t.Parallel()
	dir := reachableDir(t)
	text, err := json.Marshal(marker{Cluster: "market", Major: 99})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, markerName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = StartEmbedded(t.Context(), Embedded{Dir: dir})
	if !errors.Is(err, ErrOtherMajor) || !strings.Contains(err.Error(), "of Postgres 99") {
		t.Errorf("err = %v, want ErrOtherMajor that names 99", err)
	}
}

func TestStartEmbedded_ALongDirectoryGetsAShortSocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), strings.Repeat("long-", 20), strings.Repeat("long-", 20))
	s := start(t, dir)
	exec1(t, s, `SELECT 1`)
	sockets := s.cluster.sockets
	if strings.HasPrefix(sockets, dir) {
		t.Errorf("socket in %s, want it outside", sockets)
	}
	stop(t, s)
	if _, err := os.Stat(sockets); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket folder after stop: %v, want none", err)
	}
}

func TestStartEmbedded_AHalfMadeClusterIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), "db")
	s := start(t, dir)
	stop(t, s)
	if err := os.Rename(filepath.Join(dir, dataName), filepath.Join(dir, initPrefix+"1")); err != nil {
		t.Fatal(err)
	}
	exec1(t, start(t, dir), `SELECT 1`)
	if left, _ := filepath.Glob(filepath.Join(dir, initPrefix+"*")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestStop_WithoutPatienceLosesNothingCommitted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), "db")
	s := start(t, dir)
	exec1(t, s, `CREATE TABLE kept AS SELECT 7 AS n`)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	// nil is right too: the server may have been quicker than the look at the context.
	if err := s.Stop(ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("stop = %v, want what ended the patience", err)
	}
	wantKept(t, start(t, dir))
}
