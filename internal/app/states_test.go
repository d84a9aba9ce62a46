package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/payment"
	"market/web"
)

// events returns "from>to cause: reason by" of each change of a service's state, as somebody with these headers sees it.
func events(t *testing.T, w *apptest.World, slug string, header http.Header) (out []string) {
	t.Helper()
	a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/" + slug, Header: header}, "")
	list, _ := a.JSON["events"].([]any)
	for _, item := range list {
		e, _ := item.(map[string]any)
		text := func(name string) string { s, _ := e[name].(string); return s }
		out = append(out, text("from")+">"+text("to")+" "+text("cause")+": "+text("reason")+" by "+text("by"))
	}
	return out
}

var adminHeader = http.Header{"Authorization": {"Bearer " + apptest.AdminToken}}

// What an admin takes off the shelf takes no money and no work. It is not gone, so who asks is told when to ask again; the call that is under way
// ends as it would have; and everybody sees that it happened, and when.
func TestStates_ASuspendedServiceTakesNoMoneyAndNoWork(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	working, goOn := make(chan struct{}), make(chan struct{})
	s := w.List(t, "paused", func(rw http.ResponseWriter, r *http.Request) {
		close(working)
		<-goOn
		apptest.Works(rw, r)
	}, map[string]any{"trial_calls_per_day": 5})
	terms := w.Challenge(t, apptest.Ask(s.URL))
	payer := w.Payer(t, 10*apptest.PriceUnits)
	underWay := make(chan apptest.Answer, 1)
	go func() { underWay <- w.Send(t, apptest.Ask(s.URL), w.Sign(t, payer, terms)) }()
	<-working

	if status, problem := w.Admin(t, http.MethodPost, "/api/v1/admin/services/paused/suspend", map[string]any{}); status != http.StatusUnprocessableEntity ||
		!slices.Equal(fieldsOf(problem), []string{"/reason"}) {
		t.Errorf("without a reason: %d %v", status, problem)
	}
	suspend := map[string]any{"reason": "it sells other people's data"}
	if status, view := w.Admin(t, http.MethodPost, "/api/v1/admin/services/paused/suspend", suspend); status != http.StatusOK || view["state"] != "suspended" {
		t.Fatalf("suspend: %d %v", status, view)
	}
	for name, a := range map[string]apptest.Answer{
		"unpaid":          w.Send(t, apptest.Ask(s.URL), ""),
		"a trial":         w.Send(t, apptest.Ask(s.URL).Trial(), ""),
		"a good payment":  w.Pay(t, payer, terms, apptest.Ask(s.URL)),
		"a wrong payment": w.Send(t, apptest.Ask(s.URL), "!!!"),
	} {
		expect(t, name, a, http.StatusServiceUnavailable, "not_listed")
		if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || wait < 60 || a.Header.Get("PAYMENT-REQUIRED") != "" || a.JSON["charged"] != false {
			t.Errorf("%s: Retry-After %q, terms %q, charged %v", name, a.Header.Get("Retry-After"), a.Header.Get("PAYMENT-REQUIRED"), a.JSON["charged"])
		}
		if strings.Contains(string(a.Body), "other people") || !strings.Contains(string(a.Body), "by the operator") {
			t.Errorf("%s: a caller is told %s", name, a.Body)
		}
	}
	close(goOn)
	if a := <-underWay; a.Status != http.StatusOK || a.Outcome() != "served" {
		t.Errorf("the call that was under way: %d %s", a.Status, a.Body)
	}
	if _, list := w.Admin(t, http.MethodGet, "/api/v1/services", nil); len(list["items"].([]any)) != 0 { //nolint:forcetypeassert // of our own API
		t.Errorf("it is still on the list: %v", list)
	}
	if got := events(t, w, "paused", nil); !slices.Equal(got, []string{"listed>suspended suspension: suspended by the operator by ", ">listed created: created by "}) {
		t.Errorf("everybody sees %q", got)
	}
	if got := events(t, w, "paused", adminHeader); !slices.Equal(got, []string{"listed>suspended suspension: it sells other people's data by admin token",
		">listed created: created by admin token"}) {
		t.Errorf("admins see %q", got)
	}
	status, problem := w.Admin(t, http.MethodPost, "/api/v1/admin/services/paused/suspend", suspend)
	if status != http.StatusConflict {
		t.Errorf("suspend again: %d %v", status, problem)
	}
	if status, view := w.Admin(t, http.MethodPost, "/api/v1/admin/services/paused/relist", map[string]any{"reason": "it has a contract"}); status != http.StatusOK ||
		view["state"] != "listed" || view["state_reason"] != "it has a contract" {
		t.Errorf("relist: %d %v", status, view)
	}
	s.Do(apptest.Works)
	expect(t, "after all", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusOK, "")
	wantMoved(t, w, 2, 0)
}

