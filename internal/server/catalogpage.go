package server

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/refusal"
)

// A catalogPage shows what is for sale, as far as it fits what is looked for.
type catalogPage struct {
	frame
	Q        catalog.Query
	Max      string
	Networks []choice
	States   []choice
	Sorts    []choice
	Problems map[string]string // by parameter
	Others   []string          // what is wrong and belongs to no field
	Filtered bool

	Rows        []catalogRow
	Total       int
	First, Next string // addresses of pages; empty where there is none
	Shelf       bool   // there are services, whether they fit or not
	HowToList   string
}

type choice struct {
	ID, Name string
	Chosen   bool
}

type catalogRow struct {
	Slug, Name, What string
	State            badge
	Price            string
	From             bool
	Delivered, N     string
	Median           string
	Last             *moment
}

var (
	sortNames  = map[catalog.Sort]string{catalog.ByRecord: "best record", catalog.ByRelevance: "best match", catalog.ByAge: "oldest"}
	formFields = []string{"query", "tag", "max_price_usd", "network", "status", "sort"}
)

// writeCatalog is the page of GET /.
func (s *Server) writeCatalog(c echo.Context) error {
	page := catalogPage{frame: s.frame(), Problems: map[string]string{}}
	page.Searching = true
	status := http.StatusOK
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		page.Others = append(page.Others, "The address has a query that cannot be read.")
	}
	// A person who looks for nothing in particular sees first what delivers best.
	asked := maps.Clone(values)
	if !values.Has("sort") && values.Get("query") == "" {
		asked.Set("sort", string(catalog.ByRecord))
	}
	page.Q, err = catalog.ParseQuery(asked)
	if no, ok := errors.AsType[*refusal.Error](err); ok {
		status = http.StatusBadRequest
		for _, field := range no.Fields {
			page.Problems[field.Name] = field.Message
		}
	}
	page.fill(values, s)
	if len(page.Problems) == 0 {
		found, tallies := s.search(c, page.Q)
		page.Total = found.Total
		for _, service := range found.Services {
			page.Rows = append(page.Rows, s.catalogRow(service, tallies))
		}
		if found.Next != "" {
			asked.Set("cursor", found.Next)
			page.Next = "/?" + asked.Encode()
		}
	}
	asked.Del("cursor")
	page.First = "/?" + asked.Encode()
	page.JSON = "/api/v1/services?" + asked.Encode()
	page.Unlisted = page.Filtered
	page.Shelf = s.catalog.Current().Len() > 0
	page.HowToList = "curl " + s.publicURL + "/api/v1/services -H 'Authorization: Bearer …' -d @listing.json"
	return s.writePage(c, status, catalogTemplate, page)
}

// fill shows in the form what was asked, also what is wrong.
func (p *catalogPage) fill(values url.Values, s *Server) {
	p.Q.Text, p.Q.Tag, p.Max = plain(p.Q.Text), plain(p.Q.Tag), plain(values.Get("max_price_usd"))
	for _, name := range formFields {
		p.Filtered = p.Filtered || values.Get(name) != ""
	}
	p.Filtered = p.Filtered || values.Get("cursor") != ""
	for _, n := range s.networks {
		p.Networks = append(p.Networks, choice{n.ID, networkName(n.V1Name, n.ID), p.Q.Network == n.ID || (n.V1Name != "" && p.Q.Network == n.V1Name)})
	}
	for _, state := range catalog.States() {
		p.States = append(p.States, choice{string(state), stateWord(state), p.Q.Status == state})
	}
	for _, sort := range []catalog.Sort{catalog.ByRecord, catalog.ByRelevance, catalog.ByAge} {
		p.Sorts = append(p.Sorts, choice{string(sort), sortNames[sort], p.Q.Sort == sort})
	}
	shown := map[string]bool{}
	for _, name := range formFields {
		shown[name] = true
	}
	for name, message := range p.Problems {
		if !shown[name] {
			p.Others = append(p.Others, "The address has a parameter that cannot be used: "+strconv.QuoteToASCII(name)+" "+message+".")
		}
	}
}

func (s *Server) catalogRow(v *catalog.Service, tallies map[uuid.UUID]delivery.Tally) catalogRow {
	row := catalogRow{Slug: v.Slug, Name: plain(v.Name), What: plain(v.Description), State: badgeOf(v.State, s.rest(v.ID), v.Broken != "")}
	if usd, priced := v.Cheapest(); priced {
		row.Price, row.From = usd.String(), len(v.Endpoints) > 1
	}
	st := tallies[v.ID]
	if share, known := st.Delivered(); known {
		row.Delivered, row.N = percent(share), count(st.N())
		if st.Newest {
			row.N = "the newest " + row.N
		}
	}
	if st.Served > 0 {
		row.Median = span(st.P50)
	}
	row.Last = momentOf(st.LastServed)
	return row
}
