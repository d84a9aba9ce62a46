package upstream

import (
	"context"
	"testing"
	"time"

	"market/internal/catalog"
)

// B150: what was found at one address says nothing about another one.
func TestProber_AVerdictIsAboutOneBaseURLAndOneProbe(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var asked []string
	p := newProber(func(_ context.Context, s *catalog.Service) cause {
		asked = append(asked, s.BaseURL+s.Probe.Path)
		return alive
	}, ttl, func() time.Time { return now })
	s := serviceAt(t, "http://127.0.0.1", nil)
	if v, err := p.Live(t.Context(), s); err != nil || !v.Live {
		t.Fatal(v, err)
	}
	for what, edit := range map[string]func(*catalog.Service){
		"another base URL":     func(s *catalog.Service) { s.BaseURL = "http://127.0.0.2" },
		"another probe path":   func(s *catalog.Service) { s.Probe.Path = "/up" },
		"another probe method": func(s *catalog.Service) { s.Probe.Method = "HEAD" },
		"other statuses":       func(s *catalog.Service) { s.Probe.Statuses, _ = catalog.ParseStatuses("418") },
	} {
		edited := *s
		edit(&edited)
		if _, known := p.Last(&edited); known {
			t.Errorf("%s: the old verdict counts", what)
		}
		if _, seen := p.Seen(&edited); seen {
			t.Errorf("%s: the old verdict is shown", what)
		}
	}
	renamed := *s
	renamed.Name = "Another name"
	now = now.Add(time.Hour)
	if _, known := p.Last(&renamed); known {
		t.Error("a verdict holds for an hour")
	}
	if v, seen := p.Seen(&renamed); !seen || !v.At.Equal(now.Add(-time.Hour)) || len(asked) != 1 {
		t.Errorf("the owner sees %+v, %v after the probes %q; want the last one, of an hour ago", v, seen, asked)
	}
}