// What left the shelf for its strikes is not suspended instead, and comes back by a review of them.
func TestStates_ADelistedServiceIsNotSuspended(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_STRIKE_LIMIT=1")
	s := w.List(t, "struck", apptest.Fails, nil)
	expect(t, "a failure", w.Pay(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)), apptest.Ask(s.URL)), http.StatusBadGateway, "upstream_5xx")
	status, problem := w.Admin(t, http.MethodPost, "/api/v1/admin/services/struck/suspend", why)
	if detail, _ := problem["detail"].(string); status != http.StatusConflict || problem["code"] != "conflict" || !strings.Contains(detail, "delisted already, by recorder") {
		t.Errorf("suspend: %d %v", status, problem)
	}
	if status, problem := w.Admin(t, http.MethodPost, "/api/v1/admin/services/nobody/suspend", why); status != http.StatusNotFound {
		t.Errorf("nobody: %d %v", status, problem)
	}
	want := []string{"listed>delisted strikes: 1 strikes within 24 h by ", ">listed created: created by "}
	if got := events(t, w, "struck", nil); !slices.Equal(got, want) {
		t.Errorf("everybody sees %q, want %q", got, want)
	}
	_, list := w.Admin(t, http.MethodGet, "/api/v1/admin/services?state=delisted", nil)
	if got := first(list["items"]); got["slug"] != "struck" || got["state_by"] != "recorder" || got["state_cause"] != "strikes" {
		t.Errorf("the list of delisted services begins with %v", got)
	}
}

