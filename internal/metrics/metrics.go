package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"market/internal/source"
)

// A Result is what became of a notice on one channel, or of the notice itself.
type Result string

const (
	Sent    Result = "sent"     // a channel took it
	Failed  Result = "failed"   // a try came to nothing; there may be another one
	GivenUp Result = "given_up" // there is no other one: nobody was told
)

// Metrics counts for one process. It has a registry of its own, so that what a library registers for itself is not shown.
type Metrics struct {
	registry     *prometheus.Registry
	reservations *prometheus.CounterVec
	notices      *prometheus.CounterVec
	fullRounds   prometheus.Counter
}

// New returns the metrics of a process. read is what is to be read from the database; nil where there is nothing.
func New(read Read) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	m.reservations = counter("market_source_reservations_total", "Reservations of a source, by what became of them.", "source", "class", "result")
	m.notices = counter("market_notices_total", "Notices to the operator, by what became of them.", "kind", "result")
	m.fullRounds = counter("market_full_rounds_total", "Rounds in which it was the turn of as many services as one process asks whether they live.").WithLabelValues()
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if read != nil {
		m.registry.MustRegister(newReader(read))
	}
	return m
}

// Handler answers a scrape. What cannot be collected is left out of it: an operator who looks at an outage needs the rest.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: scrapesMax})
}

// scrapesMax is how many scrapes are answered at once.
const scrapesMax = 4

// Reserved makes it a source.Observer.
func (m *Metrics) Reserved(name string, class source.Class, why source.Why) {
	result := granted
	if why != 0 {
		result = why.String()
	}
	m.reservations.WithLabelValues(name, class.String(), result).Inc()
}

// granted is the result of a reservation that nothing stood against; the others are named by what did.
const granted = "granted"

// FullRound counts a round that asked as many services as it may.
func (m *Metrics) FullRound() { m.fullRounds.Inc() }

// Notice counts what became of a notice.
func (m *Metrics) Notice(kind string, result Result) {
	m.notices.WithLabelValues(kind, string(result)).Inc()
}
