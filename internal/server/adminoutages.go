package server

import (
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/outage"
)

var adminOutagesTemplate = adminTemplate("outages")

// An outagesPage lists the outages of the marketplace itself, the newest first.
type outagesPage struct {
	frame
	Rows        []outageOnPage
	First, Next string // addresses of pages; empty where there is none
	Paged       bool
}

type outageOnPage struct {
	What  string
	State badge
	Facts []fact
}

func (s *Server) adminOutages(c echo.Context) error {
	outages, list, next, err := s.readOutages(c)
	if err != nil {
		return err
	}
	page := outagesPage{frame: s.adminFrame(c, "outages"), Paged: list.cursor != ""}
	page.First, page.Next = pagesOf("/admin/outages", list, next)
	for _, o := range outages {
		page.Rows = append(page.Rows, outageOnPageOf(o))
	}
	return s.writePage(c, http.StatusOK, adminOutagesTemplate, page)
}

// outageCauses say by what an outage was known.
var outageCauses = map[outage.Cause]string{
	outage.Canaries: "no host that is always up could be reached",
	outage.Services: "very many services failed at once",
}

func outageOnPageOf(o outage.Outage) outageOnPage {
	where := "the whole fleet"
	if o.Replica != (uuid.UUID{}) {
		where = "replica " + o.Replica.String()
	}
	row := outageOnPage{What: upperFirst(where) + ": " + outageCauses[o.Cause], State: badge{"over", "good"}}
	add := func(name, value string) { row.Facts = append(row.Facts, fact{Name: name, Value: value}) }
	add("Noticed", humanTime(o.Began))
	add("Excuses what failed since", humanTime(o.Reaches))
	add("Seen last", humanTime(o.Held))
	if o.Ended.IsZero() {
		row.State = badge{"holds now", "bad"}
	} else {
		add("Over since", humanTime(o.Ended))
	}
	add("In the minute before it was noticed", fmt.Sprintf("%s of %d that were asked failed, of %s", plural(o.Failing.Failed, "service", "services"), o.Failing.Asked,
		plural(o.Failing.Providers, "provider", "providers")))
	return row
}
