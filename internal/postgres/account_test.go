package postgres

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAccount_CanReachOnlyWhatEveryFolderAboveLetsItEnter(t *testing.T) {
	t.Parallel()
	stranger := &account{"stranger", 54_321, 54_321}
	base := reachableDir(t)
	home := filepath.Join(base, "home")
	data := filepath.Join(home, "market", "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o700: false, 0o710: false, 0o711: true, 0o701: true, 0o744: false} {
		if err := os.Chmod(home, mode); err != nil {
			t.Fatal(err)
		}
		err := stranger.canReach(data)
		if (err == nil) != want {
			t.Errorf("home folder %v: %v, want reachable = %v", mode, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), home) {
			t.Errorf("%q does not name the folder that is closed", err)
		}
	}
	if err := (*account)(nil).canReach(data); err != nil {
		t.Errorf("without another account: %v", err)
	}
}

func TestDefaultDataDir_IsAPlaceThatTheServerMayEnter(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		uid            int
		dataHome, home string
		want           string
	}{
		"root's own home is closed":      {0, "/root/data", "/root", "/var/lib/market"},
		"a data folder that was chosen":  {7, "/data", "/home/me", "/data/market"},
		"the usual data folder":          {7, "", "/home/me", "/home/me/.local/share/market"},
		"no home":                        {7, "", "", "/tmp/market-7"},
		"a relative home is not trusted": {7, "data", ".", "/tmp/market-7"},
	}
	for name, c := range tests {
		if got := defaultDataDir(c.uid, c.dataHome, c.home, "/tmp"); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
