package server

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/strikes"
)

// The figures have the members that the document promises, whether much was measured, or little, or what was could not be read.
func TestFiguresView_FitsTheDocument(t *testing.T) {
	t.Parallel()
	at := time.Unix(86_400, 0)
	traffic := []delivery.Traffic{
		{Class: delivery.ClassCounting, Served: delivery.Latency{N: 2, P50: 1500 * time.Microsecond, P99: time.Second}, Since: at,
			Counts: []delivery.Count{{Outcome: call.Served, Reason: call.OK, Party: call.Service, N: 2}, {Outcome: call.Refused, Reason: call.InputEmpty, Party: call.Caller, N: 1}}},
		{Trial: true, Class: delivery.ClassProvider, Counts: []delivery.Count{{Outcome: call.Failed, Reason: call.EgressDown, Party: call.Platform, N: 4}}},
	}
	measured := []delivery.Measured{{Window: 24 * time.Hour}, {Window: 7 * 24 * time.Hour, Traffic: traffic,
		Endpoints: []delivery.MeasuredEndpoint{{ID: uuid.New(), Method: "GET", Path: "/", Traffic: traffic}, {ID: uuid.New(), Method: "GET", Path: "/old", Retired: true}}},
		{Window: 30 * 24 * time.Hour}}
	enforced := delivery.Enforced{Open: 2, Policy: strikes.Policy{Limit: 3, Window: 24 * time.Hour}}
	for name, tt := range map[string]struct {
		view figuresView
		want []string
	}{
		"much": {figuresViewOf("weather", measured, at, enforced), []string{`"7d":{"n":7,`, `"24h":{"n":0,"traffic":[],"endpoints":[]}`, `"n":3,"counts":[{"outcome":"served"`,
			`"served":{"n":2,"p50_ms":1.5,"p99_ms":1000},"failed":{"n":0,"p50_ms":null,"p99_ms":null},"newest_only":true,"counted_since":"1970-01-02`,
			`"open":2,"limit":3,"window_seconds":86400,"sources_needed":1`}},
		"unread": {figuresViewOf("weather", nil, time.Time{}, enforced), []string{`"measured":{"what":"` + whatMeasured + `"},"enforced":{`}},
	} {
		text, err := json.Marshal(tt.view)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %s does not have %s", name, text, want)
			}
		}
		if err := openDocument(t).fits("Figures", tt.view); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
