package upstream

import "market/internal/catalog"

// Seen returns the last verdict of this process on a service as it is listed now, however old it is: it decides nothing, and tells the owner.
func (p *Prober) Seen(s *catalog.Service) (Verdict, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.verdicts[s.ProbeID()]
	return v, ok
}
