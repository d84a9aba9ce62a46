package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"market/internal/source"
)

// scrape asks as Prometheus does and returns the values by "name{label="value",…}".
func scrape(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.Code != http.StatusOK {
		t.Fatalf("scrape: %d, %v", answer.Code, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("the exposition does not parse: %v\n%s", err, text)
	}
	values := map[string]float64{}
	for name, family := range families {
		for _, each := range family.GetMetric() {
			var labels []string
			for _, l := range each.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			values[name+"{"+strings.Join(labels, ",")+"}"] = each.GetCounter().GetValue() + each.GetGauge().GetValue()
		}
	}
	return values
}

func expectValues(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if v, there := got[name]; !there || v != value {
			t.Errorf("%s = %v (there: %v), want %v", name, v, there, value)
		}
	}
}

func TestMetrics_CountWhatBecameOfReservationsAndNotices(t *testing.T) {
	t.Parallel()
	m := New(nil)
	m.Reserved("facilitator/hosted", source.Settlement, 0)
	m.Reserved("facilitator/hosted", source.Settlement, 0)
	m.Reserved("facilitator/hosted", source.Refund, source.Exhausted)
	m.Notice("source_out", Failed)
	m.Notice("source_out", Sent)
	got := scrape(t, m)
	expectValues(t, got, map[string]float64{
		"market_source_reservations_total{class=settlement,result=granted,source=facilitator/hosted}": 2,
		"market_source_reservations_total{class=refund,result=exhausted,source=facilitator/hosted}":   1,
		"market_notices_total{kind=source_out,result=sent}":                                           1,
		"market_notices_total{kind=source_out,result=failed}":                                         1,
	})
	for name := range got {
		if strings.HasPrefix(name, "go_goroutines") {
			return
		}
	}
	t.Error("nothing tells of the process itself")
}

// The reasons are those that a reservation can meet, in words that no two share.
func TestMetrics_EachReasonAndClassHasAWordOfItsOwn(t *testing.T) {
	t.Parallel()
	m := New(nil)
	n := 0
	for _, class := range source.Classes() {
		for _, why := range []source.Why{0, source.Guarded, source.Exhausted, source.Paced, source.Denied} {
			m.Reserved("mail", class, why)
			n++
		}
	}
	seen := 0
	for name, value := range scrape(t, m) {
		if strings.HasPrefix(name, "market_source_reservations_total") {
			seen++
			if value != 1 || strings.Contains(name, "invalid") {
				t.Errorf("%s = %v", name, value)
			}
		}
	}
	if seen != n {
		t.Errorf("%d series of %d reservations that differ", seen, n)
	}
}

func TestMetrics_GaugesAreWhatTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	m := New(func(context.Context) (Reading, error) {
		return Reading{Sources: []Source{{Name: "facilitator/hosted", Out: true, Used: 42, Cap: 15_000}, {Name: "rpc/eip155:1/node.example", Wait: 5 * time.Second}},
			Deferred: []Deferred{{What: "refunds", N: 3, Oldest: time.Hour}}, Money: []Money{{Network: "eip155:1", Differences: 2, Unexplained: 5, Closed: true}},
			Books: []Balance{{Network: "eip155:1", Asset: "0xA0", Account: "fees", Units: -7}}}, nil
	})
	got := scrape(t, m)
	expectValues(t, got, map[string]float64{
		"market_database_read{}":                                         1,
		"market_source_exhausted{source=facilitator/hosted}":             1,
		"market_source_used{source=facilitator/hosted}":                  42,
		"market_source_cap{source=facilitator/hosted}":                   15_000,
		"market_source_exhausted{source=rpc/eip155:1/node.example}":      0,
		"market_source_pacing_seconds{source=rpc/eip155:1/node.example}": 5,
		"market_money_differences{network=eip155:1}":                     2,
		"market_money_unexplained{network=eip155:1}":                     5,
		"market_money_closed{network=eip155:1}":                          1,
		"market_money_books{account=fees,asset=0xA0,network=eip155:1}":   -7,
		"market_deferred{what=refunds}":                                  3,
		"market_deferred_oldest_seconds{what=refunds}":                   3600,
		"market_source_used{source=rpc/eip155:1/node.example}":           0,
	})
	if v, there := got["market_source_cap{source=rpc/eip155:1/node.example}"]; there {
		t.Errorf("a source without a cap has one of %v", v)
	}
}

// Nobody needs the counters more than whoever looks at an outage of the database.
func TestMetrics_WithoutADatabaseTheRestIsShown(t *testing.T) {
	t.Parallel()
	m := New(func(context.Context) (Reading, error) {
		return Reading{Sources: []Source{{Name: "mail"}}}, errors.New("postgres://user:secret@db is away")
	})
	m.Reserved("mail", source.Other, source.Guarded)
	got := scrape(t, m)
	expectValues(t, got, map[string]float64{"market_database_read{}": 0, "market_source_reservations_total{class=other,result=guarded,source=mail}": 1})
	for name := range got {
		if strings.HasPrefix(name, "market_source_used") || strings.Contains(name, "secret") {
			t.Errorf("%s is shown, and was not read", name)
		}
	}
}

func TestMetrics_HoweverManyScrapeTheDatabaseIsAskedOnceInFiveSeconds(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"it answers": nil, "it is away": errors.New("away")} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int32
			r := newReader(func(ctx context.Context) (Reading, error) {
				if deadline, bounded := ctx.Deadline(); !bounded || time.Until(deadline) > readTime {
					t.Errorf("%s: the reading is not bounded", name)
				}
				asked.Add(1)
				return Reading{}, failure
			})
			many := func(when string, want int32) {
				t.Helper()
				var wg sync.WaitGroup
				for range 8 {
					wg.Go(func() { r.current() })
				}
				wg.Wait()
				if got := asked.Load(); got != want {
					t.Errorf("%s, %s: the database was asked %d times, want %d", name, when, got, want)
				}
			}
			many("at first", 1)
			<-time.After(readAge - time.Nanosecond)
			many("just before the age", 1)
			<-time.After(time.Nanosecond)
			many("at the age", 2)
		})
	}
}
