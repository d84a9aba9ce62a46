package delivery

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/notify"
	"market/internal/postgres/pgtest"
)

func TestProvenance_MostlyOwn_IsOverNineTenthsOfFifty(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		own, provider, outside int
		want                   bool
	}{
		"one below fifty":                 {49, 0, 0, false},
		"fifty":                           {50, 0, 0, true},
		"nine tenths":                     {90, 0, 10, false},
		"one more":                        {91, 0, 9, true},
		"a provider's calls are not ours": {90, 10, 0, false},
		"nothing":                         {0, 0, 0, false},
	} {
		if got := (Provenance{Own: tt.own, Provider: tt.provider, Outside: tt.outside}).mostlyOwn(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestProvenance_Notices_AreRaisedAtOnceAndStayForAnHour(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	own, quiet, strange := Provenance{At: at, Own: 60}, Provenance{At: at}, Provenance{At: at, Unattributed: 10, Outside: 10}
	since := func(kind notify.Kind, age time.Duration) []notify.Notice {
		return []notify.Notice{{Kind: kind, RaisedAt: at.Add(-age)}}
	}
	for name, tt := range map[string]struct {
		traffic Provenance
		open    []notify.Notice
		kind    notify.Kind // empty: nothing changes
		over    bool
	}{
		"all is well":                      {quiet, nil, "", false},
		"our own traffic alone":            {own, nil, notify.OwnTraffic, false},
		"that was told already":            {own, since(notify.OwnTraffic, 5*time.Hour), "", false},
		"it is over before an hour is":     {quiet, since(notify.OwnTraffic, time.Hour-time.Microsecond), "", false},
		"it is over after an hour":         {quiet, since(notify.OwnTraffic, time.Hour), notify.OwnTraffic, true},
		"a stranger":                       {strange, nil, notify.UnattributedTraffic, false},
		"that was told":                    {strange, since(notify.UnattributedTraffic, 2*time.Hour), "", false},
		"no stranger for an hour":          {quiet, since(notify.UnattributedTraffic, 2*time.Hour), notify.UnattributedTraffic, true},
		"one notice says nothing of other": {own, since(notify.UnattributedTraffic, 0), notify.OwnTraffic, false},
	} {
		got := tt.traffic.notices(tt.open)
		if tt.kind == "" {
			if len(got) > 0 {
				t.Errorf("%s: %+v, want nothing", name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Kind != tt.kind || got[0].Over != tt.over || got[0].Text == "" {
			t.Errorf("%s: %+v, want %s, over %v", name, got, tt.kind, tt.over)
		}
	}
}

// A header costs nothing: one caller's few calls say nothing about a proxy, and its many say that they may be one caller's.
func TestProvenance_UnattributedIsToldFromTenAndATenthOfTheCallsFromOutside(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		unattributed, outside int
		want                  bool
	}{
		"one of one":           {1, 1, false},
		"nine of nine":         {9, 9, false},
		"ten of ten":           {10, 10, true},
		"ten of a hundred":     {10, 100, true},
		"less than a tenth":    {10, 101, false},
		"a tenth of very many": {1000, 10_000, true},
		"none":                 {0, 0, false},
	} {
		got := Provenance{At: at, Since: at.Add(-time.Hour), Unattributed: tt.unattributed, Outside: tt.outside, Peer: netip.MustParseAddr("10.0.0.7")}.notices(nil)
		if (len(got) == 1) != tt.want {
			t.Errorf("%s: %+v, want a notice %v", name, got, tt.want)
		}
		if len(got) == 1 && !strings.Contains(got[0].Text, "A single caller can send such headers") {
			t.Errorf("%s: the notice takes it for sure: %s", name, got[0].Text)
		}
	}
}

// came records so many trials from somewhere, as if they came now; asked says whether they reached the service.
func (s shelf) came(t *testing.T, n int, from call.Origin, source string, asked bool) {
	t.Helper()
	for range n {
		d := s.trial(t)
		d.Origin, d.Source = from, netip.MustParseAddr(source)
		if d = d.end(call.OK, ""); !asked {
			d.ID, d.AskedAt = uuid.Must(uuid.NewV7()), time.Time{}
			d = d.end(call.InCooldown, "")
		}
		s.record(t, d)
		pgtest.Shift(t, s.db, time.Millisecond) // the shelf's time stands still
	}
}

func TestProvenanceOf_CountsTheLastHourByOrigin(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.came(t, 5, call.Own, "192.0.2.1", true) // too old in a moment
	pgtest.Shift(t, s.db, trafficWindow)
	s.came(t, 4, call.Own, "192.0.2.1", true)
	s.came(t, 1, call.Own, "192.0.2.1", false)
	s.came(t, 2, call.Provider, "203.0.113.9", true)
	s.came(t, 3, call.External, "198.51.100.1", true)
	s.came(t, 2, call.Unattributed, "10.0.0.7", true)
	s.came(t, 3, call.Unattributed, "10.0.0.8", false)
	got, err := provenanceOf(t.Context(), s.db, 100)
	if err != nil {
		t.Fatal(err)
	}
	if span := got.At.Sub(got.Since); span != trafficWindow {
		t.Errorf("counted is a span of %s", span)
	}
	got.At, got.Since = time.Time{}, time.Time{}
	if want := (Provenance{Own: 4, Provider: 2, Outside: 5, Unattributed: 2, Peer: netip.MustParseAddr("10.0.0.7")}); got != want {
		t.Errorf("traffic %+v, want %+v", got, want)
	}

	// Of more than is read the newest are, and the others over the same time.
	s.came(t, 3, call.Own, "192.0.2.1", true)
	s.came(t, 1, call.External, "198.51.100.1", true)
	if got, err = provenanceOf(t.Context(), s.db, 3); err != nil {
		t.Fatal(err)
	}
	if span := got.At.Sub(got.Since); got.Own != 3 || got.Outside != 1 || got.Unattributed != 0 || span >= trafficWindow {
		t.Errorf("of more than is read: %+v over %s", got, span)
	}
}

func TestWatchTraffic_OneOfManyTellsTheOperator(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.came(t, 10*unattributedMin, call.Own, "192.0.2.1", true)
	s.came(t, unattributedMin, call.Unattributed, "10.0.0.7", true)
	watch := func(when string, want ...TrafficNotice) {
		t.Helper()
		told, err := WatchTraffic(t.Context(), s.db)
		if err != nil {
			t.Fatal(err)
		}
		for i := range told {
			told[i].Text, told[i].trouble = "", notify.Outage{}
		}
		if !slices.Equal(told, want) {
			t.Errorf("%s: told %+v, want %+v", when, told, want)
		}
	}
	watch("at first", TrafficNotice{Kind: notify.OwnTraffic}, TrafficNotice{Kind: notify.UnattributedTraffic})
	watch("again")
	pgtest.Shift(t, s.db, trafficWindow)
	watch("after a quiet hour", TrafficNotice{Kind: notify.OwnTraffic, Over: true}, TrafficNotice{Kind: notify.UnattributedTraffic, Over: true})
	watch("after that")
}
