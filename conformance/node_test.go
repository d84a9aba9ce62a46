package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// jobTime is until a job that was given to a script counts as forgotten. The scripts give up earlier by themselves.
const jobTime = 90 * time.Second

// A node is a running script, which answers jobs: see jobs.mjs.
type node struct {
	script string
	stderr bytes.Buffer // what the packages print; read when the process has ended

	mu      sync.Mutex
	stdin   io.WriteCloser
	last    int
	waiting map[int]chan []byte
	ended   error // why no job is answered any more
}

// start runs a script until the test ends. A machine without Node, or without what npm ci installs, fails the test: it proves nothing there.
func start(t *testing.T, script string) *node {
	t.Helper()
	if _, err := os.Stat(filepath.Join(filepath.Dir(script), "node_modules")); err != nil {
		t.Fatalf("the official packages are not installed: run scripts/setup test (%v)", err)
	}
	n := &node{script: script, waiting: map[int]chan []byte{}}
	process := exec.CommandContext(t.Context(), "node", script)
	process.Stderr = &n.stderr
	stdout, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if n.stdin, err = process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatalf("node %s: %v", script, err)
	}
	read := make(chan struct{})
	go func() { defer close(read); n.read(stdout) }()
	t.Cleanup(func() {
		_ = n.stdin.Close()
		<-read
		_ = process.Wait() // it was told to end, or killed with the test
		if t.Failed() && n.stderr.Len() > 0 {
			t.Logf("node %s said:\n%s", script, n.stderr.Bytes())
		}
	})
	return n
}

// read hands each answer to who waits for it.
func (n *node) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer struct{ ID int }
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil {
			break
		}
		n.mu.Lock()
		if c := n.waiting[answer.ID]; c != nil {
			c <- bytes.Clone(lines.Bytes())
			delete(n.waiting, answer.ID)
		}
		n.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, stdout)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = errors.New("the process has ended, or printed what is no answer")
	for id, c := range n.waiting {
		close(c)
		delete(n.waiting, id)
	}
}

// job is a step of a script with its arguments.
type job map[string]any

// do gives a job to the script and reads its answer. Several may run at once.
func (n *node) do(t *testing.T, step string, j job, answer any) {
	t.Helper()
	raw := n.await(t, n.give(t, step, j))
	var failed struct {
		Error string
		Sent  json.RawMessage
	}
	if err := json.Unmarshal(raw, &failed); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if failed.Error != "" && failed.Sent == nil { // a client that threw is an answer, and has sent something
		t.Fatalf("node %s: %s: %s", n.script, step, failed.Error)
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
}

func (n *node) give(t *testing.T, step string, j job) <-chan []byte {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ended != nil {
		t.Fatalf("node %s: %v", n.script, n.ended)
	}
	n.last++
	line := job{"id": n.last, "step": step}
	for name, value := range j {
		line[name] = value
	}
	raw, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	c := make(chan []byte, 1)
	n.waiting[n.last] = c
	if _, err := n.stdin.Write(append(raw, '\n')); err != nil {
		t.Fatalf("node %s: %v", n.script, err)
	}
	return c
}

func (n *node) await(t *testing.T, answer <-chan []byte) []byte {
	t.Helper()
	late := time.NewTimer(jobTime)
	defer late.Stop()
	select {
	case raw, ok := <-answer:
		if !ok {
			t.Fatalf("node %s ended before it answered", n.script)
		}
		return raw
	case <-late.C:
		t.Fatalf("node %s did not answer within %s", n.script, jobTime)
	}
	return nil
}
