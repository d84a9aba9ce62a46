package postgres

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// serverAttributes: a group of its own, so that Ctrl-C on a terminal reaches us and not the server, which we stop ourselves after the
// last statement; and a signal from the kernel when the thread that started it goes, so that a killed program leaves no server behind.
// SIGQUIT makes the server stop at once and recover from its log at the next start.
func serverAttributes(as *account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as.credential(), Pdeathsig: syscall.SIGQUIT}
}

// runsCluster says whether a process is the server of a data directory. The working directory is the better witness, since it follows a
// renamed folder, but root in a container may not read it for another user's process; the command line anybody may.
func runsCluster(pid int, dataDir string) bool {
	data, errData := os.Stat(dataDir)
	if cwd, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid)); err == nil && errData == nil {
		return os.SameFile(cwd, data)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && bytes.Contains(line, []byte("\x00-D\x00"+dataDir+"\x00"))
}
