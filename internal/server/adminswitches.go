package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/refusal"
	"market/internal/switches"
)

var adminSwitchesTemplate = adminTemplate("switches")

// A switchesPage says what the operator has stopped by hand, and lets an admin do so.
type switchesPage struct {
	frame
	Done     string // what was just done
	Conflict string // what somebody else was first to do
	Says     string
	Some     bool // are on
	Rows     []switchOnPage
}

type switchOnPage struct {
	ID, Anchor, Title, Key string
	Kind                   switches.Kind
	State                  badge
	Stops, GoesOn          string
	Set                    string // by whom and when; empty: by nobody
	Since                  *moment
	Reason                 string
	Form                   string
	Turn                   string // what the form sets it to
	Ask, Button            string
	Bad                    bool
	Open                   bool
	Kept, Problem          string // what was typed, and what is wrong with it
}

// A switchAsked is what a form asked for that was not done. The zero value is that none was sent.
type switchAsked struct {
	name, reason string
	notDone
}

// adminSwitches serves GET /admin/switches.
func (s *Server) adminSwitches(c echo.Context) error {
	return s.writeSwitches(c, http.StatusOK, switchAsked{})
}

func (s *Server) writeSwitches(c echo.Context, status int, asked switchAsked) error {
	all, err := s.readSwitches(c.Request().Context())
	if err != nil {
		return err
	}
	page := switchesPage{frame: s.adminFrame(c, "switches"), Conflict: asked.conflict}
	on, done := 0, c.QueryParam("done")
	for _, each := range all {
		row := s.switchOnPageOf(each)
		row.Form = page.Admin.Form
		if asked.problem != "" && each.Name.String() == asked.name {
			row.Open, row.Kept, row.Problem = true, plain(asked.reason), asked.problem
		}
		if each.On {
			on++
		}
		if done != "" && done == each.Name.String() && !each.Since.IsZero() {
			page.Done = upperFirst(row.Title) + ": it is " + row.State.Word + " now."
		}
		page.Rows = append(page.Rows, row)
	}
	page.Some = on > 0
	page.Says = "None of them is on."
	if page.Some {
		page.Says = plural(on, "switch is on", "switches are on") + ". You are told so by a notice as long as payments or strikes are stopped."
	}
	return s.writePage(c, status, adminSwitchesTemplate, page)
}

func (s *Server) switchOnPageOf(each switches.Switch) switchOnPage {
	v := switchViewOf(each)
	row := switchOnPage{ID: strings.NewReplacer(" ", "-", ":", "-").Replace(each.Name.String()), Anchor: "switch-" + url.PathEscape(each.Name.String()), Key: each.Name.String(), Kind: each.Kind,
		State: badge{"off", "good"}, Stops: v.Stops, GoesOn: v.GoesOn, Turn: "on", Bad: true}
	switch each.Kind {
	case switches.Stop402:
		name := plain(each.Subject)
		for _, n := range s.networks {
			if n.ID == each.Subject {
				name = networkName(n.V1Name, n.ID)
			}
		}
		row.Title, row.Ask, row.Button = "New payments on "+name, "Stop new payments …", "Stop new payments"
	case switches.StopPayouts:
		row.Title, row.Ask, row.Button = "Payouts to providers", "Stop payouts …", "Stop payouts"
	case switches.SuspendStrikes:
		row.Title, row.Ask, row.Button = "Strikes and cooldowns", "Suspend strikes …", "Suspend strikes"
	}
	if each.On {
		row.State, row.Turn, row.Bad = badge{"stopped", "bad"}, "off", false
		row.Ask, row.Button = "Let it go on …", "Let it go on"
	}
	if !each.Since.IsZero() {
		row.Set, row.Since, row.Reason = plain(each.By), momentOf(each.Since), plain(each.Reason)
	}
	return row
}

// adminSetSwitch serves POST /admin/switches. What was done is seen where it was done, as is why nothing was.
func (s *Server) adminSetSwitch(c echo.Context) error {
	form, ok, err := s.formOf(c)
	if !ok {
		return err
	}
	asked := switchAsked{name: form.Get("switch"), reason: strings.Join(strings.Fields(form.Get("reason")), " ")}
	set, err := s.switchByForm(c, asked, form)
	if err == nil {
		return c.Redirect(http.StatusSeeOther, "/admin/switches?"+url.Values{"done": {set.Name.String()}}.Encode())
	}
	status, shown := asked.refused(err)
	if !shown {
		return err
	}
	return s.writeSwitches(c, status, asked)
}

// switchByForm does what a form asks for, as the API would.
func (s *Server) switchByForm(c echo.Context, asked switchAsked, form url.Values) (switches.Switch, error) {
	order := switchOrder{on: form.Get("on") == "on"}
	all, err := s.readSwitches(c.Request().Context())
	if err != nil {
		return switches.Switch{}, err
	}
	for _, each := range all {
		if each.Name.String() == asked.name {
			order.name = each.Name
		}
	}
	if order.name.Kind == "" || !order.on && form.Get("on") != "off" {
		return switches.Switch{}, refusal.New(call.NotFound, "there is no such switch")
	}
	if form.Get("sure") != "yes" {
		return switches.Switch{}, refusal.New(call.InvalidRequest, "say that you have read what it does, and nothing was changed until then")
	}
	if order.reason, err = reasonOf(&asked.reason); err != nil {
		return switches.Switch{}, err
	}
	return s.switchTo(c, order)
}
