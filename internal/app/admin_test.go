package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"market/internal/app/apptest"
)

// fieldsOf returns the names of the members that a problem complains about.
func fieldsOf(problem map[string]any) []string {
	var names []string
	list, _ := problem["fields"].([]any)
	for _, item := range list {
		field, _ := item.(map[string]any)
		name, _ := field["name"].(string)
		if message, _ := field["message"].(string); message == "" {
			name += " (without a message)"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// draft is a listing that is good but for what change does to it.
func draft(slug string, change map[string]any) map[string]any {
	d := map[string]any{
		"slug": slug, "name": "A name", "base_url": "http://127.0.0.1:9", "probe": map[string]any{"path": "/", "statuses": []string{"200"}},
		"endpoints": []any{map[string]any{"method": "GET", "path": "/", "price_usd": "0.002"}},
	}
	maps.Copy(d, change)
	return d
}

func endpointWith(change map[string]any) map[string]any {
	e := map[string]any{"method": "GET", "path": "/", "price_usd": "0.002"}
	maps.Copy(e, change)
	return map[string]any{"endpoints": []any{e}}
}

// What changes the shelf needs the token, and says so before it looks at anything.
func TestAdmin_ChangesNeedTheToken(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	w.List(t, "guarded", apptest.Works, nil)
	_, service := w.Admin(t, http.MethodGet, "/api/v1/services/guarded", nil)
	endpoint, _ := first(service["endpoints"])["id"].(string)
	body, err := json.Marshal(draft("intruder", nil))
	if err != nil {
		t.Fatal(err)
	}
	const good = "a-token-of-the-tests-only"
	for name, authorization := range map[string]string{
		"no token":                  "",
		"another token":             "Bearer another-token-than-ours",
		"the token and more":        "Bearer " + good + "x",
		"a part of the token":       "Bearer " + good[:len(good)-1],
		"another scheme":            "Basic " + good,
		"the token alone":           good,
		"the word and nothing else": "Bearer ",
		"the token twice":           "Bearer " + good + " " + good,
	} {
		for _, route := range []string{
			"POST /api/v1/services", "DELETE /api/v1/services/guarded", "POST /api/v1/services/guarded/endpoints",
			"PATCH /api/v1/services/guarded/endpoints/" + endpoint, "DELETE /api/v1/services/guarded/endpoints/" + endpoint,
			"GET /api/v1/admin/strikes", "DELETE /api/v1/services/no-such-service",
		} {
			method, path, _ := strings.Cut(route, " ")
			// B152: who somebody is said to be by a header is not who it is.
			header := http.Header{"X-Forwarded-User": {"admin"}, "X-Real-Ip": {"127.0.0.1"}, "Cookie": {"token=" + good}}
			if authorization != "" {
				header.Set("Authorization", authorization)
			}
			a := w.Send(t, apptest.Asking{Method: method, URL: w.URL + path + "?token=" + good, Body: string(body), Header: header}, "")
			expect(t, name+", "+route, a, http.StatusUnauthorized, "unauthorized")
			if got := a.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
				t.Errorf("%s, %s: WWW-Authenticate is %q", name, route, got)
			}
		}
	}
	if _, after := w.Admin(t, http.MethodGet, "/api/v1/services/guarded", nil); after["state"] != "listed" || len(after["endpoints"].([]any)) != 1 { //nolint:forcetypeassert // of our own API
		t.Errorf("the service is now %v", after)
	}
	a := w.Send(t, apptest.Asking{Method: http.MethodPost, URL: w.URL + "/api/v1/services", Body: string(body),
		Header: http.Header{"Authorization": {"bearer " + good}}}, "")
	if a.Status != http.StatusCreated || a.Header.Get("Location") != w.URL+"/api/v1/services/intruder" {
		t.Errorf("with the token, in small print: %d, Location %q, %s", a.Status, a.Header.Get("Location"), a.Body)
	}
}

func TestAdmin_AListingIsRefusedWithEverythingThatIsWrongWithIt(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	for name, tt := range map[string]struct {
		draft  map[string]any
		fields []string
	}{
		"nothing is given": {map[string]any{}, []string{"/base_url", "/endpoints", "/name", "/probe", "/slug"}},
		"everything is wrong at once": {draft("Not A Slug", map[string]any{"name": "", "base_url": "ftp://x", "surprise": 1,
			"endpoints": []any{map[string]any{"method": "BREW", "path": "work", "price_usd": "free", "timeout_ms": 1, "served_statuses": []int{500}}}}),
			[]string{"/base_url", "/endpoints/0/method", "/endpoints/0/path", "/endpoints/0/price_usd", "/endpoints/0/served_statuses/0",
				"/endpoints/0/timeout_ms", "/name", "/slug", "/surprise"}},
		"headers that are ours or no headers":    {draft("x", map[string]any{"headers": map[string]any{"Market-Call": "k", "X Y": "k"}}), []string{"/headers/Market-Call", "/headers/X Y"}},
		"capacity that nobody has":               {draft("x", map[string]any{"capacity": map[string]any{"concurrency": 0}}), []string{"/capacity/concurrency"}},
		"a stream of what has no body":           {draft("x", endpointWith(map[string]any{"method": "HEAD", "stream": true})), []string{"/endpoints/0/stream"}},
		"a member that nobody knows":             {draft("x", map[string]any{"payout": "0x1"}), []string{"/payout"}},
		"a member of an endpoint":                {draft("x", endpointWith(map[string]any{"prise_usd": "1"})), []string{"/endpoints/0/prise_usd"}},
		"a member of the probe":                  {draft("x", map[string]any{"probe": map[string]any{"path": "/", "statuses": []string{"200"}, "body": 1}}), []string{"/probe/body"}},
		"a reserved slug":                        {draft("admin", nil), []string{"/slug"}},
		"null for a member":                      {draft("x", map[string]any{"description": nil}), []string{"/description"}},
		"a price below the floor":                {draft("x", endpointWith(map[string]any{"price_usd": "0.0009"})), []string{"/endpoints/0/price_usd"}},
		"a price below one unit":                 {draft("x", endpointWith(map[string]any{"price_usd": "0.0020001"})), []string{"/endpoints/0/price_usd"}},
		"a price with an exponent":               {draft("x", endpointWith(map[string]any{"price_usd": "1e-2"})), []string{"/endpoints/0/price_usd"}},
		"a price as a number":                    {draft("x", endpointWith(map[string]any{"price_usd": 0.01})), []string{"/endpoints/0/price_usd"}},
		"a path that climbs":                     {draft("x", endpointWith(map[string]any{"path": "/a/../b"})), []string{"/endpoints/0/path"}},
		"an example that breaks its own schema":  {draft("x", endpointWith(map[string]any{"input_schema": map[string]any{"required": []string{"q"}}, "input_example": map[string]any{}})), []string{"/endpoints/0/input_example"}},
		"two endpoints that answer one request":  {draft("x", map[string]any{"endpoints": []any{endpointWith(map[string]any{"path": "/{a}"})["endpoints"].([]any)[0], endpointWith(map[string]any{"path": "/{b}"})["endpoints"].([]any)[0]}}), []string{"/endpoints/1/path"}}, //nolint:forcetypeassert // made above
		"a base URL with a user":                 {draft("x", map[string]any{"base_url": "http://u:p@127.0.0.1"}), []string{"/base_url"}},
		"a name that turns the text around":      {draft("x", map[string]any{"name": "evil\u202etxt"}), []string{"/name"}},
		"a schema that asks for somebody's file": {draft("x", endpointWith(map[string]any{"input_schema": map[string]any{"$ref": "file:///etc/passwd"}})), []string{"/endpoints/0/input_schema"}},
	} {
		status, problem := w.Admin(t, http.MethodPost, "/api/v1/services", tt.draft)
		if status != http.StatusUnprocessableEntity || problem["code"] != "invalid_request" || !slices.Equal(fieldsOf(problem), tt.fields) {
			t.Errorf("%s: %d %v complains about %q, want %q", name, status, problem["code"], fieldsOf(problem), tt.fields)
		}
	}
	for name, body := range map[string]string{
		"no JSON": "{", "a list": "[]", "nothing": "", "two documents": "{}{}", "a member twice": `{"slug":"a","slug":"b"}`, "a long body": strings.Repeat(" ", 1<<20+1),
	} {
		a := w.Send(t, apptest.Asking{Method: http.MethodPost, URL: w.URL + "/api/v1/services", Body: body,
			Header: http.Header{"Authorization": {"Bearer a-token-of-the-tests-only"}}}, "")
		if want := map[bool]int{true: http.StatusRequestEntityTooLarge, false: http.StatusUnprocessableEntity}[len(body) > 1<<20]; a.Status != want {
			t.Errorf("%s: %d %s, want %d", name, a.Status, a.Body, want)
		}
	}
	if _, list := w.Admin(t, http.MethodGet, "/api/v1/services", nil); len(list["items"].([]any)) != 0 { //nolint:forcetypeassert // of our own API
		t.Errorf("something was listed: %v", list)
	}
}

func TestAdmin_WhatIsTakenIsAConflict(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "taken", apptest.Works, nil)
	status, problem := w.Admin(t, http.MethodPost, "/api/v1/services", draft("taken", nil))
	if status != http.StatusConflict || problem["code"] != "conflict" || !slices.Equal(fieldsOf(problem), []string{"/slug"}) {
		t.Errorf("the slug of another service: %d %v", status, problem)
	}
	same := map[string]any{"method": "POST", "path": "/work", "price_usd": "0.001"}
	if status, problem = w.Admin(t, http.MethodPost, "/api/v1/services/taken/endpoints", same); status != http.StatusConflict || problem["code"] != "conflict" {
		t.Errorf("the route of another endpoint: %d %v", status, problem)
	}
	same["path"] = "/more"
	if status, problem = w.Admin(t, http.MethodPost, "/api/v1/services/taken/endpoints", same); status != http.StatusCreated {
		t.Errorf("another route: %d %v", status, problem)
	}
	more := strings.Replace(s.URL, "/work", "/more", 1)
	if got := w.Challenge(t, apptest.Ask(more)).Accepts[0].Amount.String(); got != "1000" {
		t.Errorf("the new endpoint costs %s at once, want 1000", got)
	}
	id, _ := problem["id"].(string)
	if status, _ = w.Admin(t, http.MethodDelete, "/api/v1/services/taken/endpoints/"+id, nil); status != http.StatusNoContent {
		t.Errorf("retire the endpoint: %d", status)
	}
	expect(t, "a retired endpoint", w.Send(t, apptest.Ask(more), ""), http.StatusGone, "not_listed")
	if status, _ = w.Admin(t, http.MethodDelete, "/api/v1/services/taken", nil); status != http.StatusNoContent {
		t.Errorf("retire: %d", status)
	}
	if status, problem = w.Admin(t, http.MethodPost, "/api/v1/services", draft("taken", nil)); status != http.StatusConflict {
		t.Errorf("the slug of a retired service: %d %v", status, problem)
	}
}

func TestServices_ParametersOfTheListAreCheckedAndNotGuessed(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	w.List(t, "only", apptest.Works, nil)
	for name, tt := range map[string]struct {
		query string
		field string
	}{
		"a limit of none":           {"limit=0", "limit"},
		"a limit above a hundred":   {"limit=101", "limit"},
		"a limit that is a word":    {"limit=x", "limit"},
		"an empty limit":            {"limit=", "limit"},
		"a negative limit":          {"limit=-1", "limit"},
		"a limit beyond any number": {"limit=99999999999999999999", "limit"},
		"a limit with a point":      {"limit=1.0", "limit"},
		"two limits":                {"limit=1&limit=2", "limit"},
		"a cursor of the caller's":  {"cursor=abc", "cursor"},
		"two cursors":               {"cursor=&cursor=", "cursor"},
		"a parameter nobody knows":  {"page=2", "page"},
		"a parameter in capitals":   {"Limit=1", "Limit"},
	} {
		a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services?" + tt.query}, "")
		expect(t, name, a, http.StatusBadRequest, "invalid_parameter")
		if got := fieldsOf(a.JSON); !slices.Equal(got, []string{tt.field}) {
			t.Errorf("%s: it complains about %q, want %s", name, got, tt.field)
		}
	}
	a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services?limit=1&%zz"}, "")
	expect(t, "a query that is none", a, http.StatusBadRequest, "invalid_parameter")
	for _, query := range []string{"", "limit=1", "limit=100", "limit=20&cursor="} {
		if a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services?" + query}, ""); a.Status != http.StatusOK {
			t.Errorf("%q: %d %s", query, a.Status, a.Body)
		}
	}
}

