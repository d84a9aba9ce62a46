package catalog

import (
	"slices"
	"testing"

	"github.com/shopspring/decimal"

	"market/internal/call"
)

// shelf returns a snapshot with one service, weather, that has endpoints given as "GET /path".
func shelf(t *testing.T, change func(*Service), endpoints ...[2]string) *Snapshot {
	t.Helper()
	s := &Service{
		ID: call.NewID(), Slug: "weather", BaseURL: "https://api.weather.example/base", State: Listed, Probe: Probe{Method: "GET", Path: "/"},
	}
	for i, e := range endpoints {
		s.Endpoints = append(s.Endpoints, &Endpoint{
			ID: call.NewID(), ServiceID: s.ID, Method: e[0], Path: e[1],
			Prices: []Price{{Revision: int64(i + 1), USD: decimal.New(1, 0)}},
		})
	}
	if change != nil {
		change(s)
	}
	_ = s.Prepare() // some tests want a broken one
	return newSnapshot([]*Service{s}, 0)
}

func TestSnapshot_Route_OnePathOneMeaning(t *testing.T) {
	t.Parallel()
	s := shelf(t, nil,
		[2]string{"GET", "/v1/{any}"}, [2]string{"GET", "/v1/now"}, [2]string{"POST", "/v1/now"}, [2]string{"HEAD", "/v1/head"}, [2]string{"GET", "/"})
	tests := map[string]struct {
		slug, method, path string
		reason             call.Reason
		template           string
		allow              []string
	}{
		"a literal wins over a parameter":           {"weather", "GET", "/v1/now", "", "/v1/now", []string{"GET"}},
		"a parameter takes the rest":                {"weather", "GET", "/v1/later", "", "/v1/{any}", []string{"GET"}},
		"a parameter where the literal's is others": {"weather", "GET", "/v1/head", "", "/v1/{any}", []string{"GET"}},
		"the root":                       {"weather", "GET", "/", "", "/", []string{"GET"}},
		"another method":                 {"weather", "POST", "/v1/now", "", "/v1/now", []string{"POST"}},
		"a method that the path has not": {"weather", "DELETE", "/v1/now", call.MethodNotAllowed, "", []string{"GET", "POST"}},
		"HEAD where only GET is sold":    {"weather", "HEAD", "/v1/later", call.MethodNotAllowed, "", []string{"GET"}},
		"HEAD where it is sold":          {"weather", "HEAD", "/v1/head", "", "/v1/head", []string{"HEAD"}},
		"a method in lower case":         {"weather", "get", "/v1/now", call.MethodNotAllowed, "", []string{"GET", "POST"}},
		"no such service":                {"wether", "GET", "/v1/now", call.NotFound, "", nil},
		"the service in capitals":        {"Weather", "GET", "/v1/now", call.NotFound, "", nil},
		"an empty service":               {"", "GET", "/v1/now", call.NotFound, "", nil},
		"no such path":                   {"weather", "GET", "/v2", call.NotFound, "", nil},
		"no path":                        {"weather", "GET", "", call.NotFound, "", nil},
		"a double slash":                 {"weather", "GET", "//v1/now", call.NotFound, "", nil},
		"a double slash inside":          {"weather", "GET", "/v1//now", call.NotFound, "", nil},
		"an escaped letter is another":   {"weather", "GET", "/%761/now", call.NotFound, "", nil},
		"a parent segment":               {"weather", "GET", "/v1/x/../now", call.NotFound, "", nil},
		"an escaped parent segment":      {"weather", "GET", "/v1/%2e%2e", call.NotFound, "", nil},
		"an escaped slash":               {"weather", "GET", "/v1/a%2Fnow", call.NotFound, "", nil},
		"a trailing slash":               {"weather", "GET", "/v1/now/", call.NotFound, "", nil},
		"a malformed escape":             {"weather", "GET", "/v1/%", call.NotFound, "", nil},
		"a semicolon is a parameter":     {"weather", "GET", "/v1/now;x", "", "/v1/{any}", []string{"GET"}},
	}
	for name, tt := range tests {
		target, no := s.Route(tt.slug, tt.method, tt.path)
		var reason call.Reason
		if no != nil {
			reason = no.Reason
		}
		if reason != tt.reason || !slices.Equal(target.Allow, tt.allow) {
			t.Errorf("%s: reason = %q, allow = %v, want %q, %v", name, reason, target.Allow, tt.reason, tt.allow)
			continue
		}
		if no == nil && target.Endpoint.Path != tt.template {
			t.Errorf("%s: endpoint = %s, want %s", name, target.Endpoint.Path, tt.template)
		}
	}
}

func TestSnapshot_Route_BuildsTheUpstreamPathBelowTheBaseURL(t *testing.T) {
	t.Parallel()
	s := shelf(t, nil, [2]string{"GET", "/city/{id}/now"})
	target, no := s.Route("weather", "GET", "/city/a%20b%3B..%25/now")
	if no != nil {
		t.Fatal(no)
	}
	if want := "a b;..%"; target.Params["id"] != want {
		t.Errorf("parameter = %q, want %q", target.Params["id"], want)
	}
	u, err := target.Service.URL(target.UpstreamPath, "q=1&q=2")
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://api.weather.example/base/city/a%20b%3B..%25/now?q=1&q=2"; u.String() != want {
		t.Errorf("URL = %s, want %s", u, want)
	}
}

func TestTarget_Listed_SaysWhyATargetIsNotForSale(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*Service)
		listed bool
	}{
		"a listed service":             {nil, true},
		"a delisted service":           {func(s *Service) { s.State = Delisted }, false},
		"a retired service":            {func(s *Service) { s.State = Retired }, false},
		"a retired endpoint":           {func(s *Service) { s.Endpoints[0].Retired = true }, false},
		"a malformed base URL":         {func(s *Service) { s.BaseURL = "://" }, false},
		"a malformed schema":           {func(s *Service) { s.Endpoints[0].InputSchema = []byte(`{"type":5}`) }, false},
		"no price":                     {func(s *Service) { s.Endpoints[0].Prices = nil }, false},
		"another endpoint that broken": {func(s *Service) { s.Endpoints[1].InputSchema = []byte(`{"type":5}`) }, true},
	}
	for name, tt := range tests {
		target, no := shelf(t, tt.change, [2]string{"GET", "/a"}, [2]string{"GET", "/b"}).Route("weather", "GET", "/a")
		if no != nil {
			t.Errorf("%s: not found: %v", name, no)
			continue
		}
		no = target.Listed()
		if (no == nil) != tt.listed || (no != nil && (no.Reason != call.NotListed || no.Detail == "")) {
			t.Errorf("%s: refusal = %v, want listed = %v", name, no, tt.listed)
		}
	}
}

func TestSnapshot_Route_ANewEndpointTakesOverThePathOfARetiredOne(t *testing.T) {
	t.Parallel()
	s := shelf(t, func(s *Service) { s.Endpoints[0].Retired = true }, [2]string{"GET", "/a"}, [2]string{"GET", "/{x}"})
	target, no := s.Route("weather", "GET", "/a")
	if no != nil || target.Endpoint.Retired {
		t.Errorf("target = %+v, %v, want the endpoint on the shelf", target.Endpoint, no)
	}
}
