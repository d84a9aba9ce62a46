package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"market/internal/call"
	"market/internal/refusal"
)

// A Target is what a request is for.
type Target struct {
	Service      *Service
	Endpoint     *Endpoint
	Params       map[string]string // path parameters, decoded
	UpstreamPath string            // escaped, below the service's base URL, made from the template

	// Allow holds the methods that the path has. With a refusal for MethodNotAllowed it is all that is set.
	Allow []string
}

// Listed refuses, with NotListed, a target that is not for sale. It is not a part of Route: a payment that is known already is looked
// up whatever became of its service.
func (t Target) Listed() *refusal.Error {
	switch {
	case !t.Service.State.Sells():
		return t.Service.notListed()
	case t.Endpoint.Retired:
		return refusal.New(call.NotListed, "this endpoint is retired")
	case t.Broken() != "":
		return refusal.New(call.NotListed, "this service cannot be asked at the moment: %s", t.Broken())
	}
	return nil
}

// Broken says why a target that may be for sale can't be asked, which nobody did who asks or who sells; empty where it can.
func (t Target) Broken() string { return cmp.Or(t.Service.Broken, t.Endpoint.Broken) }

func (s *Service) notListed() *refusal.Error {
	return refusal.New(call.NotListed, "this service is %s since %s: %s", s.State, s.StateSince.UTC().Format(time.DateOnly), s.PublicReason())
}

// routes are the endpoints of a service in the order in which they are tried: those on the shelf before retired ones, so that a new
// endpoint takes over the path of an old one, and of those that match one path the one with the earlier literal segment.
type routes []*Endpoint

func routesOf(s *Service) routes {
	sorted := slices.Clone(s.Endpoints)
	slices.SortStableFunc(sorted, func(a, b *Endpoint) int {
		if a.Retired != b.Retired {
			if a.Retired {
				return 1
			}
			return -1
		}
		return a.template.compare(b.template)
	})
	return sorted
}

// first is the endpoint that has a path, as a service is asked for it. Of "/{any}" and a dearer "/now" the first takes "/%6eow", and the service
// would be asked for the second: a spelling that is one endpoint's here and another's there is nobody's.
func (r routes) first(method, upstreamPath string) *Endpoint {
	path, ok := cutPath(upstreamPath)
	if !ok {
		return nil
	}
	for _, e := range r {
		if e.Method != method {
			continue
		}
		if _, ok := e.template.match(path); ok {
			return e
		}
	}
	return nil
}

// Route finds the endpoint that a request is for. escapedPath is what follows the service's name in the request's escaped path, cut
// off before any decoding. NotFound for a service or path that nobody lists, in whatever spelling; MethodNotAllowed for a known path.
// A delisted or retired service is found too: see Target.Listed.
func (s *Snapshot) Route(slug, method, escapedPath string) (Target, *refusal.Error) {
	service, ok := s.bySlug[slug]
	if !ok {
		return Target{}, refusal.New(call.NotFound, "no such service")
	}
	path, ok := cutPath(escapedPath)
	if !ok {
		return Target{}, refusal.New(call.NotFound, "the service has no such path")
	}
	allow := map[string]bool{}
	for _, e := range s.routes[service.ID] {
		params, ok := e.template.match(path)
		if !ok {
			continue
		}
		if e.Method == method {
			asked := e.template.build(params)
			if s.routes[service.ID].first(method, asked) != e {
				return Target{}, refusal.New(call.NotFound, "the service has no such path")
			}
			return Target{
				Service: service, Endpoint: e, Params: params, UpstreamPath: asked,
				Allow: []string{method},
			}, nil
		}
		allow[e.Method] = true
	}
	if len(allow) == 0 {
		return Target{}, refusal.New(call.NotFound, "the service has no such path")
	}
	methods := slices.Sorted(maps.Keys(allow))
	return Target{Allow: methods}, refusal.New(call.MethodNotAllowed, "this path takes %s", strings.Join(methods, ", "))
}
