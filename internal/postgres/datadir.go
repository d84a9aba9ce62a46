package postgres

import (
	"fmt"
	"os"
	"path/filepath"
)

// DefaultDataDir is where a program keeps its data when nobody says where: the user's data folder, the system's for root, whose own home
// is closed to the account that runs the server. Without a home it is a folder in the temporary one, kept for the user by its name.
func DefaultDataDir() string {
	return defaultDataDir(os.Geteuid(), os.Getenv("XDG_DATA_HOME"), os.Getenv("HOME"), os.TempDir())
}

func defaultDataDir(uid int, dataHome, home, temp string) string {
	switch {
	case uid == 0:
		return "/var/lib/market"
	case filepath.IsAbs(dataHome):
		return filepath.Join(dataHome, "market")
	case filepath.IsAbs(home):
		return filepath.Join(home, ".local", "share", "market")
	}
	return filepath.Join(temp, fmt.Sprintf("market-%d", uid))
}
