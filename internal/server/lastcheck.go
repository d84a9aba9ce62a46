package server

import "market/internal/delivery"

// A lastCheckView is when a service was last asked whether it lives though nobody wanted it.
type lastCheckView struct {
	At          string `json:"at"`
	AnsweredAt  string `json:"answered_at,omitempty"`
	SilentSince string `json:"silent_since,omitempty"`
}

func lastCheckViewOf(c delivery.LastCheck) *lastCheckView {
	if c.At.IsZero() {
		return nil
	}
	return &lastCheckView{At: timeJSON(c.At), AnsweredAt: timeJSON(c.AnsweredAt), SilentSince: timeJSON(c.SilentSince)}
}