// B134: a listing that was retired long ago is still said to be gone, and why.
func TestStates_WhatWasRetiredLongAgoIsStillSaidToBeGone(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "old", apptest.Works, map[string]any{"trial_calls_per_day": 1})
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))
	if status, _ := w.Admin(t, http.MethodDelete, "/api/v1/services/old", nil); status != http.StatusNoContent {
		t.Fatalf("retire: %d", status)
	}
	w.Shift(t, 40*24*time.Hour)
	other := w.Replica(t) // it never had the service in memory
	for name, a := range map[string]apptest.Answer{
		"unpaid":         w.Send(t, other.At(t, apptest.Ask(s.URL)), ""),
		"a good payment": w.Send(t, other.At(t, apptest.Ask(s.URL)), header),
		"a trial":        w.Send(t, other.At(t, apptest.Ask(s.URL).Trial()), ""),
		"another path":   w.Send(t, other.At(t, apptest.Ask(strings.Replace(s.URL, "/work", "/x", 1))), ""),
	} {
		expect(t, name, a, http.StatusGone, "not_listed")
		if detail, _ := a.JSON["detail"].(string); !strings.Contains(detail, "retired by an admin") {
			t.Errorf("%s: %s", name, detail)
		}
	}
	a := w.Send(t, other.At(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/old"}), "")
	if a.Status != http.StatusOK || a.JSON["state"] != "retired" {
		t.Errorf("the service itself: %d %s", a.Status, a.Body)
	}
	expect(t, "nobody's name", w.Send(t, other.At(t, apptest.Ask(w.URL+"/s/never/work")), ""), http.StatusNotFound, "not_found")
}

// B150: another base URL gets no work, and nobody's money, before it answered the probe, however alive the one before was a moment ago.
func TestEdits_AnotherBaseURLGetsNoWorkBeforeItIsSeenToLive(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t, "MARKET_PROBE_TTL=10m")
	s := w.List(t, "moved", apptest.Works, nil)
	payer := w.Payer(t, 10*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(s.URL))
	expect(t, "at the old address", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusOK, "")

	var alive atomic.Bool
	var asked atomic.Int64
	next := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case !alive.Load():
			rw.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/v2/work":
			asked.Add(1)
			apptest.Works(rw, r)
		}
	}))
	t.Cleanup(next.Close)
	status, view := w.Admin(t, http.MethodPatch, "/api/v1/services/moved", map[string]any{"base_url": next.URL})
	if status != http.StatusOK || view["base_url"] != next.URL || view["base_url_since"] == view["created_at"] || view["checked"] != nil {
		t.Fatalf("edit: %d %v", status, view)
	}
	expect(t, "at an address that is not alive", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusServiceUnavailable, "not_live")
	if _, view := w.Admin(t, http.MethodGet, "/api/v1/services/moved", nil); view["checked"].(map[string]any)["live"] != false { //nolint:forcetypeassert // of our own API
		t.Errorf("the owner sees the last probe as %v", view["checked"])
	}
	alive.Store(true)
	if status, view = w.Admin(t, http.MethodPatch, "/api/v1/services/moved", map[string]any{"base_url": next.URL + "/v2", "name": "Moved"}); status != http.StatusOK {
		t.Fatalf("edit: %d %v", status, view)
	}
	expect(t, "at an address that is alive", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusOK, "")
	if s.Asked() != 1 || asked.Load() != 1 {
		t.Errorf("the old address was asked %d times and the new one %d, want 1 and 1", s.Asked(), asked.Load())
	}
	wantMoved(t, w, 2, 0)
	_, list := w.Admin(t, http.MethodGet, "/api/v1/services/moved/revisions?limit=1", nil)
	got := first(list["items"])
	before, _ := got["before"].(map[string]any)
	if got["by"] != "admin token" || before["base_url"] != next.URL || before["name"] != "moved" || len(before) != 2 || list["next_cursor"] == "" {
		t.Errorf("the last revision is %v", list)
	}
}

