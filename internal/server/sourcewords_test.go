package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"market/internal/notify"
	"market/internal/source"
)

// noon is a day of the tests, at which the sources stand.
var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func hosted() source.Standing {
	return source.Standing{Source: source.Source{Name: "facilitator/hosted", Kind: source.KindFacilitator, Metered: true, RunsOut: source.Prepaid},
		Day: noon.Truncate(24 * time.Hour), At: noon, Used: 4200, Cap: 15_000, Busiest: 5000, BusiestDay: noon.AddDate(0, 0, -2).Truncate(24 * time.Hour)}
}

// stoppedBy is a source that stopped us at 11:20.
func stoppedBy(why source.Why, said string) source.Standing {
	st := hosted()
	st.Why, st.Said = why, said
	st.ExhaustedAt = noon.Add(-40 * time.Minute)
	st.OutSince, st.RefusedAt, st.RetryAt = st.ExhaustedAt, st.ExhaustedAt, noon.Add(20*time.Minute)
	return st
}

func weStopped(st source.Standing) source.Standing {
	st.Used, st.Denied, st.GuardedAt = 15_000, 700, noon.Add(-time.Hour)
	return st
}

func TestReasonsOf_SayInOneSentenceWhoStoppedAndWhatComesNext(t *testing.T) {
	t.Parallel()
	tested := stoppedBy(source.Exhausted, "HTTP 402")
	tested.RetryAt = noon
	longer := stoppedBy(source.Exhausted, "HTTP 402")
	longer.OutSince = noon.AddDate(0, 0, -3) // tested once an hour since
	daily, rate := stoppedBy(source.Exhausted, ""), stoppedBy(source.Exhausted, "HTTP 429")
	daily.Source.RunsOut, rate.Source.RunsOut = source.Daily, source.Rate
	fresh := weStopped(hosted())
	fresh.Busiest = 0
	begun := weStopped(hosted())
	begun.Used = 14_400
	full := hosted()
	full.Used = full.Cap
	mail := weStopped(hosted())
	mail.Source = source.Source{Name: source.Mail, Kind: source.KindMail, Metered: true, RunsOut: source.Rate}
	paced := hosted()
	paced.NextRequestAt = noon.Add(time.Microsecond)
	over := hosted()
	over.NextRequestAt = noon
	for name, tt := range map[string]struct {
		st    source.Standing
		state sourceState
		want  []string
	}{
		"a source that works": {hosted(), sourceOK, nil},
		"out of credit": {stoppedBy(source.Exhausted, "HTTP 402"), sourceExhausted,
			[]string{"They stopped us at 2026-11-30 11:20:00 UTC: out of credit, by HTTP 402. We ask again at 2026-11-30 12:20:00 UTC."}},
		"for three days": {longer, sourceExhausted,
			[]string{"They stopped us at 2026-11-27 12:00:00 UTC: out of credit, by HTTP 402. We ask again at 2026-11-30 12:20:00 UTC."}},
		"at the end of its window": {tested, sourceExhausted, []string{"They stopped us at 2026-11-30 11:20:00 UTC: out of credit, by HTTP 402. The next request tests it."}},
		"no quota":                 {daily, sourceExhausted, []string{"They stopped us at 2026-11-30 11:20:00 UTC: the quota of the day is used up. We ask again at 2026-11-30 12:20:00 UTC."}},
		"too many requests": {rate, sourceExhausted,
			[]string{"They stopped us at 2026-11-30 11:20:00 UTC: they take no more requests for now, by HTTP 429. We ask again at 2026-11-30 12:20:00 UTC."}},
		"our credential": {stoppedBy(source.Denied, "HTTP 401"), sourceDenied,
			[]string{"They have not accepted our credential since 2026-11-30 11:20:00 UTC, by HTTP 401. We ask again at 2026-11-30 12:20:00 UTC. Look at the credential that is configured."}},
		"our guard": {weStopped(hosted()), sourceGuarded,
			[]string{"We stopped at 15,000: normal is 5,000 a day. More is let through from 2026-12-01 00:00:00 UTC, or raise guard.floor."}},
		"our guard, while the larger plans are let in": {begun, sourceGuarded,
			[]string{"At 14,400 of 15,000 we refuse new payments, those for services of the smallest plan first: normal is 5,000 a day. More is let through from 2026-12-01 00:00:00 UTC, or raise guard.floor."}},
		"our guard on the first day": {fresh, sourceGuarded,
			[]string{"We stopped at 15,000: there is no day yet that says what is normal. More is let through from 2026-12-01 00:00:00 UTC, or raise guard.floor."}},
		"the cap is reached, and nobody was turned away yet": {full, sourceGuarded,
			[]string{"We stopped at 15,000: normal is 5,000 a day. More is let through from 2026-12-01 00:00:00 UTC, or raise guard.floor."}},
		"the guard of mail, which nobody can raise": {mail, sourceGuarded,
			[]string{"We stopped at 15,000: normal is 5,000 a day. More goes out from 2026-12-01 00:00:00 UTC."}},
		"a pause":            {paced, sourcePaced, []string{"They asked us to wait until 2026-11-30 12:00:00 UTC. That is no outage."}},
		"a pause that ended": {over, sourceOK, nil},
		"both at once": {weStopped(stoppedBy(source.Exhausted, "HTTP 402")), sourceExhausted, []string{
			"They stopped us at 2026-11-30 11:20:00 UTC: out of credit, by HTTP 402. We ask again at 2026-11-30 12:20:00 UTC.",
			"We stopped at 15,000: normal is 5,000 a day. More is let through from 2026-12-01 00:00:00 UTC, or raise guard.floor."}},
	} {
		reasons := reasonsOf(tt.st)
		var got []string
		for _, r := range reasons {
			got = append(got, r.Words)
		}
		if strings.Join(got, "\n") != strings.Join(tt.want, "\n") || stateOf(reasons) != tt.state {
			t.Errorf("%s is %s:\n%s\nwant %s:\n%s", name, stateOf(reasons), strings.Join(got, "\n"), tt.state, strings.Join(tt.want, "\n"))
		}
	}
}

