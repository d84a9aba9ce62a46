package server

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

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
	Shelf       bool   // there are services for sale, whether they fit or not
	Restless    bool   // the order may change from page to page
	AsOf        *moment
	Closed      []string // why nobody can pay just now, by network
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
	Payers           string
	Record           string // in words, where nothing is delivered of nothing
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
	if no, ok := errors.AsType[*refusal.Error](s.refuseForeign(page.Q)); ok && page.Problems["network"] == "" {
		status = http.StatusBadRequest
		page.Problems["network"] = no.Fields[0].Message
	}
	page.fill(values, s)
	page.JSON = "/api/v1/services?" + asked.Encode()
	if len(page.Problems) == 0 {
		found, read := s.search(c, page.Q)
		page.Total, page.AsOf, page.Restless = found.Total, momentOf(read.at), page.Q.Sort == catalog.ByRecord
		for _, service := range found.Services {
			page.Rows = append(page.Rows, s.catalogRow(service, read))
		}
		if found.Next != "" {
			asked.Set("cursor", found.Next)
			page.Next = "/?" + asked.Encode()
		}
	}
	asked.Del("cursor")
	page.First = "/?" + asked.Encode()
	page.Unlisted = page.Filtered
	page.Shelf = s.catalog.Current().Search(catalog.DefaultQuery(), nil).Total > 0
	page.Closed = s.closed()
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

func (s *Server) catalogRow(v *catalog.Service, read scores) catalogRow {
	row := catalogRow{Slug: v.Slug, Name: plain(v.Name), What: plain(v.Description), State: s.badge(v)}
	if usd, priced := v.Cheapest(); priced {
		row.Price, row.From = usd.String(), len(v.Endpoints) > 1
	}
	if read.at.IsZero() {
		row.Record = "not known just now"
		return row
	}
	st := read.of(v.ID)
	if share, known := st.Delivered(); known {
		row.Delivered, row.N, row.Payers = percent(share), count(st.N()), payersText(st.Payers)
		if st.Newest() {
			row.N = "the newest " + row.N
		}
	} else {
		row.Record = recordText(st)
	}
	if st.Served > 0 {
		row.Median = span(st.P50)
	}
	row.Last = momentOf(st.LastServed)
	return row
}

// recordText says what there is to say of a service of whose calls none shows whether it delivers.
func recordText(st delivery.Tally) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{st.Refused, "refused"}, {st.Resting, "met its rest"}, {st.Elsewhere, "failed elsewhere"}, {st.Left, "left by the caller"}} {
		if p.n > 0 {
			parts = append(parts, count(p.n)+" "+p.what)
		}
	}
	text := "no paid calls yet"
	if len(parts) > 0 {
		text = "none that counts: " + strings.Join(parts, ", ")
	}
	if st.Trials > 0 {
		text += "; " + count(st.TrialsServed) + " of " + count(st.Trials) + " trials served"
	}
	return text
}

func payersText(n int) string {
	if n == 1 {
		return "1 payer"
	}
	return count(n) + " payers"
}
