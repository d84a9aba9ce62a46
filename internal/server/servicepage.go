package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/delivery"
)

// shownBytesMax is the longest example that is shown on a page; the whole one is in the JSON.
const shownBytesMax = 4000

// A servicePage shows one listing with its record. A service that has left the shelf has its page, too: it says so.
type servicePage struct {
	frame
	Name, Description string
	Tags              []string
	State             badge
	Explained         string // what the state means to a caller; empty where the service is for sale
	Left              bool   // the shelf, for a reason
	Reason            string
	Since, Created    *moment
	Host              string
	Endpoints         []endpointOnPage
	Windows           []windowOnPage
	AsOf              *moment // of the record; nil: it could not be read
	Last              *moment
	Closed            []string // why nobody can pay just now, by network
	Changes           []priceChangeOnPage
}

type endpointOnPage struct {
	endpoint                              uuid.UUID
	ID, Method, Path, Description, Broken string
	Prices                                []priceOnPage
	URL, Try                              string
	Timeout, Bytes                        string
	Pause                                 string // the longest of a stream; empty for what is none
	Served                                []int
	Trials, TrialsEach                    int        // a day: for everybody together, and for one caller
	Left                                  *trialLeft // nil: nothing is told of today
	Input, Output                         exampleOnPage
	Schema                                exampleOnPage
	RequestBytes                          string
	Promised                              bool // there is an output schema
	MIME                                  string
	Ways                                  *ways
}

// An exampleOnPage is JSON that is shown, or left out because it is too long for a page.
type exampleOnPage struct {
	Text   string
	TooBig bool
}

type windowOnPage struct {
	Name, Delivered, N, Payers                        string
	Served, Failed, Refused, Resting, Elsewhere, Left string
	P50, P99                                          string
	Trials                                            string
	Newest                                            string // how many calls are counted, where there were more; empty: all
	Since                                             *moment
}

type priceChangeOnPage struct {
	Since                     *moment
	Method, Path, Before, USD string
}

func (s *Server) writeServicePage(c echo.Context, v *catalog.Service, tallies []delivery.Tally, at time.Time) error {
	changes, err := s.store.PriceChanges(c.Request().Context(), s.db, v.ID)
	if err != nil {
		return err
	}
	page := s.servicePage(v, tallies, at, changes)
	page.Closed = s.closedFor(v)
	trials, err := s.trialsOf(c, v)
	if err != nil {
		return err
	}
	page.showTrials(trials)
	return s.writePage(c, http.StatusOK, serviceTemplate, page)
}

func (s *Server) servicePage(v *catalog.Service, tallies []delivery.Tally, at time.Time, changes []catalog.PriceChange) servicePage {
	rest := s.rest(v.ID)
	page := servicePage{
		frame: s.frame(), Name: plain(v.Name), Description: plain(v.Description),
		State: s.badge(v), AsOf: momentOf(at), Reason: plain(v.PublicReason()), Since: momentOf(v.StateSince), Created: momentOf(v.CreatedAt),
		Host: hostOf(v.BaseURL), Left: v.State != catalog.Listed,
	}
	page.JSON, page.Unlisted = "/api/v1/services/"+v.Slug, v.State != catalog.Listed
	page.Explained = s.explain(v, rest)
	for _, tag := range v.Tags {
		page.Tags = append(page.Tags, plain(tag))
	}
	for _, e := range v.Endpoints {
		if !e.Retired {
			page.Endpoints = append(page.Endpoints, s.endpointOnPage(v, e))
		}
	}
	for _, st := range tallies {
		page.Windows = append(page.Windows, windowOf(st))
		page.Last = momentOf(st.LastServed) // the longest window comes last
	}
	for _, ch := range changes {
		page.Changes = append(page.Changes, priceChangeOnPage{momentOf(ch.Since), ch.Method, plain(ch.Path), ch.Before.String(), ch.USD.String()})
	}
	return page
}

