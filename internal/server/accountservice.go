package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/letter"
	"market/internal/strikes"
)

var accountServiceTemplate = accountTemplate("service")

// An ownedPage is one service as its provider sees it: how it stands and why, and everything that can be changed.
type ownedPage struct {
	frame
	Slug, Name string
	Open       bool // it can still be changed: it is not retired
	State      badge
	Explained  string
	Since      *moment
	Reason     string
	Broken     []string
	Checked    string
	BaseURL    string
	CallURL    string
	Delivered  string
	Last       *moment
	Measured   *measuredOnPage // nil: it cannot be read just now

	Done     string
	Once     []shownOnce
	Problems *problemsOnPage
	Checks   []checkOnPage

	Endpoints   []ownedEndpoint
	StrikeWords string
	Strikes     []ownedStrike
	Appeals     []appealOnPage
	Answer      *answerForm // to where the service is

	Secret        string
	SecretAfter   string
	SecretProblem string
	Headers       []headerOnPage

	NoticeWords string
	Webhook     bool
	Letters     []letterOnPage
	Events      []eventOnPage
}

// A shownOnce is a secret that was made just now.
type shownOnce struct{ Title, Does, Value string }

type checkOnPage struct {
	Passed                             bool
	Words, Request, Expected, Received string
}

type ownedEndpoint struct {
	ID, Method, Path, Description, Price, Trials, Timeout, Broken string
	Warnings                                                      []string
}

// An ownedStrike is a strike as its provider may see it, which is not from where exactly its callers came.
type ownedStrike struct {
	strikeOnPage
	Answerable bool
	Form       *answerForm
}

// An answerForm is where a provider says something to a strike, or to where its service is.
type answerForm struct {
	ID, Form, Action, Strike string
	Title, Does              string
	Kept, Problem            string
}

type headerOnPage struct {
	Name string
	At   *moment
}

type letterOnPage struct {
	ID, What string
	At       *moment
	Channels []string
	Failed   bool
}

type eventOnPage struct {
	At             *moment
	To, By, Reason string
}

// A sentOwned is what became of a form on the page of a service. The zero value is that none was sent.
type sentOwned struct {
	slug          string // of a service that was made just now; empty: the one of the route
	done          string
	once          []shownOnce
	checks        []checkView
	problems      *problemsOnPage
	strike, text  string // of an answer that was not taken
	textProblem   string
	after         string // of a secret that was not made
	secretProblem string
}

// Shown of each: the API has all of them.
const (
	lettersShown = 20
	eventsShown  = 20
)

// accountService serves GET /account/services/{slug}.
func (s *Server) accountService(c echo.Context) error {
	return s.writeOwned(c, http.StatusOK, sentOwned{done: ownedDones[c.QueryParam("done")]})
}

// ownedDones are what an address can say that was done: the words are ours.
var ownedDones = map[string]string{
	"edited":   "The listing is changed.",
	"same":     "Everything was so already.",
	"added":    "The endpoint is on the shelf.",
	"endpoint": "The endpoint is changed.",
	"taken":    "The endpoint is retired.",
	"retired":  "The service is retired.",
	"headers":  "The headers are kept. The service is asked with them from now on.",
	"said":     "The operator sees what you said, beside the evidence.",
	"resent":   "The notice is sent again.",
}

// writeOwned shows a service to its provider, and what became of a form that was sent.
func (s *Server) writeOwned(c echo.Context, status int, sent sentOwned) error {
	ctx := c.Request().Context()
	v, err := s.store.Find(ctx, s.db, cmp.Or(sent.slug, c.Param("slug")))
	if err != nil {
		return err
	}
	view, err := s.ownersView(c, &v)
	if err != nil {
		return err
	}
	page := s.ownedPage(c, &v, view)
	page.Done, page.Once, page.Problems = sent.done, sent.once, sent.problems
	for _, check := range sent.checks {
		page.Checks = append(page.Checks, checkOnPageOf(check))
	}
	if page.Checked, err = s.checkWords(ctx, &v); err != nil {
		return err
	}
	tallies, at := s.scores.Of(ctx, v.ID)
	page.record(tallies, !at.IsZero())
	page.Measured = measuredOnPageOf(s.scores.Figures(ctx, v.ID))
	if err := s.addStrikes(ctx, &page, &v, sent); err != nil {
		return err
	}
	if err := s.addLetters(ctx, &page, &v); err != nil {
		return err
	}
	page.SecretAfter, page.SecretProblem = "3600", sent.secretProblem
	if sent.secretProblem != "" {
		page.SecretAfter = plain(sent.after)
	}
	return s.writePage(c, status, accountServiceTemplate, page)
}

