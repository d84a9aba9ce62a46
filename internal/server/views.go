package server

import (
	"time"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/payment"
)

// A callView is what anyone who has a call's id may see of it.
type callView struct {
	ID       call.ID         `json:"id"`
	URL      string          `json:"url"`
	State    string          `json:"state"` // of the walk while it is open, the outcome once it is final
	Trial    bool            `json:"trial"`
	Outcome  call.Outcome    `json:"outcome,omitempty"`
	Party    call.Party      `json:"party,omitempty"`
	Reason   call.Reason     `json:"reason,omitempty"`
	Detail   string          `json:"detail,omitempty"`
	Charged  any             `json:"charged"`
	Asked    bool            `json:"asked"`
	Service  string          `json:"service"`
	Method   string          `json:"method"`
	Path     string          `json:"path"`
	Status   int             `json:"service_status,omitempty"`
	Payment  *paidJSON       `json:"payment,omitempty"`
	Refund   *refundJSON     `json:"refund,omitempty"`
	Receipt  *payment.Signed `json:"receipt,omitempty"`
	Created  string          `json:"created_at,omitempty"`
	AskedAt  string          `json:"asked_at,omitempty"`
	Recorded string          `json:"recorded_at,omitempty"`
}

func (s *Server) callView(r delivery.Record) callView {
	v := callView{
		ID: r.Call, URL: s.link(r.Call).URL, State: string(r.State), Trial: r.Trial, Outcome: r.Outcome, Party: r.Party, Reason: r.Reason,
		Detail: r.Detail, Charged: chargedJSON(r.Charged()), Asked: r.Asked, Service: r.Service, Method: r.Method, Path: r.Path, Status: r.Status,
		Payment: s.paid(r.Paid()), Refund: s.refund(r.Returning()),
		Created: timeJSON(r.Created), AskedAt: timeJSON(r.AskedAt), Recorded: timeJSON(r.Recorded),
	}
	if v.State == "" {
		v.State = string(r.Outcome)
	}
	return v
}

// timeJSON is RFC 3339 in UTC with microseconds; empty for no time.
func timeJSON(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}
