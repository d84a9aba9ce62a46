package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
)

func patch(text string, revisions ...int64) catalog.Edit {
	return catalog.Edit{Patch: []byte(text), By: owner, Revisions: revisions}
}

func editService(t *testing.T, db *pgxpool.Pool, slug string, e catalog.Edit) (out catalog.Edited, err error) {
	t.Helper()
	err = inTx(t, db, func(tx pgx.Tx) (err error) {
		out, err = store.EditService(t.Context(), tx, slug, e, catalog.Rules{})
		return err
	})
	return out, err
}

func editEndpoint(t *testing.T, db *pgxpool.Pool, slug string, id uuid.UUID, e catalog.Edit, rules catalog.Rules) (out catalog.Edited, err error) {
	t.Helper()
	err = inTx(t, db, func(tx pgx.Tx) (err error) {
		out, err = store.EditEndpoint(t.Context(), tx, slug, id, e, rules)
		return err
	})
	return out, err
}

func reprice(t *testing.T, db *pgxpool.Pool, slug string, e *catalog.Endpoint, usd string) {
	t.Helper()
	if _, err := editEndpoint(t, db, slug, e.ID, patch(`{"price_usd":"`+usd+`"}`), catalog.Rules{}); err != nil {
		t.Fatal(err)
	}
}