// B127: whoever follows the cursor to the end has seen every service once, whatever is added and retired meanwhile.
func TestServices_PagesShowEachServiceOnce(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	for n := range 7 {
		w.List(t, fmt.Sprintf("first-%d", n), apptest.Works, nil)
	}
	seen := map[string]int{}
	cursor, pages := "", 0
	for {
		a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services?limit=3&cursor=" + url.QueryEscape(cursor)}, "")
		items, _ := a.JSON["items"].([]any)
		if a.Status != http.StatusOK || len(items) > 3 {
			t.Fatalf("page %d: %d with %d items", pages, a.Status, len(items))
		}
		for _, item := range items {
			service, _ := item.(map[string]any)
			slug, _ := service["slug"].(string)
			seen[slug]++
		}
		if pages++; pages == 1 {
			w.List(t, "added-meanwhile", apptest.Works, nil)
			for _, slug := range []string{"first-0", "first-5"} { // one that was shown, one that was not yet
				if status, _ := w.Admin(t, http.MethodDelete, "/api/v1/services/"+slug, nil); status != http.StatusNoContent {
					t.Fatalf("retire %s: %d", slug, status)
				}
			}
		}
		if cursor, _ = a.JSON["next_cursor"].(string); cursor == "" {
			break
		}
	}
	want := map[string]int{"first-0": 1, "first-1": 1, "first-2": 1, "first-3": 1, "first-4": 1, "first-6": 1, "added-meanwhile": 1}
	if !maps.Equal(seen, want) || pages != 3 {
		t.Errorf("%d pages show %v, want %v on 3", pages, seen, want)
	}
}

