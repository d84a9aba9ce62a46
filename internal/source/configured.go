package source

import "market/internal/config"

// Configured is a source as the configuration says it.
func Configured(name string, kind Kind, c config.Source) Source {
	s := Source{
		Name: name, Kind: kind, Metered: c.Metered, RunsOut: Rate, RetryWindow: c.RetryWindow, UnitUSD: c.UnitUSD, BudgetURL: c.BudgetURL,
		Guard: Guard{Floor: c.Guard.Floor, SurgePercent: c.Guard.SurgePercent},
	}
	for r := Rate; r < runsOutEnd; r++ {
		if r.String() == c.RunsOut {
			s.RunsOut = r
		}
	}
	for _, shape := range c.Refusals {
		s.Shapes = append(s.Shapes, Shape(shape))
	}
	return s
}
