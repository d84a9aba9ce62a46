package postgres

import (
	"strings"
	"testing"
	"time"
)

func TestBackoff_DoublesToItsCapAndNeverPassesIt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		failures int
		chance   float64
		want     time.Duration
	}{
		"the first":                       {0, 0, 100 * time.Millisecond},
		"the second":                      {1, 0, 200 * time.Millisecond},
		"one below the cap":               {5, 0, 3200 * time.Millisecond},
		"the cap":                         {6, 0, 5 * time.Second},
		"long after the cap":              {1 << 20, 0, 5 * time.Second},
		"the most that chance takes off":  {0, 1, 50 * time.Millisecond},
		"half of what chance takes off":   {6, 0.5, 3750 * time.Millisecond},
		"chance never makes it wait more": {6, 0, 5 * time.Second},
	}
	for name, c := range tests {
		if got := backoff(c.failures, c.chance); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestCheckVersion_TheOldestThatIsGood(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"139999": false, "140000": true, "180003": true, "": false, "fifteen": false} {
		if err := checkVersion(version); (err == nil) != want {
			t.Errorf("%q: %v, want good = %v", version, err, want)
		}
	}
}

func TestPoolConfig_OneZoneHoweverTheURLSpellsIt(t *testing.T) {
	t.Parallel()
	config, err := poolConfig("postgres://db/x?TimeZone=Europe/Berlin&TIMEZONE=Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range config.ConnConfig.RuntimeParams {
		if strings.EqualFold(name, "timezone") && (name != "timezone" || value != "UTC") {
			t.Errorf("%s = %s is sent too", name, value)
		}
	}
	if config.ConnConfig.RuntimeParams["timezone"] != "UTC" {
		t.Error("no zone is sent")
	}
}
