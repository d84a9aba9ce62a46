package server

import (
	"cmp"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/delivery"
)

// A trialView is what an endpoint has to try today, for whoever asks.
type trialView struct {
	CallsPerDay    int    `json:"calls_per_day"`    // for everybody together
	CallsPerCaller int    `json:"calls_per_caller"` // for one network, and for one wallet
	LeftToday      int    `json:"left_today"`
	LeftForYou     int    `json:"left_for_you"` // for the network that asks
	ResetsAt       string `json:"resets_at"`
}

// trialsOf returns what the endpoints of a service have left to try today, for whoever asks.
func (s *Server) trialsOf(c echo.Context, v *catalog.Service) (map[uuid.UUID]delivery.Trials, error) {
	if s.path == nil {
		return nil, nil
	}
	source, _ := sourceOf(c.Request(), s.proxies)
	return s.path.Trials(c.Request().Context(), v, source)
}

// trialsOffered is how many trial calls a day an endpoint has, for everybody and for one caller.
func (s *Server) trialsOffered(v *catalog.Service, e *catalog.Endpoint) (perDay, perCaller int) {
	if s.path == nil {
		return e.TrialCallsPerDay, cmp.Or(e.TrialCallsPerCaller, e.TrialCallsPerDay)
	}
	return s.path.TrialsOffered(v, e)
}

func (v *serviceView) showTrials(trials map[uuid.UUID]delivery.Trials) {
	for i := range v.Endpoints {
		e := &v.Endpoints[i]
		if t, ok := trials[uuid.MustParse(e.ID)]; ok {
			e.Trial = &trialView{CallsPerDay: t.PerDay, CallsPerCaller: t.PerCaller, LeftToday: t.Left, LeftForYou: t.LeftForYou, ResetsAt: timeJSON(t.ResetsAt)}
		}
	}
}

// A trialLeft says on a page what is left of today's trial calls.
type trialLeft struct {
	Text     string
	ResetsAt *moment
}

func (p *servicePage) showTrials(trials map[uuid.UUID]delivery.Trials) {
	for i := range p.Endpoints {
		if t, ok := trials[p.Endpoints[i].endpoint]; ok {
			p.Endpoints[i].Left = trialLeftOf(t)
		}
	}
}

// trialLeftOf words what is left, for everybody and for who looks at the page.
func trialLeftOf(t delivery.Trials) *trialLeft {
	left := &trialLeft{ResetsAt: momentOf(t.ResetsAt)}
	switch {
	case t.Left == 0:
		left.Text = "none is left today"
	case t.LeftForYou == t.Left:
		left.Text = count(t.Left) + " left today"
	case t.LeftForYou == 0:
		left.Text = count(t.Left) + " left today, none of them for you"
	default:
		left.Text = count(t.Left) + " left today, " + count(t.LeftForYou) + " of them for you"
	}
	return left
}