// An edit rests on the revision that its editor read, where the editor says so.
func TestEdits_OfTwoEditorsTheSecondIsToldByTheETag(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	w.List(t, "edited", apptest.Works, nil)
	at := w.URL + "/api/v1/services/edited"
	read := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: at}, "")
	tag, endpoint := read.Header.Get("ETag"), first(read.JSON["endpoints"])["id"].(string) //nolint:forcetypeassert // of our own API
	edit := func(url, body, match string) apptest.Answer {
		h := adminHeader.Clone()
		if match != "" {
			h.Set("If-Match", match)
		}
		return w.Send(t, apptest.Asking{Method: http.MethodPatch, URL: url, Body: body, Header: h}, "")
	}
	one := edit(at, `{"name":"One"}`, tag)
	if one.Status != http.StatusOK || one.Header.Get("ETag") != `"2"` || one.JSON["revision"] != 2.0 {
		t.Errorf("the first: %d, ETag %s, %s", one.Status, one.Header.Get("ETag"), one.Body)
	}
	for name, match := range map[string]string{"the same tag": tag, "a weak tag": `W/"2"`, "no tag of ours": `"x"`, "a bare number": "2", "nothing": `""`} {
		expect(t, name, edit(at+"/endpoints/"+endpoint, `{"price_usd":"0.9"}`, match), http.StatusPreconditionFailed, "revision_changed")
	}
	for name, match := range map[string]string{"any": "*", "one of several": `"1", "2", "3", "4"`, "none": ""} {
		a := edit(at+"/endpoints/"+endpoint, `{"description":"`+name+`"}`, match)
		if a.Status != http.StatusOK || a.JSON["description"] != name {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	if a := edit(at+"/endpoints/"+endpoint, `{"path":"/other","timeout_ms":1}`, ""); !slices.Equal(fieldsOf(a.JSON), []string{"/path", "/timeout_ms"}) {
		t.Errorf("what cannot be changed: %d %s", a.Status, a.Body)
	}
	warned := edit(at+"/endpoints/"+endpoint, `{"price_usd":"2"}`, "")
	if list, _ := warned.JSON["warnings"].([]any); len(list) == 0 || !strings.Contains(list[0].(string), "$1") { //nolint:forcetypeassert // of our own API
		t.Errorf("a price that stock clients refuse: %s", warned.Body)
	}
	expect(t, "an endpoint that is no id", edit(at+"/endpoints/x", `{}`, ""), http.StatusNotFound, "not_found")
}

// Every change of a listing rests on the revision that it names, and its answer names the one that stands.
func TestEdits_EveryChangeRestsOnTheRevisionThatItNames(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	w.List(t, "edited", apptest.Works, nil)
	at := "/api/v1/services/edited"
	_, view := w.Admin(t, http.MethodGet, at, nil)
	id, _ := first(view["endpoints"])["id"].(string)
	for _, step := range []struct{ method, path, body, match, tag string }{
		{http.MethodPost, at + "/endpoints", `{"method":"GET","path":"/more","price_usd":"0.002"}`, `"1"`, `"2"`},
		{http.MethodDelete, at + "/endpoints/" + id, ``, `"2"`, `"3"`},
		{http.MethodPost, at + "/secret", ``, `"3"`, `"4"`},
		{http.MethodPost, "/api/v1/admin/services/edited/suspend", `{"reason":"a look"}`, `"4"`, `"4"`},
		{http.MethodPost, "/api/v1/admin/services/edited/relist", `{"reason":"seen"}`, `"4"`, `"4"`},
		{http.MethodDelete, at, ``, `"4"`, `"4"`},
	} {
		send := func(match string) apptest.Answer {
			h := adminHeader.Clone()
			h.Set("If-Match", match)
			return w.Send(t, apptest.Asking{Method: step.method, URL: w.URL + step.path, Body: step.body, Header: h}, "")
		}
		name := step.method + " " + step.path
		expect(t, name, send(`"9"`), http.StatusPreconditionFailed, "revision_changed")
		if a := send(step.match); a.Status >= 300 || a.Header.Get("ETag") != step.tag {
			t.Errorf("%s: %d, ETag %s, %s; want %s", name, a.Status, a.Header.Get("ETag"), a.Body, step.tag)
		}
	}
}

// A quote stands for as long as its price, whatever else of the listing changes meanwhile: also where its payer echoes all of it.
func TestEdits_BreakNoQuoteThatIsOut(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "quoted", apptest.Works, map[string]any{"timeout_ms": 120_000, "output_example": map[string]any{"ok": 1}})
	payer, ask := w.Payer(t, 10*apptest.PriceUnits), apptest.Ask(s.URL)
	said := apptest.Decode(t, w.Send(t, ask, "").Header.Get(payment.HeaderRequired))
	signed := w.Sign(t, payer, w.Challenge(t, ask))
	header := apptest.Rewritten(t, signed, func(p map[string]any) { p["extensions"] = said["extensions"] })
	_, view := w.Admin(t, http.MethodGet, "/api/v1/services/quoted", nil)
	id, _ := first(view["endpoints"])["id"].(string)
	edit := map[string]any{"price_usd": "0.003", "timeout_ms": 5000, "input_example": map[string]any{"n": 77}, "output_example": nil, "description": "Another"}
	if status, answer := w.Admin(t, http.MethodPatch, "/api/v1/services/quoted/endpoints/"+id, edit); status != http.StatusOK {
		t.Fatalf("edit: %d %v", status, answer)
	}
	now := apptest.Decode(t, w.Send(t, ask, "").Header.Get(payment.HeaderRequired))
	if was, is := first(said["accepts"])["maxTimeoutSeconds"], first(now["accepts"])["maxTimeoutSeconds"]; was == is || reflect.DeepEqual(said["extensions"], now["extensions"]) {
		t.Fatalf("the terms are the same: %v and %v", said, now)
	}
	expect(t, "by the quote of before", w.Send(t, ask, header), http.StatusOK, "")
	wantMoved(t, w, 1, 0)
}

