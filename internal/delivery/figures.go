package delivery

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/strikes"
)

// Measured is what was counted of a service within one window: every delivery that is kept, whoever made the call and whoever was at fault. It
// enforces nothing, and nothing enforced is taken from it: see Enforced.
type Measured struct {
	Window time.Duration
	// Traffic is that of all endpoints together, in the order of paid before trials and of Classes; kinds without a delivery are left out.
	Traffic   []Traffic
	Endpoints []MeasuredEndpoint
}

// MeasuredEndpoint is that of one endpoint that had deliveries, or is for sale.
type MeasuredEndpoint struct {
	ID           uuid.UUID
	Method, Path string
	Retired      bool
	Traffic      []Traffic
}

// A Class is whose traffic deliveries are, as far as what is measured tells it apart.
type Class string

const (
	ClassCounting Class = "counting" // from outside: what it does is evidence
	ClassOwn      Class = "own"      // the market's own
	ClassProvider Class = "provider" // of the service's own provider
)

// Classes returns every class.
func Classes() []Class { return []Class{ClassCounting, ClassOwn, ClassProvider} }

// ClassOf returns the class of an origin.
func ClassOf(o call.Origin) Class {
	switch {
	case o.Counts():
		return ClassCounting
	case o == call.Provider:
		return ClassProvider
	}
	return ClassOwn
}

// Traffic is the deliveries of one kind of calls.
type Traffic struct {
	Trial  bool
	Class  Class
	Counts []Count // the most first
	// Served and Failed are how long the service took for what it served, and for what failed by its own doing.
	Served, Failed Latency
	// Since is from when on all deliveries of this kind are counted; of older ones some are left out, because there are very many. Zero: none is.
	Since time.Time
}

// N is how many deliveries are counted.
func (t Traffic) N() int {
	n := 0
	for _, c := range t.Counts {
		n += c.N
	}
	return n
}

// A Count is how many deliveries ended in the same way.
type Count struct {
	Outcome call.Outcome
	Reason  call.Reason
	Party   call.Party
	N       int
}

// A Latency is how long a service took for N answers.
type Latency struct {
	N        int
	P50, P99 time.Duration
}

// Enforced is what counts against a service: open strikes inside their window, of which so many delist it. It is counted from strikes and
// never from what is measured.
type Enforced struct {
	Open   int
	Policy strikes.Policy
}

// Enforced reads what counts against a service now.
func (r *Recorder) Enforced(ctx context.Context, db postgres.DB, service uuid.UUID) (Enforced, error) {
	open, err := r.strikes.CountOpen(ctx, db, service)
	if err != nil {
		return Enforced{}, fmt.Errorf("read what counts against a service: %w", err)
	}
	return Enforced{Open: open, Policy: r.strikes.Policy()}, nil
}
