package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// readTime bounds one reading: Prometheus waits 10 s by itself, and a database that is slow is not to be kept busy.
	readTime = 2 * time.Second
	// readAge is for how long a reading is shown again, one that failed too: however many scrape, the database is asked this seldom.
	readAge = 5 * time.Second
)

// A Read reads what the gauges show.
type Read func(ctx context.Context) (Reading, error)

// A Reading is how things stood when the database was asked.
type Reading struct {
	Sources  []Source
	Deferred []Deferred
	Money    []Money
	Books    []Balance
}

// A Source is how one source stands today.
type Source struct {
	Name string
	Out  bool // it refuses us, or our credential
	Used int64
	Cap  int64         // 0: there is none
	Wait time.Duration // until it may be asked again, where it asked us to wait and that is no outage
}

// A Deferred is work of one kind that waits for something.
type Deferred struct {
	What   string
	N      int64
	Oldest time.Duration // how old the oldest is; 0 where none waits
}

// Money is how much of a network's money is not as it should be.
type Money struct {
	Network     string
	Differences int
	Unexplained int  // transfers that strangers sent
	Closed      bool // nobody new is asked to pay there for it
}

// A Balance is what one account of the books holds of an asset, in all treasuries of a network.
type Balance struct {
	Network, Asset, Account string
	Units                   float64 // base units; what is owed to somebody is below zero
}

// A reader is the collector of what the database knows.
type reader struct {
	read                                           Read
	up, exhausted, pacing, used, capped, n, oldest *prometheus.Desc
	differ, unexplained, closed, books             *prometheus.Desc

	mu   sync.Mutex // held while it reads, so that of many scrapes one asks
	at   time.Time  // of the last reading
	last *Reading   // nil: it failed
}

func newReader(read Read) *reader {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &reader{
		read:        read,
		up:          desc("market_database_read", "1 if the gauges that the database knows could be read; 0 if they are left out."),
		exhausted:   desc("market_source_exhausted", "1 while a source refuses us, or our credential.", "source"),
		pacing:      desc("market_source_pacing_seconds", "For how long a source is not asked because it asked us to wait; that is no outage.", "source"),
		used:        desc("market_source_used", "Units of a source that were used since midnight UTC.", "source"),
		capped:      desc("market_source_cap", "Units of a source that may be used today; left out where there is no cap.", "source"),
		n:           desc("market_deferred", "Work that waits for a source or a channel.", "what"),
		oldest:      desc("market_deferred_oldest_seconds", "How old the oldest work is that waits; 0 where none does.", "what"),
		differ:      desc("market_money_differences", "What the chain says of our treasuries and what we say, where that differs.", "network"),
		unexplained: desc("market_money_unexplained", "Transfers into our treasuries that no call has claimed.", "network"),
		closed:      desc("market_money_closed", "1 while nobody new is asked to pay on a network because money differs there.", "network"),
		books:       desc("market_money_books", "Base units that an account of the books holds; what is owed to somebody is below zero.", "network", "asset", "account"),
	}
}

// Describe sends every description.
func (r *reader) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{r.up, r.exhausted, r.pacing, r.used, r.capped, r.n, r.oldest, r.differ, r.unexplained, r.closed, r.books} {
		to <- d
	}
}

// Collect sends what was read.
func (r *reader) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	now := r.current()
	gauge(r.up, oneIf(now != nil))
	if now == nil {
		return
	}
	for _, s := range now.Sources {
		gauge(r.exhausted, oneIf(s.Out), s.Name)
		gauge(r.used, float64(s.Used), s.Name)
		gauge(r.pacing, max(0, s.Wait.Seconds()), s.Name)
		if s.Cap > 0 {
			gauge(r.capped, float64(s.Cap), s.Name)
		}
	}
	for _, d := range now.Deferred {
		gauge(r.n, float64(d.N), d.What)
		gauge(r.oldest, max(0, d.Oldest.Seconds()), d.What)
	}
	for _, m := range now.Money {
		gauge(r.differ, float64(m.Differences), m.Network)
		gauge(r.unexplained, float64(m.Unexplained), m.Network)
		gauge(r.closed, oneIf(m.Closed), m.Network)
	}
	for _, b := range now.Books {
		gauge(r.books, b.Units, b.Network, b.Asset, b.Account)
	}
}

func (r *reader) current() *Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.IsZero() && time.Since(r.at) < readAge {
		return r.last
	}
	// Not that of a scrape, which may go away: others get the same reading.
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	read, err := r.read(ctx)
	r.last = &read
	if err != nil {
		r.last = nil
	}
	r.at = time.Now()
	return r.last
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