// What a reader of the document sees in its examples is what the server says.
func TestReasonsOf_AreWhatTheExamplesOfTheDocumentSay(t *testing.T) {
	t.Parallel()
	answer := httptest.NewRecorder()
	newTestServer().Public().Handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/openapi.json", nil))
	n := 0
	for _, m := range regexp.MustCompile(`"since": *"([^"]+)", *"until": *("[^"]+"|null), *"words": *"([^"]+)"`).FindAllStringSubmatch(strings.Join(strings.Fields(answer.Body.String()), " "), -1) {
		since, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			t.Fatal(err)
		}
		st := stoppedBy(source.Exhausted, "HTTP 402")
		st.OutSince, st.At, st.RetryAt = since, since, since // nothing is left of the window, so the next request tests it
		if m[2] != "null" {
			if st.RetryAt, err = time.Parse(time.RFC3339Nano, strings.Trim(m[2], `"`)); err != nil {
				t.Fatal(err)
			}
		}
		if got := reasonsOf(st)[0].Words; got != m[3] {
			t.Errorf("the document says %q, the server %q", m[3], got)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d examples, want 2", n)
	}
}

// Whatever a source can be has words on the page, and the state of a pause is no outage.
func TestSources_HaveWordsForEverythingThatTheyCanBe(t *testing.T) {
	t.Parallel()
	for _, state := range sourceStates {
		if sourceBadges[state] == (badge{}) {
			t.Errorf("%s has no badge", state)
		}
		if want := state != sourceOK && state != sourcePaced; state.out() != want {
			t.Errorf("%s is out: %v", state, state.out())
		}
	}
	for _, kind := range []source.Kind{source.KindFacilitator, source.KindRPC, source.KindMail, source.KindWebhook} {
		if kindWords[kind] == "" {
			t.Errorf("%s has no words", kind)
		}
	}
	for _, out := range []source.RunsOut{source.Rate, source.Daily, source.Prepaid} {
		if runsOutWords[out] == "" || ranOut[out] == "" {
			t.Errorf("%s has no words", out)
		}
	}
}

func TestSourceView_CountsWhatWasDoneAgainstWhatWasAsked(t *testing.T) {
	t.Parallel()
	st := weStopped(hosted())
	st.Source.UnitUSD, st.Source.BudgetURL = decimal.RequireFromString("0.0015"), "https://facilitator.example/billing"
	read := sourcesRead{standings: []source.Standing{st}, waiting: map[string]int{"facilitator/hosted": 3},
		notices: map[string]notify.Told{"facilitator/hosted": {Kind: "guard_reached", RaisedAt: noon, Channel: "mail", SentAt: &noon}}}
	v := read.viewOf(st)
	if v.Used != 15_000 || v.Denied != 700 || v.Asked != 15_700 || *v.Cap != 15_000 || *v.BusiestDay != "2026-11-28" || *v.CostToday != "22.5" || v.Waiting != 3 ||
		v.Notice == nil || v.Notice.RaisedAt != "2026-11-30T12:00:00.000000Z" || *v.Notice.Channel != "mail" || *v.Notice.SentAt != v.Notice.RaisedAt || v.ExhaustedAt != nil {
		t.Errorf("%+v", v)
	}
	bare := hosted()
	bare.Cap, bare.BusiestDay = 0, time.Time{}
	v = (sourcesRead{}).viewOf(bare)
	if v.Cap != nil || v.CostToday != nil || v.UnitUSD != nil || v.BudgetURL != nil || v.BusiestDay != nil || v.Notice != nil || v.Reasons == nil {
		t.Errorf("what is not known is there all the same: %+v", v)
	}
	d := openDocument(t)
	for what, view := range map[string]sourceView{"whole": read.viewOf(st), "bare": v, "out": read.viewOf(stoppedBy(source.Denied, "HTTP 401"))} {
		if err := d.fits("Source", view); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := d.fits("SourceTried", sourceTried{Source: view, At: timeJSON(noon), By: "admin token", Reason: "why", Effect: triedWords(view)}); err != nil {
			t.Errorf("%s tried: %v", what, err)
		}
	}
}