// What nobody can have listed is not there; asking for it is no error of ours.
func TestServices_OddNamesAreNotFound(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	for name, path := range map[string]string{
		"a service that nobody listed": "/api/v1/services/nobody",
		"a NUL":                        "/api/v1/services/a%00b",
		"bytes that are no text":       "/api/v1/services/%FF%FE",
		"the same in small print":      "/api/v1/services/%ff%fe",
		"a long name":                  "/api/v1/services/" + strings.Repeat("a", 5000),
		"a quotation mark":             "/api/v1/services/'%20OR%201=1--",
		"a call without an id":         "/api/v1/calls/",
		"a call with a word":           "/api/v1/calls/latest",
		"a call that never was":        "/api/v1/calls/01890000-0000-7000-8000-000000000000",
		"a call in another spelling":   "/api/v1/calls/%7b01890000-0000-7000-8000-000000000000%7d",
		"a call with a NUL":            "/api/v1/calls/%00",
	} {
		a := w.SendBytes(t, http.MethodGet, path, "")
		expect(t, name, a, http.StatusNotFound, "not_found")
	}
	for name, route := range map[string]string{
		"an endpoint of a service that is not there": "DELETE /api/v1/services/nobody/endpoints/01890000-0000-7000-8000-000000000000",
		"an endpoint with a word for an id":          "DELETE /api/v1/services/nobody/endpoints/first",
		"a service with a NUL":                       "DELETE /api/v1/services/a%00b",
	} {
		method, path, _ := strings.Cut(route, " ")
		if status, problem := w.Admin(t, method, path, nil); status != http.StatusNotFound {
			t.Errorf("%s: %d %v", name, status, problem)
		}
	}
}
