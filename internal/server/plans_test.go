package server

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"market/internal/plan"
)

// What is promised on the page and by the API is what is enforced: every limit of every plan, with its explanation, and nothing else.
func TestPlans_ThePageAndTheAPIShowEveryLimitOfEveryPlan(t *testing.T) {
	t.Parallel()
	s := newTestServer()
	s.store.Plans = append(s.store.Plans, plan.Plan{Name: "odd", Title: "Odd & Sons", Limits: s.store.Plans[2].Limits})
	get := func(path string, header http.Header) string {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header = header
		answer := httptest.NewRecorder()
		s.Public().Handler.ServeHTTP(answer, r)
		if answer.Code != http.StatusOK || answer.Header().Get("Vary") != "Accept" {
			t.Fatalf("%s: %d, varies by %q", path, answer.Code, answer.Header().Get("Vary"))
		}
		return answer.Body.String()
	}
	page := get("/pricing", http.Header{"Accept": {"text/html"}, "User-Agent": {browser}})
	var told struct {
		Items []struct {
			Name, Title string
			Limits      map[plan.Key]int64
		}
		Limits []struct {
			Key                plan.Key
			Title, Explanation string
		}
	}
	text := get("/api/v1/plans", nil)
	if err := json.Unmarshal([]byte(text), &told); err != nil || text != get("/pricing", nil) {
		t.Fatalf("%v; a program is told at /pricing %s", err, get("/pricing", nil))
	}
	if len(told.Items) != len(s.store.Plans) || len(told.Limits) != len(plan.Fields()) {
		t.Fatalf("%d plans and %d limits, want %d and %d", len(told.Items), len(told.Limits), len(s.store.Plans), len(plan.Fields()))
	}
	for i, f := range plan.Fields() {
		if got := told.Limits[i]; got.Key != f.Key || got.Title != f.Title || got.Explanation != f.Explanation {
			t.Errorf("limit %d is %+v", i, got)
		}
		row := `<tr role="row" id="` + string(f.Key) + `"><th role="rowheader" scope="row"><strong>` + f.Title + `</strong><br><span class="soft small">` + html.EscapeString(f.Explanation) + `</span></th>`
		for j, p := range s.store.Plans {
			row += fmt.Sprintf(`<td role="cell" data-label="%s">%s</td>`, html.EscapeString(p.Title), f.Show(p.Limits))
			if got := told.Items[j]; got.Name != p.Name || got.Title != p.Title || got.Limits[f.Key] != f.Of(p.Limits) || len(got.Limits) != len(plan.Fields()) {
				t.Errorf("plan %d is %+v", j, got)
			}
		}
		if !strings.Contains(page, row+"</tr>") {
			t.Errorf("the page has no row %s", row)
		}
	}
	if n := strings.Count(page, `<th role="rowheader"`); n != len(plan.Fields()) {
		t.Errorf("the page has %d rows, want %d", n, len(plan.Fields()))
	}
	if !strings.Contains(page, "begins with the plan Free") {
		t.Error("the page does not say what an account begins with")
	}
}
