package catalog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/refusal"
)

// offer returns a listed service with one endpoint, younger than every one that was made before it.
func offer(slug, name, description, usd string, tags ...string) *Service {
	id := call.NewID()
	return &Service{ID: id, Slug: slug, Name: name, Description: description, Tags: tags, State: Listed, Endpoints: []*Endpoint{{
		ID: uuid.New(), ServiceID: id, Method: "GET", Path: "/v1/" + slug, Description: "Endpoint of " + slug,
		Prices: []Price{{Revision: 1, USD: decimal.RequireFromString(usd)}},
	}}}
}

func noScore(uuid.UUID) int { return 0 }

func parse(t *testing.T, query string) Query {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	q, err := ParseQuery(values)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return q
}

func slugs(services []*Service) (out []string) {
	for _, s := range services {
		out = append(out, s.Slug)
	}
	return out
}

func TestSearch_FindsWhatFitsAndTheBestFirst(t *testing.T) {
	t.Parallel()
	weather := offer("weather", "Weather", "Current conditions by city", "0.002", "data")
	storms := offer("storms", "Storm Alerts", "Severe weather warnings", "0.01", "data", "alerts")
	radar := offer("radar", "Radar", "Pictures", "0.5", "images")
	radar.Endpoints[0].Description = "Clouds and weather fronts"
	gone := offer("gone", "Weather of yesterday", "", "0.001")
	gone.State, gone.StateReason = Delisted, "three strikes"
	old := offer("old", "Old", "", "0.3")
	old.Endpoints[0].Retired, old.Endpoints[0].Path = true, "/weather"
	odd := offer("odd", "Größe & 100%", `</script><script>alert(1)</script>`, "1")
	s := newSnapshot([]*Service{weather, storms, radar, gone, old, odd}, 0)
	scores := map[uuid.UUID]int{storms.ID: 900_000, radar.ID: 100}
	for query, want := range map[string]string{
		"":                                    "weather storms radar old odd",
		"query=weather":                       "weather storms radar",
		"query=WEATHER":                       "weather storms radar",
		"query=weather&sort=created":          "weather storms radar",
		"query=weather&sort=record":           "storms radar weather",
		"sort=record":                         "storms radar weather old odd",
		"query=alerts+weather":                "storms",
		"query=weather+nothing":               "",
		"query=torm":                          "storms",
		"query=/v1/radar":                     "radar",
		"query=größe":                         "odd",
		"query=100%25":                        "odd",
		"query=%3Cscript%3E":                  "odd",
		"query=gone":                          "",
		"query=old+/weather":                  "",
		"status=delisted":                     "gone",
		"status=retired":                      "",
		"tag=data":                            "weather storms",
		"tag=dat":                             "",
		"query=data":                          "weather storms",
		"max_price_usd=0.01":                  "weather storms",
		"max_price_usd=0.009999":              "weather",
		"max_price_usd=0.01&tag=alerts":       "storms",
		"query=&network=&tag=&max_price_usd=": "weather storms radar old odd",
	} {
		page := s.Search(parse(t, query), func(id uuid.UUID) int { return scores[id] })
		if got := strings.Join(slugs(page.Services), " "); got != want || page.Total != len(page.Services) || page.Next != "" {
			t.Errorf("%q: %q of %d, want %q", query, got, page.Total, want)
		}
	}
}

func TestSearch_OnANetworkOnlyWhatHasAPriceThatIsAskedThere(t *testing.T) {
	t.Parallel()
	cheap, dear, both, gone := offer("cheap", "Cheap", "", "0.002"), offer("dear", "Dear", "", "0.5"), offer("both", "Both", "", "0.1"), offer("gone", "Gone", "", "0.002")
	both.Endpoints = append(both.Endpoints, offer("x", "", "", "0.9").Endpoints[0])
	gone.Endpoints = append(gone.Endpoints, offer("x", "", "", "0.9").Endpoints[0])
	gone.Endpoints[1].Retired = true
	s := newSnapshot([]*Service{cheap, dear, both, gone}, 0)
	q := parse(t, "network=base")
	q.Offered = func(p Price) bool { return p.USD.GreaterThanOrEqual(decimal.RequireFromString("0.5")) }
	if got := strings.Join(slugs(s.Search(q, noScore).Services), " "); got != "dear both" {
		t.Errorf("found %q", got)
	}
}