// ownedPage is what the listing itself says.
func (s *Server) ownedPage(c echo.Context, v *catalog.Service, view serviceView) ownedPage {
	page := ownedPage{frame: s.accountFrame(c, "service"), Slug: v.Slug, Name: plain(v.Name), Open: v.State != catalog.Retired, State: s.badge(v),
		Explained: s.explainToOwner(v), Since: momentOf(v.StateSince), Reason: plain(v.StateReason), BaseURL: plain(v.BaseURL), CallURL: s.publicURL + "/s/" + v.Slug + "/…",
		Secret: "made, and sent since " + humanTime(v.Secret.Since), Webhook: v.Notices.Webhook != ""}
	for _, p := range v.Problems() {
		page.Broken = append(page.Broken, plain(p))
	}
	switch {
	case v.Secret.Since.IsZero():
		page.Secret = "none yet"
	case !v.Secret.Next.IsZero():
		page.Secret += "; the next one is sent from " + humanTime(v.Secret.Next)
	}
	for _, h := range v.Headers {
		page.Headers = append(page.Headers, headerOnPage{Name: plain(h.Name), At: momentOf(h.SetAt)})
	}
	for i, e := range v.Endpoints {
		shown := ownedEndpoint{ID: e.ID.String(), Method: e.Method, Path: plain(e.Path), Description: plain(e.Description), Trials: count(e.TrialCallsPerDay),
			Timeout: span(e.Timeout), Broken: plain(e.Broken)}
		if price, ok := e.Price(); ok {
			shown.Price = price.USD.String()
		}
		for _, w := range view.Endpoints[i].Warnings {
			shown.Warnings = append(shown.Warnings, plain(upperFirst(w)))
		}
		page.Endpoints = append(page.Endpoints, shown)
	}
	switch n := v.Notices; {
	case n.Email != "" && n.Webhook != "":
		page.NoticeWords = "You are told by mail to " + plain(n.Email) + " and by a webhook at " + plain(n.Webhook) + "."
	case n.Email != "":
		page.NoticeWords = "You are told by mail to " + plain(n.Email) + "."
	case n.Webhook != "":
		page.NoticeWords = "You are told by a webhook at " + plain(n.Webhook) + "."
	default:
		page.NoticeWords = "Nobody is told of strikes and of where this service goes: name a mail address or a webhook."
	}
	return page
}

// explainToOwner says what the state means to the provider; empty where the service is simply for sale.
func (s *Server) explainToOwner(v *catalog.Service) string {
	switch v.State {
	case catalog.Listed:
		if s.dead(v) {
			return "It did not pass its probe when it was looked at last, so it is not sold. It is looked at again by itself; that is no strike."
		}
		if rest := s.rest(v.ID); rest > 0 {
			return "It failed a moment ago and rests: nobody is asked to pay for it meanwhile. It is for sale again by itself."
		}
	case catalog.Delisted, catalog.Held, catalog.Suspended:
		return "Nobody can buy it. Only the operator puts it back: say below what was wrong, or that it is repaired."
	case catalog.Retired:
		return "It is off the shelf for good."
	}
	return ""
}

// checkWords says how the last look at a service went.
func (s *Server) checkWords(ctx context.Context, v *catalog.Service) (string, error) {
	if s.path != nil && s.path.Prober != nil {
		if seen, ok := s.path.Prober.Seen(v); ok {
			if seen.Live {
				return "passed at " + humanTime(seen.At), nil
			}
			return "failed at " + humanTime(seen.At) + ": " + plain(seen.Why), nil
		}
	}
	check, err := delivery.LastCheckOf(ctx, s.db, v.ID)
	switch {
	case err != nil:
		return "", err
	case check.At.IsZero():
		return "not looked at yet", nil
	case !check.SilentSince.IsZero():
		return "failed at " + humanTime(check.At) + ", and since " + humanTime(check.SilentSince), nil
	}
	return "passed at " + humanTime(check.At), nil
}

// record shows the calls of a week.
func (p *ownedPage) record(tallies []delivery.Tally, known bool) {
	if p.Delivered = "no paid calls from outside yet"; !known {
		p.Delivered = "not known just now"
		return
	}
	for _, st := range tallies {
		if st.Window != delivery.ScoreWindow {
			continue
		}
		if share, some := st.Delivered(); some {
			p.Delivered = percent(share) + " of " + plural(st.N(), "paid call", "paid calls") + " from outside in 7 days"
		}
		p.Last = momentOf(st.LastServed)
	}
}

func checkOnPageOf(v checkView) checkOnPage {
	page := checkOnPage{Passed: v.Passed, Request: plain(v.Request), Expected: plain(v.Expected), Received: plain(v.Received),
		Words: "The service passed its probe: it is for sale."}
	if !v.Passed {
		page.Words = "The listing stands, and the service did not pass its probe: it is not sold until it does."
	}
	return page
}