// What was used, the cap and the busiest day are drawn inside of the bar, and said in words.
func TestUseBar_FitsAndSaysTheSameInWords(t *testing.T) {
	t.Parallel()
	nearly, over, busier := hosted(), weStopped(hosted()), hosted()
	nearly.Used, over.Used, busier.Busiest = 13_500, 15_001, 30_000
	for name, tt := range map[string]struct {
		st   source.Standing
		want useBar
	}{
		"a quiet day":             {hosted(), useBar{Used: 280, Cap: 996, Busiest: 333, Busy: true, Tone: "good", Says: "4,200 of 15,000 units of today are used (28 %). The mark is the busiest of the seven days before: 5,000."}},
		"under a tenth is left":   {nearly, useBar{Used: 900, Cap: 996, Busiest: 333, Busy: true, Tone: "wait", Says: "13,500 of 15,000 units of today are used (90 %). The mark is the busiest of the seven days before: 5,000."}},
		"over the cap":            {over, useBar{Used: 1000, Cap: 996, Busiest: 333, Capped: true, Busy: true, Tone: "bad", Says: "15,001 of 15,000 units of today are used (100 %). The mark is the busiest of the seven days before: 5,000."}},
		"a cap below its busiest": {busier, useBar{Used: 140, Cap: 500, Busiest: 996, Capped: true, Busy: true, Tone: "good", Says: "4,200 of 15,000 units of today are used (28 %). The mark is the busiest of the seven days before: 30,000."}},
	} {
		if got := useBarOf(tt.st); got == nil || *got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	uncapped := hosted()
	uncapped.Cap = 0
	if got := useBarOf(uncapped); got != nil {
		t.Errorf("where there is no cap: %+v", got)
	}
}

func TestMoneyLink_LeadsToTheWebOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"https://x.example/pay?a=b": "https://x.example/pay?a=b", "http://x.example": "http://x.example", "javascript:alert(1)": "",
		"//x.example": "", "https://me:pw@x.example": "", "/admin": "", "": "", "data:text/html,x": ""} {
		if got := moneyLink(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Callers read what is out by its kind and its network. Names, hosts and errors are the operator's.
func TestPublicWhy_NamesNobody(t *testing.T) {
	t.Parallel()
	limit := func(name string, why source.Why) error {
		return fmt.Errorf("inside: %w", &source.LimitError{Source: name, Why: why, Until: noon})
	}
	for want, err := range map[string]error{
		"who settles payments there takes no more requests from us for now. It is asked again at 2026-11-30 12:00:00 UTC.":       limit("facilitator/secretive", source.Exhausted),
		"who settles payments there has reached the limit of the day that we set. It is asked again at 2026-11-30 12:00:00 UTC.": limit("facilitator/secretive", source.Guarded),
		"the node of the chain does not let us in for now. It is asked again at 2026-11-30 12:00:00 UTC.":                        limit("rpc/eip155:1/secretive.example", source.Denied),
		"what payments need there asked us to wait for a moment. It is asked again at 2026-11-30 12:00:00 UTC.":                  limit("secretive", source.Paced),
		"payments cannot be settled there for now.": errors.New("secretive"),
	} {
		if got := publicWhy(err); got != want || strings.Contains(got, "secretive") {
			t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
		}
	}
}

// The page says in words who stopped, offers a try where one can help, and holds nothing that a stranger wrote and that runs. B145 in what a source said.
func TestSourcesPage_ShowsWhatHoldsAndOffersATryWhereItHelps(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	f := s.frame()
	f.Admin = &adminBar{Form: "form", At: "sources", Ends: momentOf(noon)}
	out := stoppedBy(source.Exhausted, strangers)
	out.Source.BudgetURL = "javascript:alert(1)"
	hostile := weStopped(hosted())
	hostile.Source.Name, hostile.Source.BudgetURL = "rpc/eip155:1/x.example", "https://x.example/?a=\"><script>"
	page := sourcesPage{frame: f, Says: "2 of 2 sources are out.", Out: true, Rows: []sourceOnPage{(sourcesRead{}).onPage(out), (sourcesRead{}).onPage(hostile)}}
	text := render(t, adminSourcesTemplate, page)
	for _, bad := range []string{"<script", ` onfocus="`, "\u202e", `"javascript:`, "style="} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q:\n%s", bad, text)
		}
	}
	for _, want := range []string{"They stopped us at", "We stopped at 15,000", `role="img"`, `aria-label="15,000 of 15,000 units`, `rel="noopener noreferrer"`, "alert(1)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "I have topped it up, try now"); n != 1 {
		t.Errorf("%d buttons, want one: money does not lift our own guard", n)
	}
}

// An admin reads what is out by its name, and what that stops.
func TestOutNow_NamesTheSourceAndTheNetwork(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	lines := s.outNow(sourcesRead{standings: []source.Standing{weStopped(stoppedBy(source.Exhausted, "HTTP 402")), hosted()}})
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "facilitator/hosted: They stopped us at 2026-11-30 11:20:00 UTC: out of credit, by HTTP 402.") || !strings.Contains(lines[0], " We stopped at 15,000") {
		t.Errorf("%q", lines)
	}
}
