package server

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"market/docs"
	"market/internal/call"
	"market/internal/delivery"
)

// A ruleView is one row of the table of everything that can end a call or refuse one.
type ruleView struct {
	Outcome    call.Outcome `json:"outcome"`
	Reason     call.Reason  `json:"reason"`
	Party      call.Party   `json:"party"`
	CallerPays string       `json:"caller_pays"` // yes, no or refunded
	Strikes    string       `json:"strikes"`     // none, increment or clear
	Cooldown   string       `json:"cooldown"`    // none, starts, or starts with what a service may ask for
	Status     string       `json:"status"`
	Meaning    string       `json:"meaning"`
}

// An answerView is a reason that ends no call.
type answerView struct {
	Reason  call.Reason `json:"reason"`
	Party   call.Party  `json:"party"`
	Status  string      `json:"status"`
	Meaning string      `json:"meaning"`
}

// rules returns the tables. Words that explain a reason are those of docs/outcomes.md.
func (s *Server) ruleViews() (rules []ruleView, answers []answerView) {
	for _, r := range delivery.Rules(s.cooldown) {
		rules = append(rules, ruleView{Outcome: r.Outcome, Reason: r.Reason, Party: r.Party, CallerPays: string(r.Pays), Strikes: r.Strikes,
			Cooldown: restText(r), Status: statusText(r.Reason), Meaning: meanings[r.Reason]})
	}
	for _, reason := range call.AnswerReasons() {
		answers = append(answers, answerView{Reason: reason, Party: call.PartyOf(reason), Status: statusText(reason), Meaning: meanings[reason]})
	}
	return rules, answers
}

func restText(r delivery.Rule) string {
	switch {
	case r.RestMax == 0:
		return "none"
	case r.RestMax > r.Rest:
		return fmt.Sprintf("starts; `Retry-After` up to %.0f min", r.RestMax.Minutes())
	}
	return "starts"
}

func statusText(r call.Reason) string {
	switch r {
	case call.OK, call.CallerLeft:
		return "the service's"
	case call.RejectedByService:
		return "the service's 4xx"
	}
	return strconv.Itoa(statusOf[r])
}

var (
	meaningLine = regexp.MustCompile("(?m)^- `([a-z0-9_]+)`: (.+(?:\n  .+)*)$")
	seeAlso     = regexp.MustCompile(` See (?:below|\[[^\]]*\]\([^)]*\))\.`)
	markdown    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// meanings says what each reason means, in one or a few sentences with code in backquotes, and without links.
var meanings = func() map[call.Reason]string {
	all := map[call.Reason]string{}
	for _, match := range meaningLine.FindAllStringSubmatch(docs.Outcomes, -1) {
		text := seeAlso.ReplaceAllString(strings.Join(strings.Fields(match[2]), " "), "")
		all[call.Reason(match[1])] = upperFirst(markdown.ReplaceAllString(text, "$1"))
	}
	return all
}()

// rulesTable serves GET /api/v1/rules, and to a browser its page at /rules.
func (s *Server) rulesTable(c echo.Context) error {
	c.Response().Header().Set("Vary", "Accept")
	rules, answers := s.ruleViews()
	if !strings.HasPrefix(c.Path(), "/api/") && wantsPage(c.Request()) {
		return s.writePage(c, http.StatusOK, rulesTemplate, s.rulesPage(rules, answers))
	}
	return s.writeJSON(c, http.StatusOK, typeJSON, map[string]any{"outcomes": rules, "answers": answers})
}

// A rulesPage shows the tables, by outcome.
type rulesPage struct {
	frame
	Strikes string
	Groups  []ruleGroup
}

type ruleGroup struct {
	ID, Name, Meaning string
	Rules             []ruleOnPage
}

type ruleOnPage struct {
	Reason                                       call.Reason
	Party, CallerPays, Strikes, Cooldown, Status string
	Explained                                    []phrase
}

// A phrase is a piece of a sentence, in words or in code.
type phrase struct {
	Text string
	Code bool
}

func phrases(text string) (out []phrase) {
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			out = append(out, phrase{part, i%2 == 1})
		}
	}
	return out
}

// outcomeNames are the groups of the page, in its order.
var outcomeNames = []struct {
	outcome       call.Outcome
	name, meaning string
}{
	{call.Served, "Served", "The service answered as its listing promises. The caller pays."},
	{call.Refused, "Refused", "Turned down: by this market before any money moved, or by the service with a 4xx. The caller does not pay."},
	{call.CooldownRefused, "Refused in a cooldown", "Paid, and not asked, because the service was resting. The caller does not pay, and nothing counts."},
	{call.Failed, "Failed", "Tried, and not delivered. The caller does not pay."},
}

func (s *Server) rulesPage(rules []ruleView, answers []answerView) rulesPage {
	page := rulesPage{frame: s.frame(), Strikes: "A strike is one incident of the service's own doing; a served call clears them."}
	page.JSON = "/api/v1/rules"
	if s.path != nil {
		policy := s.path.Recorder.Policy()
		page.Strikes += fmt.Sprintf(" %d open strikes within %s take a service off the shelf. A rest is %s unless the service asks for more.",
			policy.Limit, span(policy.Window), span(s.cooldown))
	}
	for _, o := range outcomeNames {
		group := ruleGroup{ID: string(o.outcome), Name: o.name, Meaning: o.meaning}
		for _, r := range rules {
			if r.Outcome == o.outcome {
				group.Rules = append(group.Rules, ruleOnPage{r.Reason, string(r.Party), r.CallerPays,
					map[string]string{"none": "no", "increment": "yes, one more", "clear": "clears them"}[r.Strikes],
					strings.ReplaceAll(map[bool]string{true: "no", false: r.Cooldown}[r.Cooldown == "none"], "`", ""), r.Status, phrases(r.Meaning)})
			}
		}
		page.Groups = append(page.Groups, group)
	}
	others := ruleGroup{ID: "answers", Name: "Answers that end no call", Meaning: "They say why a request was not taken as a call, or that one is not over."}
	for _, a := range answers {
		others.Rules = append(others.Rules, ruleOnPage{Reason: a.Reason, Party: string(a.Party), Status: a.Status, Explained: phrases(a.Meaning)})
	}
	page.Groups = append(page.Groups, others)
	return page
}
