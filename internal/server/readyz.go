package server

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"market/internal/readiness"
)

// A readyView is how a network stands.
type readyView struct {
	State       string         `json:"state"`
	Why         string         `json:"why,omitempty"`    // of not_ready, in one word
	Detail      string         `json:"detail,omitempty"` // what was found, for people
	Settle      capabilityView `json:"settle"`
	Refund      capabilityView `json:"refund"`
	AllowanceMS int64          `json:"allowance_ms"`
}

// A capabilityView is how one of its capabilities stands.
type capabilityView struct {
	State  string `json:"state"`
	AgeMS  *int64 `json:"age_ms"` // of the newest proof; null: there is none
	Why    string `json:"why,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// readyz says whether paid work can be done now, network by network, from what is known: it asks nobody, and waits for nobody. An outage of our own is told
// and decides nothing: callers are refunded. A process that stops is not ready, however well it could settle: nobody is to send it callers any more.
func (s *Server) readyz(c echo.Context) error {
	status, networks := http.StatusServiceUnavailable, map[string]readyView{}
	for _, standing := range s.ready.Standings() {
		networks[standing.Network] = readyViewOf(standing)
		if standing.State.Admits() {
			status = http.StatusOK
		}
	}
	body := map[string]any{"networks": networks, "exposure": s.ready.Line()}
	if s.guard != nil { // a facilitator by itself asks no services, and has none
		body["outages"] = outageViews(s.guard.Open())
	}
	if s.stopping() {
		status, body["why"] = http.StatusServiceUnavailable, "the process is stopping"
	}
	body["ready"] = status == http.StatusOK
	return s.writeJSON(c, status, typeJSON, body)
}

func readyViewOf(s readiness.Standing) readyView {
	return readyView{State: s.State.String(), Why: oneWord(s.State, s.Cause), Detail: detail(s.Why), Settle: capabilityViewOf(s.Settle), Refund: capabilityViewOf(s.Refund), AllowanceMS: s.Allowance.Milliseconds()}
}

func capabilityViewOf(p readiness.Proof) capabilityView {
	v := capabilityView{State: p.State.String(), Why: oneWord(p.State, p.Cause), Detail: detail(p.Why)}
	if p.Age >= 0 {
		ms := p.Age.Milliseconds()
		v.AgeMS = &ms
	}
	return v
}

func oneWord(s readiness.State, c readiness.Cause) string {
	if s.Admits() {
		return ""
	}
	return c.String()
}

func detail(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