func retireEndpoint(t *testing.T, db *pgxpool.Pool, s catalog.Service, id uuid.UUID) (was bool) {
	t.Helper()
	err := inTx(t, db, func(tx pgx.Tx) (err error) {
		was, err = store.RetireEndpoint(t.Context(), tx, &s, id, owner)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return was
}

// revisions returns "number endpoint? before > after" of each edit, the newest first.
func revisions(t *testing.T, db *pgxpool.Pool, s catalog.Service) (out []string) {
	t.Helper()
	list, _, err := store.Revisions(t.Context(), db, s.ID, 100, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		of := "service"
		if r.Endpoint != nil {
			of = "endpoint"
		}
		out = append(out, fmt.Sprintf("%d %s by %s: %s > %s", r.Number, of, r.By.Name, compact(r.Before), compact(r.After)))
	}
	return out
}

// compact is a document as its members, for comparison; a long one is only counted.
func compact(raw json.RawMessage) string {
	var members map[string]any
	if json.Unmarshal(raw, &members) != nil {
		return "-"
	}
	if len(members) > 4 {
		return "all"
	}
	text, _ := json.Marshal(members)
	return string(text)
}

func fieldsOf(err error) []string {
	no, ok := errors.AsType[*refusal.Error](err)
	if !ok {
		return nil
	}
	names := map[string]bool{}
	for _, f := range no.Fields {
		names[f.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Who retires an endpoint has read it before somebody else changed it: the history says what stood last.
func TestStore_RetireEndpoint_KeepsWhatStoodLast(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	read := create(t, db, draft(t, "weather", "/"))
	reprice(t, db, "weather", read.Endpoints[0], "0.7")
	retireEndpoint(t, db, read, read.Endpoints[0].ID)
	list, _, err := store.Revisions(t.Context(), db, read.ID, 1, "")
	if err != nil || len(list) != 1 || !strings.Contains(string(list[0].Before), `"price_usd": "0.7"`) {
		t.Errorf("the history ends with %+v, %v", list, err)
	}
}

func TestStore_EditService_ChangesWhatIsGivenAndNothingElse(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	out, err := editService(t, db, "weather", patch(`{"description":"By city","tags":null,"probe":{"path":"/up"}}`))
	if err != nil || !out.Changed {
		t.Fatalf("changed = %v, %v", out.Changed, err)
	}
	got := find(t, db, "weather")
	if got.Name != "Weather" || got.Description != "By city" || len(got.Tags) != 0 || got.BaseURL != s.BaseURL || got.Probe.Path != "/up" ||
		got.Probe.Method != "GET" || got.Probe.Statuses.String() != "200-399" || got.Revision != 2 || out.Service.Revision != 2 {
		t.Errorf("service = %+v", got)
	}
	// What it says already, in another spelling: NFC and the same statuses.
	for _, same := range []string{`{}`, `{"description":"By city"}`, `{"tags":[]}`, `{"tags":null,"probe":{"statuses":["200-399"],"path":"/up"}}`, `{"slug":"weather"}`} {
		if out, err := editService(t, db, "weather", patch(same)); err != nil || out.Changed || out.Service.Revision != 2 {
			t.Errorf("%s: changed = %v to revision %d, %v", same, out.Changed, out.Service.Revision, err)
		}
	}
	want := []string{`2 service by the owner: {"description":"","probe":{"method":"GET","path":"/healthz","statuses":["200-399"]},"tags":["data"]} > ` +
		`{"description":"By city","probe":{"method":"GET","path":"/up","statuses":["200-399"]},"tags":[]}`}
	if got := revisions(t, db, s); !slices.Equal(got, want) {
		t.Errorf("revisions %q, want %q", got, want)
	}
}

// B135: an edit is refused with everything that is wrong with what would come out.
func TestStore_EditService_IsRefusedWholeWithEveryProblem(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	for name, tt := range map[string]struct {
		patch string
		want  []string
	}{
		"everything at once": {`{"name":"","tags":["A"],"base_url":"ftp://x","probe":{"path":"x","statuses":null},"surprise":1,"slug":"other","endpoints":[]}`,
			[]string{"/base_url", "/endpoints", "/name", "/probe/path", "/probe/statuses", "/slug", "/surprise", "/tags/0"}},
		"what cannot be left out":    {`{"name":null,"base_url":null,"probe":null}`, []string{"/base_url", "/name", "/probe"}},
		"a name that hides a letter": {`{"name":"Wea\u200bther"}`, []string{"/name"}},
	} {
		if _, err := editService(t, db, "weather", patch(tt.patch)); reasonOf(err) != call.InvalidRequest || !slices.Equal(fieldsOf(err), tt.want) {
			t.Errorf("%s: %v complains about %q, want %q", name, err, fieldsOf(err), tt.want)
		}
	}
	for _, body := range []string{"", "[]", `{"name":"a"} {}`, "{"} {
		if _, err := editService(t, db, "weather", patch(body)); reasonOf(err) != call.InvalidRequest {
			t.Errorf("%q: %v", body, err)
		}
	}
	if got := revisions(t, db, s); len(got) != 0 || find(t, db, "weather").Revision != 1 {
		t.Errorf("revisions %q after refusals", got)
	}
}

// B150: an edit is seen: who, when, what it was before. Where its requests go is said to everybody, with the moment it changed.
func TestStore_EditService_AnotherBaseURLIsDated(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pgtest.Freeze(t, db)
	s := create(t, db, draft(t, "weather", "/"))
	pgtest.Shift(t, db, 1e9)
	if out, err := editService(t, db, "weather", patch(`{"name":"Rain"}`)); err != nil || !out.Service.BaseURLSince.Equal(s.BaseURLSince) {
		t.Errorf("after another name: since %v, %v; want %v", out.Service.BaseURLSince, err, s.BaseURLSince)
	}
	out, err := editService(t, db, "weather", patch(`{"base_url":"https://rain.example"}`))
	if err != nil || out.Service.BaseURLSince.Sub(s.BaseURLSince) != 1e9 || out.Service.ProbeID() == s.ProbeID() {
		t.Errorf("after another base URL: since %v, %v; want a second later, and another thing to probe", out.Service.BaseURLSince, err)
	}
}

func TestStore_Edit_OfWhatIsNotThereOrRetired(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/a", "/b"))
	gone := s.Endpoints[0].ID
	retireEndpoint(t, db, s, gone)
	if retireEndpoint(t, db, s, gone) {
		t.Error("it was retired twice")
	}
	edit := func(slug string, id uuid.UUID) call.Reason {
		_, err := editEndpoint(t, db, slug, id, patch(`{"description":"x"}`), catalog.Rules{})
		return reasonOf(err)
	}
	for name, tt := range map[string]struct{ got, want call.Reason }{
		"a service that is not there":   {edit("nobody", gone), call.NotFound},
		"a name that is none":           {edit("a\x00", gone), call.NotFound},
		"an endpoint that is not there": {edit("weather", uuid.New()), call.NotFound},
		"a retired endpoint":            {edit("weather", gone), call.Conflict},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", name, tt.got, tt.want)
		}
	}
	// What was delisted can be put right while it is off the shelf; what was retired can not.
	if _, err := store.Delist(t.Context(), db, s.ID, "3 strikes"); err != nil {
		t.Fatal(err)
	}
	if got := edit("weather", s.Endpoints[1].ID); got != "" {
		t.Errorf("an endpoint of a delisted service: %q", got)
	}
	if _, err := store.Retire(t.Context(), db, s.ID, catalog.AdminToken, "withdrawn"); err != nil {
		t.Fatal(err)
	}
	if got := edit("weather", s.Endpoints[1].ID); got != call.Conflict {
		t.Errorf("an endpoint of a retired service: %q", got)
	}
	if _, err := editService(t, db, "weather", patch(`{"name":"x"}`)); reasonOf(err) != call.Conflict {
		t.Errorf("a retired service: %v", err)
	}
	want := []string{`3 endpoint by the owner: {"description":""} > {"description":"x"}`, `2 endpoint by the owner: all > -`}
	if got := revisions(t, db, s); !slices.Equal(got, want) {
		t.Errorf("revisions %q, want %q", got, want)
	}
}

func TestStore_EditEndpoint_ChangesEverythingButMethodAndPath(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/a"))
	id, first := s.Endpoints[0].ID, s.Endpoints[0].Prices[0].Revision
	out, err := editEndpoint(t, db, "weather", id, patch(`{"price_usd":"0.003","description":"Rain","mime_type":"text/plain","input_schema":{"type":"object","required":["day"],
		"default":null},"input_example":{"day":"now","city":null},"output_schema":null,"output_example":["wet"],"served_statuses":[410,404],"timeout_ms":null,
		"max_response_bytes":99,"trial_calls_per_day":0}`), catalog.Rules{})
	if err != nil || !out.Changed {
		t.Fatal(err)
	}
	got := find(t, db, "weather").Endpoints[0]
	price, _ := got.Price()
	if price.USD.String() != "0.003" || price.Revision <= first || got.Description != "Rain" || got.MIMEType != "text/plain" || got.OutputSchema != nil ||
		string(got.OutputExample) != `["wet"]` || !slices.Equal(got.ServedStatuses, []int{410, 404}) || got.Timeout.Seconds() != 10 || got.MaxResponseBytes != 99 ||
		got.TrialCallsPerDay != 0 || !strings.Contains(string(got.InputSchema), `"default": null`) || got.Method != "POST" || got.Path != "/a" {
		t.Errorf("endpoint = %+v, price %v", got, price)
	}
	if !got.MatchesExample(catalog.Input{Body: []byte(`{"day":"now","city":null}`)}) {
		t.Errorf("the example is %s: nulls inside it are its own", got.InputExample)
	}
	if again, _ := out.Endpoint.Price(); again.Revision != price.Revision || out.Endpoint.Description != "Rain" {
		t.Errorf("the answer shows %+v", out.Endpoint)
	}
	same := `{"price_usd":"0.0030","served_statuses":[410,404],"input_example":{"city":null,"day":"now"},"method":"POST","path":"/a","output_schema":null}`
	if out, err := editEndpoint(t, db, "weather", id, patch(same), catalog.Rules{}); err != nil || out.Changed || out.Service.Revision != 2 {
		t.Errorf("the same again: changed = %v to revision %d, %v", out.Changed, out.Service.Revision, err)
	}
	for text, want := range map[string][]string{
		`{"method":"GET","path":"/b"}`:                          {"/method", "/path"},
		`{"price_usd":null}`:                                    {"/price_usd"},
		`{"input_schema":{"required":["city","hour"]}}`:         {"/input_example"}, // the example that stands does not fit it
		`{"stream":1,"headers":{},"price_usd":"1000.01"}`:       {"/headers", "/price_usd", "/stream"},
		`{"timeout_ms":1,"served_statuses":[500],"input_x":{}}`: {"/input_x", "/served_statuses/0", "/timeout_ms"},
	} {
		if _, err := editEndpoint(t, db, "weather", id, patch(text), catalog.Rules{}); !slices.Equal(fieldsOf(err), want) {
			t.Errorf("%s: %v complains about %q, want %q", text, err, fieldsOf(err), want)
		}
	}
}

func TestStore_EditEndpoint_ToOnePriceByManyIsOneRevision(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	var wg sync.WaitGroup
	var txs []pgx.Tx
	for range 8 {
		tx, err := db.Begin(t.Context()) // all have a connection before the first one starts
		if err != nil {
			t.Fatal(err)
		}
		txs = append(txs, tx)
	}
	for _, tx := range txs {
		wg.Go(func() {
			if _, err := store.EditEndpoint(t.Context(), tx, "weather", s.Endpoints[0].ID, patch(`{"price_usd":"0.003"}`), catalog.Rules{}); err != nil {
				t.Error(err)
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var prices int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM endpoint_prices`).Scan(&prices); err != nil {
		t.Fatal(err)
	}
	if got := revisions(t, db, s); prices != 2 || len(got) != 1 {
		t.Errorf("%d prices and revisions %q, want the first price and one more, by one edit", prices, got)
	}
}

// Two editors read one revision. Whoever comes second learns of the first; without naming a revision each changes its own members.
func TestStore_Edit_OfTwoEditorsTheSecondLearnsOfTheFirst(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	var won, lost atomic.Int32
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) (err error) {
				if i%2 == 0 {
					_, err = store.EditService(t.Context(), tx, "weather", patch(fmt.Sprintf(`{"name":"Name %d"}`, i), 1), catalog.Rules{})
				} else {
					_, err = store.EditEndpoint(t.Context(), tx, "weather", s.Endpoints[0].ID, patch(fmt.Sprintf(`{"description":"%d"}`, i), 1), catalog.Rules{})
				}
				return err
			})
			switch {
			case err == nil:
				won.Add(1)
			case reasonOf(err) == call.RevisionChanged:
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 5 {
		t.Errorf("%d edited revision 1 and %d were told, want 1 and 5", won.Load(), lost.Load())
	}
	for range 2 {
		wg.Go(func() {
			if _, err := editService(t, db, "weather", patch(`{"tags":["rain"]}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Go(func() {
		if _, err := editService(t, db, "weather", patch(`{"description":"Rain"}`, 1, 2, 3)); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if got := find(t, db, "weather"); got.Description != "Rain" || !slices.Equal(got.Tags, []string{"rain"}) || got.Revision != 4 {
		t.Errorf("service = %+v, want both edits in 4 revisions", got)
	}
}

func TestStore_EditEndpoint_ARaisedFloorIsNoReasonToRefuseAnotherEdit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	raised := catalog.Rules{Assets: []catalog.AssetRule{{Network: "eip155:1", Decimals: 6, FloorUSD: decimal.RequireFromString("0.5")}}}
	id := s.Endpoints[0].ID
	if _, err := editEndpoint(t, db, "weather", id, patch(`{"description":"Rain","price_usd":"0.002"}`), raised); err != nil {
		t.Errorf("another description: %v", err)
	}
	if _, err := editEndpoint(t, db, "weather", id, patch(`{"price_usd":"0.4"}`), raised); !slices.Equal(fieldsOf(err), []string{"/price_usd"}) ||
		!strings.Contains(err.Error(), "0.5") || !strings.Contains(err.Error(), "eip155:1") {
		t.Errorf("a price below the floor: %v", err)
	}
	if _, err := editEndpoint(t, db, "weather", id, patch(`{"price_usd":"0.5"}`), raised); err != nil {
		t.Errorf("the floor: %v", err)
	}
}

func TestStore_Revisions_PageFromTheNewest(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	for i := range 5 {
		if _, err := editService(t, db, "weather", patch(fmt.Sprintf(`{"name":"Name %d"}`, i))); err != nil {
			t.Fatal(err)
		}
	}
	var got []int64
	cursor, pages := "", 0
	for {
		list, next, err := store.Revisions(t.Context(), db, s.ID, 2, cursor)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, r := range list {
			got = append(got, r.Number)
		}
		if cursor = next; next == "" {
			break
		}
	}
	if !slices.Equal(got, []int64{6, 5, 4, 3, 2}) || pages != 3 {
		t.Errorf("%v on %d pages", got, pages)
	}
	for _, cursor := range []string{"x", "czE6MQ", "cjE6MDE", "cjE6LTE", "cjE6"} {
		if _, _, err := store.Revisions(t.Context(), db, s.ID, 2, cursor); reasonOf(err) != call.InvalidParameter {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// B132: what is stored badly is shown as broken to its owner, who can put it right, and is counted like any other row.
func TestStore_ABrokenRowIsShownCountedAndCanBePutRight(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for _, slug := range []string{"a", "b", "c", "d"} {
		create(t, db, draft(t, slug, "/x"))
	}
	for _, sql := range []string{
		`UPDATE endpoints SET input_schema = 'null' WHERE service_id = (SELECT id FROM services WHERE slug = 'a')`,
		`UPDATE services SET probe_statuses = '', tags = '{NULL,x}' WHERE slug = 'b'`,
		`UPDATE endpoints SET output_schema = '[]', served_statuses = '{NULL,404}' WHERE service_id = (SELECT id FROM services WHERE slug = 'c')`,
	} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	listings := catalog.New(time.Now, 0)
	if err := listings.Load(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	everybody := listings.Current().Search(catalog.DefaultQuery(), func(uuid.UUID) int { return 0 })
	admins, _, err := store.ListAll(t.Context(), db, catalog.Listed, 100, "")
	if err != nil || everybody.Total != 4 {
		t.Errorf("%v; %d services are counted, want all four rows", err, everybody.Total)
	}
	for name, services := range map[string][]*catalog.Service{"everybody": everybody.Services, "admins": admins} {
		broken := ""
		for _, s := range services {
			broken += map[bool]string{true: s.Slug, false: "."}[len(s.Problems()) > 0]
		}
		if broken != "abc." {
			t.Errorf("%s see %q, want four rows, the first three broken", name, broken)
		}
	}
	fixes := map[string]string{"a": `{"input_schema":null}`, "c": `{"output_schema":{"type":"object"}}`}
	for slug, text := range fixes {
		id := find(t, db, slug).Endpoints[0].ID
		if _, err := editEndpoint(t, db, slug, id, patch(`{"description":"x"}`), catalog.Rules{}); reasonOf(err) != call.InvalidRequest {
			t.Errorf("%s: an edit that leaves it broken: %v", slug, err)
		}
		if _, err := editEndpoint(t, db, slug, id, patch(text), catalog.Rules{}); err != nil {
			t.Errorf("%s: %v", slug, err)
		}
	}
	if _, err := editService(t, db, "b", patch(`{"probe":{"statuses":["200"]}}`)); err != nil {
		t.Error(err)
	}
	for _, slug := range []string{"a", "b", "c"} {
		if s := find(t, db, slug); len(s.Problems()) > 0 {
			t.Errorf("%s is still broken: %q", slug, s.Problems())
		}
	}
}
