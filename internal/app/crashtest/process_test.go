package crashtest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A process is one run of the server.
type process struct {
	URL   string
	cmd   *exec.Cmd
	ended chan struct{} // closed when it is gone

	mu  sync.Mutex
	log strings.Builder
}

// launch starts a server and returns when its door is open. Nothing of the test's own environment reaches it but what finding programs
// takes.
func launch(t testing.TB, env []string) *process {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(file, "serve"), ended: make(chan struct{})} //nolint:gosec // the program that was just built
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan string, 1)
	go p.follow(stderr, serving)
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case p.URL = <-serving:
		return p
	case <-p.ended:
	case <-timeout.C:
		p.kill()
	}
	t.Fatalf("the server did not start:\n%s", p.said())
	return nil
}

// follow keeps what the process says until it is gone, and finds the address of its door.
func (p *process) follow(stderr io.Reader, serving chan<- string) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		var line struct{ Message, Listening string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Message == "serving" {
			serving <- line.Listening
		}
	}
	_ = p.cmd.Wait() // how it ended is in its state
	close(p.ended)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// kill ends it from outside; one that is gone already stays as it ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// killed says that it ended by the signal that its own crash point sends.
func (p *process) killed() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// races returns what the race detector found.
func (p *process) races() string {
	if _, after, found := strings.Cut(p.said(), "WARNING: DATA RACE"); found {
		return after
	}
	return ""
}
