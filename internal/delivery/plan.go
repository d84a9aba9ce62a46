package delivery

import (
	"github.com/google/uuid"

	"market/internal/catalog"
	"market/internal/plan"
)

// limitsOf is what holds for a service: the plan that its owner has now, or the operator's terms where it has none. It reads memory alone.
func (p *Path) limitsOf(s *catalog.Service) plan.Limits {
	if s.OwnerID == (uuid.UUID{}) || p.PlanOf == nil {
		return p.Plans.Of(false, "")
	}
	return p.Plans.Of(true, p.PlanOf(s.OwnerID))
}

// rankOf is how new calls of a service stand among those of others when little is left of a source.
func (p *Path) rankOf(s *catalog.Service) int {
	rank, _ := p.Plans.Table.Rank(p.limitsOf(s).Priority)
	return rank
}

// NotOpen says why no call of a service is settled on a network now, by the network's id; nothing of one on which they are. It is for pages, and decides
// nothing: what dearer calls meet is not in it.
func (p *Path) NotOpen(s *catalog.Service) map[string]error {
	not := map[string]error{}
	for _, rail := range p.Rails {
		if err := p.open(rail, s, 0); err != nil {
			not[rail.Network.ID] = err
		}
	}
	return not
}

// open says why calls of a service at a price are not settled on a network now: nobody's are, or those of its plan are not any more because others come first. What is
// asked here is memory: whoever is not let in is not asked to pay either.
func (p *Path) open(rail Rail, s *catalog.Service, microUSD int64) error {
	if err := p.Ready.Look(rail.Network.ID, microUSD); err != nil {
		return err
	}
	if rail.Units == nil {
		return nil
	}
	return rail.Units.LimitedFor(p.rankOf(s))
}
