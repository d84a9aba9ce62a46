package apptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Process is one run of the server in a process of its own, which a test ends as it likes.
type Process struct {
	URL   string // of its door
	Ops   string // of its operations door
	Ended chan struct{}

	cmd *exec.Cmd
	mu  sync.Mutex
	log strings.Builder
}

// Begin starts a server and returns when its door is open. Nothing of the test's own environment reaches it but what finding programs takes. The error has
// what the server said.
func Begin(cmd *exec.Cmd, env []string) (*Process, error) {
	p := &Process{cmd: cmd, Ended: make(chan struct{})}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	serving := make(chan struct{})
	go p.follow(stderr, serving)
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	select {
	case <-serving:
		return p, nil
	case <-p.Ended:
	case <-timeout.C:
		p.Kill()
	}
	return nil, fmt.Errorf("the server did not start:\n%s", p.Said())
}

// follow keeps what the process says until it is gone, and finds the addresses of its doors.
func (p *Process) follow(stderr io.Reader, serving chan<- struct{}) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		var line struct{ Message, Listening, Ops string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "serving" {
			p.URL, p.Ops = line.Listening, line.Ops
			close(serving)
		}
	}
	_ = p.cmd.Wait() // how it ended is in its state
	close(p.Ended)
}

// Said is what it has written to its log.
func (p *Process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Stop tells it to stop, as an operator does. Ended tells when it has.
func (p *Process) Stop() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends it from outside; one that is gone already stays as it ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.Ended
}

// Killed says that it ended by a signal that nobody can refuse, as by its own crash point. It has ended.
func (p *Process) Killed() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// State is how it ended. It has ended.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Races returns what the race detector found.
func (p *Process) Races() string {
	if _, after, found := strings.Cut(p.Said(), "WARNING: DATA RACE"); found {
		return after
	}
	return ""
}
