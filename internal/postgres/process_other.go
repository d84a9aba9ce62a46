//go:build unix && !linux

package postgres

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// serverAttributes: a group of its own, so that Ctrl-C on a terminal reaches us and not the server, which we stop ourselves after the
// last statement. No kernel but Linux's ends it when we are killed: the next start stops the orphan.
func serverAttributes(as *account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: as.credential()}
}

// runsCluster says whether a process is the server of a data directory, by its command line.
func runsCluster(pid int, dataDir string) bool {
	line, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(line), " -D "+dataDir+" ")
}
