package catalog

import (
	"github.com/google/uuid"
)

// ProbeID names what a liveness verdict is about: a service at one base URL with one probe. After an edit of either it is another one, so what was
// found at the old address says nothing about the new one, which gets no work before it was seen to live.
func (s *Service) ProbeID() uuid.UUID {
	return uuid.NewSHA1(s.ID, []byte(s.BaseURL+"\n"+s.Probe.Method+"\n"+s.Probe.Path+"\n"+s.Probe.Statuses.String()+"\n"+string(s.Probe.Body)))
}
