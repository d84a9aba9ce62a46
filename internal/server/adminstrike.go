package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/audit"
	"market/internal/delivery"

	"market/internal/strikes"
)

var adminStrikeTemplate = adminTemplate("strike")

// A casePage is one service with everything that decides about its place on the shelf.
type casePage struct {
	frame
	Slug, Name string
	State      badge
	Since      *moment
	By, Reason string

	Done, Conflict string // what became of the last form; empty where none was sent, or it went well

	Enforced   enforcedOnPage
	Summary    *queueRow // nil: it carries no strike that counts
	Delistings []string
	Measured   *measuredOnPage
	Strikes    []strikeOnPage
	Appeals    []appealOnPage // about the service as a whole
	Forms      []reviewForm
	Audit      []auditOnPage
}

// An enforcedOnPage is what counts, and a measuredOnPage what was measured. They stand side by side, and neither is made of the other.
type enforcedOnPage struct{ Count, Means string }

type measuredOnPage struct {
	Means   string
	Windows []measuredWindow
}

type measuredWindow struct {
	Name, N string
	Open    bool
	Rows    []measuredRow
}

type measuredRow struct {
	Name, N, Latency string
	Head             bool // of the rows below it
}

// adminStrike serves GET /admin/strikes/{slug}.
func (s *Server) adminStrike(c echo.Context) error {
	return s.writeStrikePage(c, http.StatusOK, decisionAsked{})
}

// writeStrikePage shows a service with its strikes, and what became of a form that was sent.
func (s *Server) writeStrikePage(c echo.Context, status int, sent decisionAsked) error {
	ctx := c.Request().Context()
	service, err := s.store.Find(ctx, s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	read, err := s.path.Recorder.StrikesOf(ctx, service.ID)
	if err != nil {
		return err
	}
	told, err := s.readTold(ctx, service.ID, read.Strikes)
	if err != nil {
		return err
	}
	measured, at := s.scores.Figures(ctx, service.ID)

	sum := read.Summary
	row := s.queueRowOf(sum)
	page := casePage{frame: s.adminFrame(c, "strikes"), Slug: service.Slug, Name: plain(service.Name), State: s.badge(&service), Since: momentOf(service.StateSince),
		By: plain(service.StateBy.Name), Reason: plain(service.StateReason), Conflict: sent.conflict, Measured: measuredOnPageOf(measured, at),
		Enforced: enforcedOnPage{Count: fmt.Sprintf("%d of %s", sum.Open, plural(sum.Policy.Limit, "strike", "strikes")), Means: whatEnforced}}
	if sum.Open > 0 {
		page.Summary = &row
	}
	if done := told.done(c.QueryParam("done")); done != "" && sent == (decisionAsked{}) {
		page.Done = fmt.Sprintf("%s The service is %s, with %s.", done, page.State.Word, page.Enforced.Count)
	}
	for _, d := range read.Delistings {
		page.Delistings = append(page.Delistings, delistingWords(d))
	}
	for i, st := range slices.Backward(read.Strikes) { // the newest first
		shown := strikeOnPageOf(st)
		shown.Nth = strconv.Itoa(i+1) + " of " + strconv.Itoa(len(read.Strikes))
		shown.add(told, st)
		if !shown.Decided {
			shown.Forms = page.readied(strikeForms(st, sum.Open, sum.Policy), sent)
		}
		page.Strikes = append(page.Strikes, shown)
	}
	for _, a := range told.ofService {
		page.Appeals = append(page.Appeals, appealOnPageOf(a))
	}
	for _, e := range told.audit {
		page.Audit = append(page.Audit, auditOnPageOf(e))
	}
	page.Forms = page.readied(append(serviceForms(service.State, sum.Open, sum.Policy), answerForms(told.ofService)...), sent)
	return s.writePage(c, status, adminStrikeTemplate, page)
}

// delistingWords says by what strikes took a service off the shelf.
func delistingWords(d strikes.Delisting) string {
	text := fmt.Sprintf("%s at %s by %s within %s, of %d that it takes, with evidence from %s", upperFirst(d.Verdict.String()), humanTime(d.At),
		plural(d.Open, "strike", "strikes"), span(d.Window), d.Limit, plural(d.Sources, "network", "networks"))
	if d.Needed > 1 {
		text += fmt.Sprintf(" of %d that it needs", d.Needed)
	}
	return text + "."
}

// A told is what people said and decided about a service.
type told struct {
	audit     []audit.Entry
	decisions map[string]audit.Entry // the newest about a strike, by its id
	ofStrikes map[uuid.UUID][]delivery.Appeal
	ofService []delivery.Appeal // about the service as a whole
}

// auditShown is how many decisions stand below the strikes of a service; the page of the audit has all of them.
const auditShown = 50

func (s *Server) readTold(ctx context.Context, service uuid.UUID, of []strikes.Strike) (t told, err error) {
	ids, names := make([]uuid.UUID, 0, len(of)), make([]string, 0, len(of))
	for _, st := range of {
		ids, names = append(ids, st.ID), append(names, st.ID.String())
	}
	if t.audit, _, _, err = (audit.Store{}).List(ctx, s.db, service, auditShown, ""); err != nil {
		return told{}, err
	}
	if t.decisions, err = (audit.Store{}).Latest(ctx, s.db, audit.KindStrike, names); err != nil {
		return told{}, err
	}
	if t.ofStrikes, err = delivery.AppealsOf(ctx, s.db, ids); err != nil {
		return told{}, err
	}
	if t.ofService, err = delivery.AppealsAbout(ctx, s.db, service, appealsShown); err != nil {
		return told{}, err
	}
	return t, nil
}

// done says what was decided by the entry of the audit that an address names. An address may be anybody's, so the entry has to be one of this service.
func (t told) done(entry string) string {
	for _, e := range t.audit {
		if strconv.FormatInt(e.ID, 10) == entry {
			if e.Action == audit.Uphold && e.Subject.Kind == audit.KindService {
				return dones[actLeave]
			}
			return dones[action(e.Action)]
		}
	}
	return ""
}

// add puts beside a strike what was said and decided about it. A decision stands until somebody appeals.
func (p *strikeOnPage) add(t told, st strikes.Strike) {
	decision, decided := t.decisions[st.ID.String()]
	if decided {
		p.Decisions = append(p.Decisions, decisionOnPage{What: deeds[decision.Action], By: plain(decision.By), Reason: plain(decision.Reason), At: momentOf(decision.At)})
	}
	p.Decided = decided && decision.Action == audit.Uphold
	for _, a := range t.ofStrikes[st.ID] {
		p.Appeals = append(p.Appeals, appealOnPageOf(a))
		p.Decided = p.Decided && !a.At.After(decision.At)
	}
	for _, a := range t.ofService {
		p.Decided = p.Decided && !a.At.After(decision.At)
	}
}