// explain says what it means to a caller that a service is not simply for sale.
func (s *Server) explain(v *catalog.Service, rest time.Duration) string {
	switch {
	case v.State != catalog.Listed:
		return "This service is " + stateWord(v.State) + ": nobody is asked to pay for it, and it is asked nothing."
	case v.Broken != "":
		return "This listing is broken: " + plain(v.Broken) + "."
	case rest > 0:
		return "This service failed a moment ago and rests for " + span(rest.Round(time.Second)) + ": nobody is asked to pay for it meanwhile."
	case s.dead(v):
		return "This service did not answer when it was looked at last. It is looked at again before a payment is taken: as long as it does not answer, none is."
	}
	return ""
}

// rest is how long a service still rests after a failure.
func (s *Server) rest(service uuid.UUID) time.Duration {
	if s.path == nil {
		return 0
	}
	return s.path.Board.Remaining(service)
}

func (s *Server) endpointOnPage(v *catalog.Service, e *catalog.Endpoint) endpointOnPage {
	page := endpointOnPage{
		endpoint: e.ID, ID: "e-" + e.ID.String(), Method: e.Method, Path: plain(e.Path), Description: plain(e.Description), Broken: plain(e.Broken),
		URL: s.publicURL + "/s/" + v.Slug + e.Path, Timeout: span(e.Timeout), Bytes: count(e.MaxResponseBytes), Served: e.ServedStatuses,
		Try:   s.publicURL + "/try/" + v.Slug + e.Path,
		Input: shownJSON(e.InputExample), Output: shownJSON(e.OutputExample), Schema: shownJSON(e.InputSchema), MIME: plain(e.MIMEType),
		RequestBytes: count(delivery.RequestBytesMax), Promised: len(e.OutputSchema) > 0,
	}
	page.Trials, page.TrialsEach = s.trialsOffered(v, e)
	if e.Stream {
		page.Pause = span(e.IdleTimeout)
	}
	price, priced := e.Price()
	if !priced || s.path == nil {
		return page
	}
	page.Prices = pricesOf(s.path.Terms(e, price))
	if v.State == catalog.Listed && v.Broken == "" && e.Broken == "" {
		w := s.waysTo(v.Slug, e, price.USD)
		page.Ways = &w
	}
	return page
}

// shownJSON writes an example over several lines, in ASCII; the zero one where there is none.
func shownJSON(raw json.RawMessage) exampleOnPage {
	text, ok := asciiJSON(raw)
	if !ok {
		return exampleOnPage{}
	}
	var out bytes.Buffer
	if len(text) > shownBytesMax || json.Indent(&out, []byte(text), "", "  ") != nil {
		return exampleOnPage{TooBig: true}
	}
	return exampleOnPage{Text: out.String()}
}

// hostOf is shown as text and is no link: a page of ours leads to no address that a provider chose.
func hostOf(baseURL string) string {
	u, err := url.Parse(baseURL)
	if err != nil {
		return ""
	}
	return plain(u.Host)
}

func windowOf(st delivery.Tally) windowOnPage {
	w := windowOnPage{Delivered: "–", P50: "–", P99: "–", N: count(st.N()), Served: count(st.Served), Failed: count(st.Failed),
		Payers: count(st.Payers), Refused: count(st.Refused), Resting: count(st.Resting), Elsewhere: count(st.Elsewhere), Left: count(st.Left),
		Trials: count(st.TrialsServed) + " of " + count(st.Trials), Since: momentOf(st.Since)}
	if st.Newest() {
		w.Newest = count(delivery.TallyCalls)
	}
	switch days := int(st.Window.Hours() / 24); days {
	case 1:
		w.Name = "24 hours"
	default:
		w.Name = count(days) + " days"
	}
	if share, known := st.Delivered(); known {
		w.Delivered = percent(share)
	}
	if st.Served > 0 {
		w.P50, w.P99 = span(st.P50), span(st.P99)
	}
	return w
}
