package catalog

import (
	"encoding/json"

	"market/internal/capacity"
)

// capacity reads what a provider declares that its service can take. An absent member, and an object without members, is no limit.
func (f *form) capacity(name string) capacity.Limit {
	v, ok := f.member(name)
	if !ok {
		return capacity.Limit{}
	}
	g, ok := newForm(f.pointer(name), v, f.problems)
	if !ok {
		return capacity.Limit{}
	}
	l := capacity.Limit{Rate: g.rate("requests_per_second"), Places: g.whole("concurrency", 0, 1, capacity.PlacesMax)}
	g.end()
	return l
}

// rate reads calls a second.
func (f *form) rate(name string) capacity.Rate {
	v, ok := f.member(name)
	if !ok {
		return 0
	}
	n, _ := v.(json.Number) // anything else is no rate
	r, err := capacity.ParseRate(string(n))
	if err != nil {
		f.wrong(name, "%s", err)
	}
	return r
}