// B127: 1,000 listings, read to the end while others come and go: each one that stays is seen once.
func TestSearch_EachListingThatStaysIsSeenOnceWhileOthersComeAndGo(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"", "query=weather"} {
		random := rand.New(rand.NewPCG(1, 2))
		var shelf []*Service
		for n := range 1000 {
			name := []string{"Weather", "The weather", "Forecasts"}[n%3]
			shelf = append(shelf, offer(fmt.Sprintf("s%d", n), name, "All about weather", "0.002"))
		}
		stays := map[string]bool{}
		for _, s := range shelf {
			stays[s.Slug] = true
		}
		seen := map[string]int{}
		cursor, pages := "", 0
		for {
			page := newSnapshot(shelf, 0).Search(parse(t, order+"&limit=37&cursor="+cursor), noScore)
			for _, s := range page.Services {
				seen[s.Slug]++
			}
			pages++
			if cursor = page.Next; cursor == "" {
				break
			}
			for range 9 { // anywhere: on pages that were read, on those that come, and where the cursor points
				n := random.IntN(len(shelf))
				delete(stays, shelf[n].Slug)
				shelf = slices.Delete(shelf, n, n+1)
			}
			last := shelf[slices.IndexFunc(shelf, func(s *Service) bool { return seen[s.Slug] > 0 })]
			delete(stays, last.Slug)
			shelf = append(slices.DeleteFunc(shelf, func(s *Service) bool { return s == last }), offer(fmt.Sprintf("new%d", pages), "Weather", "", "0.002"))
		}
		for slug := range stays {
			if seen[slug] != 1 {
				t.Errorf("%q: %s stayed all the while and was seen %d times", order, slug, seen[slug])
			}
		}
		for slug, times := range seen {
			if times > 1 {
				t.Errorf("%q: %s was seen %d times", order, slug, times)
			}
		}
		if pages < 20 || len(stays) < 500 {
			t.Errorf("%q: %d pages, %d stayed", order, pages, len(stays))
		}
	}
}

func TestParseQuery_RefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := newSnapshot([]*Service{offer("a", "A", "", "1"), offer("b", "B", "", "1")}, 0)
	ofRecord := s.Search(parse(t, "limit=1&sort=record"), noScore).Next
	if ofRecord == "" {
		t.Fatal("no cursor")
	}
	for name, tt := range map[string]struct {
		query string
		field string
	}{
		"a limit of none":                {"limit=0", "limit"},
		"a limit above a hundred":        {"limit=101", "limit"},
		"a parameter nobody knows":       {"page=2", "page"},
		"a parameter twice":              {"tag=a&tag=b", "tag"},
		"a tag in capitals":              {"tag=A", "tag"},
		"a network that is none":         {"network=base'", "network"},
		"a price with an exponent":       {"max_price_usd=1e9", "max_price_usd"},
		"a price of nothing":             {"max_price_usd=0", "max_price_usd"},
		"a status that is none":          {"status=broken", "status"},
		"an empty status":                {"status=", "status"},
		"an order that is none":          {"sort=price", "sort"},
		"a query that is too long":       {"query=" + strings.Repeat("x", queryLenMax+1), "query"},
		"a query of too many words":      {"query=" + strings.Repeat("x+", queryWordsMax+1), "query"},
		"a query that is no text":        {"query=%ff", "query"},
		"a query with a line end":        {"query=a%0ab", "query"},
		"a cursor of the caller's":       {"cursor=abc", "cursor"},
		"a cursor of another order":      {"cursor=" + ofRecord, "cursor"},
		"a cursor with a number of ours": {"cursor=czI6Y3JlYXRlZDowMDp4", "cursor"},
	} {
		values, err := url.ParseQuery(tt.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseQuery(values)
		no, ok := err.(*refusal.Error)
		if !ok || no.Reason != call.InvalidParameter || len(no.Fields) != 1 || no.Fields[0].Name != tt.field {
			t.Errorf("%s: %v, want a complaint about %s", name, err, tt.field)
		}
	}
	parse(t, "sort=record&cursor="+ofRecord)
	values := map[string][]string{"limit": {"x"}, "tag": {"X"}, "query": {"kept"}}
	q, err := ParseQuery(maps.Clone(values))
	if err == nil || q.Text != "kept" || q.Tag != "X" {
		t.Errorf("what was typed is not kept: %+v, %v", q, err)
	}
}

// Search walks all listings, which has to stay cheap with very many: see docs/api.md.
func BenchmarkSearch(b *testing.B) {
	var shelf []*Service
	for n := range 15_000 {
		shelf = append(shelf, offer(fmt.Sprintf("service-%d", n), fmt.Sprintf("Service number %d of many", n), strings.Repeat("what it does and for whom ", 12), "0.002", "data"))
	}
	s := newSnapshot(shelf, 0)
	s.indexed()
	for name, query := range map[string]string{"all": "", "word": "query=number", "nothing": "query=nothing+at+all"} {
		values, _ := url.ParseQuery(query)
		q, err := ParseQuery(values)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for range b.N {
				s.Search(q, noScore)
			}
		})
	}
}