// addStrikes shows the strikes of a service with their evidence, what was said and decided, and where something can be said.
func (s *Server) addStrikes(ctx context.Context, page *ownedPage, v *catalog.Service, sent sentOwned) error {
	read, err := s.path.Recorder.StrikesOf(ctx, v.ID)
	if err != nil {
		return err
	}
	told, err := s.readTold(ctx, v.ID, read.Strikes)
	if err != nil {
		return err
	}
	sum := read.Summary
	page.StrikeWords = fmt.Sprintf("%d of %s count. %s At the next failure: %s.", sum.Open, plural(sum.Policy.Limit, "strike", "strikes"), shelfRules(sum.Policy), sum.Next)
	if len(read.Strikes) == 0 {
		page.StrikeWords = "None. " + shelfRules(sum.Policy)
	}
	action := "/account/services/" + v.Slug + "/appeals"
	for i, st := range slices.Backward(read.Strikes) { // the newest first
		shown := ownedStrike{strikeOnPage: strikeOnPageOf(st), Answerable: !strikes.State(st.State).Closed()}
		shown.Nth = strconv.Itoa(i+1) + " of " + strconv.Itoa(len(read.Strikes))
		shown.add(told, st)
		for j, e := range st.Evidence {
			shown.Evidence[j].Source, shown.Evidence[j].Replica, shown.Evidence[j].Origin = e.Network.String(), "", ""
		}
		shown.Form = &answerForm{ID: "say-" + st.ID.String(), Form: page.Account.Form, Action: action, Strike: st.ID.String(), Title: "Answer this strike …",
			Does: "Say why it is none, or what you repaired. The operator reads it beside the evidence, and answers with a decision."}
		shown.Form.keep(sent)
		page.Strikes = append(page.Strikes, shown)
	}
	for _, a := range told.ofService {
		page.Appeals = append(page.Appeals, appealOnPageOf(a))
	}
	if page.Open {
		page.Answer = &answerForm{ID: "say-service", Form: page.Account.Form, Action: action, Title: "Say something about the service as a whole …",
			Does: "Such as that it belongs on the shelf. The operator answers with a decision."}
		page.Answer.keep(sent)
	}
	return nil
}

// keep keeps what was typed into this form, where it was this one that was sent.
func (f *answerForm) keep(sent sentOwned) {
	if sent.textProblem != "" && sent.strike == f.Strike {
		f.Kept, f.Problem = strings.Join(linesOf(sent.text), "\n"), sent.textProblem
	}
}

// letterWords say what a provider was told.
var letterWords = map[letter.Kind]string{
	letter.StrikeOpened: "A strike was opened", letter.StrikeVoided: "A strike was voided", letter.StrikeUpheld: "A strike was upheld",
	letter.ServiceDelisted: "The service was delisted", letter.ServiceHeld: "The service was held for a review", letter.ServiceSuspended: "The service was suspended",
	letter.ServiceRelisted: "The service was put back on the shelf", letter.ServiceUpheld: "The service stays as it is",
	letter.PayoutPaid: "You were paid", letter.PayoutParked: "A payout waits", letter.PayoutAddress: "You are to be paid to another address",
}

// addLetters shows what the provider was told, and how the service came to where it is.
func (s *Server) addLetters(ctx context.Context, page *ownedPage, v *catalog.Service) error {
	letters, err := letter.Store{}.List(ctx, s.db, v.ID, uuid.UUID{}, lettersShown)
	if err != nil {
		return err
	}
	for _, l := range letters {
		shown := letterOnPage{ID: l.ID.String(), At: momentOf(l.At), What: letterWords[l.Kind]}
		if shown.What == "" {
			shown.What = string(l.Kind)
		}
		for _, x := range s.letterViewOf(l).Channels {
			shown.Channels = append(shown.Channels, sendingWords(x))
			shown.Failed = shown.Failed || x.State != "sent" && x.Attempts > 0
		}
		page.Letters = append(page.Letters, shown)
	}
	events, err := s.store.Events(ctx, s.db, v.ID)
	if err != nil {
		return err
	}
	for _, e := range events[:min(len(events), eventsShown)] {
		page.Events = append(page.Events, eventOnPage{At: momentOf(e.At), To: stateWord(e.To), By: plain(e.By.Name), Reason: plain(e.Reason)})
	}
	return nil
}

func sendingWords(x sendingView) string {
	by := "By mail: "
	if x.Channel == letter.Webhook {
		by = "By webhook: "
	}
	tried := plural(x.Attempts, "attempt", "attempts")
	said := ""
	switch {
	case x.Error != "":
		said = ", the last: " + plain(x.Error)
	case x.Status != 0:
		said = ", the last answered with status " + strconv.Itoa(x.Status)
	}
	switch x.State {
	case "sent":
		return by + "sent, after " + tried + "."
	case "given_up":
		return by + "given up after " + tried + said + "."
	}
	return by + "waits, after " + tried + said + "."
}
