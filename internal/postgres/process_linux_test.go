package postgres

import (
	"path/filepath"
	"testing"
	"time"
)

// How: the program is killed, nothing is started after it, and the process that its pid file named is watched.
func TestStartEmbedded_TheServerEndsWithAKilledProgram(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(reachableDir(t), "db")
	program := startChild(t, dir)
	data := filepath.Join(dir, dataName)
	pid, err := readPID(filepath.Join(data, "postmaster.pid"))
	if err != nil || !runsCluster(pid, data) {
		t.Fatalf("pid %d, %v: not the server", pid, err)
	}
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for runsCluster(pid, data) {
		select {
		case <-deadline.C:
			t.Fatal("the server outlives its program")
		case <-tick.C:
		}
	}
}
