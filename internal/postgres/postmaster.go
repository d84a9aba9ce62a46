package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// poll is how often a starting or stopping server is looked at.
const poll = 20 * time.Millisecond

// launch starts the server process and waits until it answers.
func (c *cluster) launch(ctx context.Context, bin binaries, args []string, url string) (*Server, error) {
	log, err := c.openLog()
	if err != nil {
		return nil, fmt.Errorf("server log: %w", err)
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("server log: %w", err)
	}
	cmd := exec.Command(filepath.Join(bin.dir, "postgres"), args...) //nolint:gosec // binaries that were found and inspected
	cmd.Dir = c.path(dataName)
	cmd.Env = serverEnvironment(bin.dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = serverAttributes(c.as)

	s := &Server{url: url, bin: bin, done: make(chan struct{}), cluster: c}
	started := make(chan error, 1)
	go func() {
		// The kernel ends the server when the thread that started it ends, so this thread must be nobody else's and last as long.
		runtime.LockOSThread()
		err := cmd.Start()
		s.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		s.exit = cmd.Wait()
		close(s.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	if err := s.waitReady(ctx); err != nil {
		stopNow, cancel := context.WithCancel(ctx)
		cancel()
		_ = s.Stop(stopNow) // err says more
		said := make([]byte, 4000)
		n, _ := log.ReadAt(said, from)
		return nil, fmt.Errorf("%w: %s", err, lastLines(said[:n]))
	}
	return s, nil
}

// waitReady returns when the server accepts connections, which after a crash is only when it has recovered.
func (s *Server) waitReady(ctx context.Context) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		if conn, err := pgx.Connect(ctx, s.url); err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.done:
			return fmt.Errorf("%w (%w)", errEnded, exitOf(s.exit))
		case <-ctx.Done():
			return fmt.Errorf("postgres did not become ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// errEnded is a server that gave up before it accepted a connection.
var errEnded = errors.New("postgres ended while starting")

func exitOf(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// stopOrphan deals with what a killed program left: a server that is still stopping, one that nothing told to stop, or a pid file whose
// number some other process has by now. We hold the directory's lock, so whatever runs there is nobody's. It says whether the last
// server ended without removing its pid file.
func (c *cluster) stopOrphan(ctx context.Context) (crashed bool, err error) {
	pidFile := filepath.Join(c.path(dataName), "postmaster.pid")
	pid, err := readPID(pidFile)
	if err != nil || pid == 0 {
		return false, err
	}
	// A handle on the process, taken before it is looked at, cannot come to mean another one.
	process, err := os.FindProcess(pid)
	if err != nil {
		return true, fmt.Errorf("process %d of the pid file: %w", pid, err)
	}
	defer func() { _ = process.Release() }()
	switch err := process.Signal(syscall.Signal(0)); {
	case errors.Is(err, os.ErrProcessDone):
		return true, nil // the server itself recognises a pid file whose process is gone
	case !runsCluster(pid, c.path(dataName)):
		return true, removeIfThere(pidFile)
	}
	return true, c.waitGone(ctx, process)
}

// readPID returns the number in a server's pid file; 0 where there is no file.
func readPID(path string) (int, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("pid file of the database: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid <= 1 {
		return 0, nil // written half: Postgres itself decides what to do about it
	}
	return pid, nil
}

// waitGone stops a server that is not our child. It asks the way that lets a server finish its bookkeeping. What is dead and waits for
// its parent to notice counts as gone.
func (c *cluster) waitGone(ctx context.Context, process *os.Process) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for next := syscall.SIGINT; ; next = syscall.Signal(0) { // after the first only asks whether it is there
		err := process.Signal(next)
		if errors.Is(err, os.ErrProcessDone) || (err == nil && !runsCluster(process.Pid, c.path(dataName))) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("stop the database server that an earlier run left: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the database server that an earlier run left does not stop: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
