package catalog

import (
	"encoding/json"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"market/internal/capacity"
)

// A Service is one provider's offer: a base URL, how to see that it lives, and its endpoints. Values in a Snapshot are shared and must
// not be changed.
type Service struct {
	ID          uuid.UUID
	OwnerID     uuid.UUID // the account that sells it; zero: the operator itself
	Slug        string
	Name        string
	Description string
	Tags        []string
	BaseURL     string // scheme, host and path prefix; no trailing slash
	Probe       Probe
	Capacity    capacity.Limit // what the provider says it can take
	State       State
	StateCause  Cause
	StateBy     Author
	StateReason string // for the owner and for admins; see PublicReason
	StateSince  time.Time
	CreatedAt   time.Time
	// Revision counts the edits of the service and its endpoints, from 1.
	Revision int64
	// BaseURLSince is when its requests began to go where they go now.
	BaseURLSince time.Time
	Headers      []ServiceHeader
	Secret       ServiceSecret
	Notices      Notices // where its provider is told what becomes of it
	Endpoints    []*Endpoint

	// Broken says what is wrong with the stored row; empty for a good one. A broken service is shown and can't be called.
	Broken string

	base   *url.URL // BaseURL, parsed by prepare
	closed bool     // what was entrusted to us for it could not be opened
}

// Problems are everything that is wrong with the stored rows of a service; none for a good one.
func (s *Service) Problems() []string {
	var problems []string
	if s.Broken != "" {
		problems = append(problems, s.Broken)
	}
	for _, e := range s.Endpoints {
		if e.Broken != "" {
			problems = append(problems, e.Method+" "+e.Path+": "+e.Broken)
		}
	}
	return problems
}

// A Probe is how a service shows that it lives: a request without side effects and the statuses that mean yes. It is sent every few seconds
// while the service is wanted, and nobody pays for it.
type Probe struct {
	Method   string
	Path     string // escaped, absolute, below the service's base URL
	Statuses Statuses
	Body     json.RawMessage // sent as application/json; nil: none
}

// An Endpoint is one method and path that is sold at one price.
type Endpoint struct {
	ID               uuid.UUID
	ServiceID        uuid.UUID
	Method           string
	Path             string // a template: see Template
	Description      string
	MIMEType         string
	InputSchema      json.RawMessage // of the JSON body; for GET, HEAD and DELETE of the query and path parameters. nil: none
	InputExample     json.RawMessage
	OutputSchema     json.RawMessage
	OutputExample    json.RawMessage
	ServedStatuses   []int         // beside 2xx; of 404, 409, 410
	Timeout          time.Duration // from the request to the end of the answer
	IdleTimeout      time.Duration // of a stream: between two of its pieces
	MaxResponseBytes int
	TrialCallsPerDay int
	// TrialCallsPerCaller is what one caller gets of them, by its network and by its wallet; 0: as many as there are.
	TrialCallsPerCaller int
	Stream              bool // the answer goes to the caller while it comes, and is not kept
	Retired             bool
	Prices              []Price // the current one first, then older ones that are still acceptable

	// Broken says what is wrong with the stored row; empty for a good one. A broken endpoint is shown and can't be called.
	Broken string

	template Template
	input    *schema
	output   *schema
}

// A Price is one revision of what an endpoint costs.
type Price struct {
	Revision int64
	USD      decimal.Decimal
	Until    time.Time // in market time, the first moment at which it is no longer accepted; zero for the current price
}

// Price returns the current price; false where the endpoint has none, which only a broken row can be.
func (e *Endpoint) Price() (Price, bool) {
	if len(e.Prices) == 0 || !e.Prices[0].Until.IsZero() {
		return Price{}, false
	}
	return e.Prices[0], true
}

// Acceptable returns the prices that a payment may match at a moment of market time, the current one first.
func (e *Endpoint) Acceptable(marketNow time.Time) []Price {
	var prices []Price
	for _, p := range e.Prices {
		if p.Until.IsZero() || marketNow.Before(p.Until) {
			prices = append(prices, p)
		}
	}
	return prices
}

// Serves says whether an answer with this status is what the listing promises.
func (e *Endpoint) Serves(status int) bool {
	if status >= 200 && status <= 299 {
		return true
	}
	for _, s := range e.ServedStatuses {
		if s == status {
			return true
		}
	}
	return false
}

// TakesBody says whether the input of an endpoint with this method is its body; otherwise it is the query and path parameters.
func TakesBody(method string) bool {
	switch method {
	case "POST", "PUT", "PATCH":
		return true
	}
	return false
}