// An edit changes what it names and nothing else, of everything that a listing may have: the example of the document shows each member.
func TestEdits_LeaveEverythingElseOfAListingAsItIs(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	var document struct {
		Paths map[string]struct {
			Post struct {
				RequestBody struct {
					Content map[string]struct{ Example map[string]any }
				}
			}
		}
	}
	if err := json.Unmarshal(web.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	example := document.Paths["/api/v1/services"].Post.RequestBody.Content["application/json"].Example
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/services", example); status != http.StatusCreated {
		t.Fatalf("list the example: %d %v", status, answer)
	}
	slug, _ := example["slug"].(string)
	read := func() (map[string]any, map[string]any) {
		_, service := w.Admin(t, http.MethodGet, "/api/v1/services/"+slug, nil)
		for _, name := range []string{"revision", "checked", "name", "events"} {
			delete(service, name)
		}
		endpoint := first(service["endpoints"])
		delete(endpoint, "description")
		return service, endpoint
	}
	before, endpoint := read()
	id, _ := endpoint["id"].(string)
	for path, patch := range map[string]any{"": map[string]any{"name": "Another"}, "/endpoints/" + id: map[string]any{"description": "Another"}} {
		if status, answer := w.Admin(t, http.MethodPatch, "/api/v1/services/"+slug+path, patch); status != http.StatusOK {
			t.Fatalf("edit %s: %d %v", path, status, answer)
		}
	}
	if after, _ := read(); !reflect.DeepEqual(before, after) {
		t.Errorf("before the edits\n%v\nand after\n%v", before, after)
	}
	_, list := w.Admin(t, http.MethodGet, "/api/v1/services/"+slug+"/revisions", nil)
	for _, item := range list["items"].([]any) { //nolint:forcetypeassert // of our own API
		revision, _ := item.(map[string]any)
		if changed, _ := revision["after"].(map[string]any); len(changed) != 1 {
			t.Errorf("the revision says that it changed %v", changed)
		}
	}
}

// A header that is set by an edit is sent with the next request, and shown by nothing.
func TestEdits_AHeaderIsSentAndNotShown(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	var got atomic.Value
	s := w.List(t, "keyed", func(rw http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("X-Api-Key"))
		apptest.Works(rw, r)
	}, nil)
	payer, terms := w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL))
	status, view := w.Admin(t, http.MethodPatch, "/api/v1/services/keyed", map[string]any{"headers": map[string]any{"x-api-key": "hunter2"}, "description": "Keyed"})
	if text := fmt.Sprint(view); status != http.StatusOK || strings.Contains(text, "hunter2") || !strings.Contains(text, "X-Api-Key") {
		t.Errorf("edit: %d %v", status, view)
	}
	expect(t, "a call", w.Pay(t, payer, terms, apptest.Ask(s.URL)), http.StatusOK, "")
	if got.Load() != "hunter2" {
		t.Errorf("the service got %v", got.Load())
	}
	if status, list := w.Admin(t, http.MethodGet, "/api/v1/services/keyed/revisions", nil); status != http.StatusOK || strings.Contains(fmt.Sprint(list), "hunter2") {
		t.Errorf("the history is %d %v", status, list)
	}
}
