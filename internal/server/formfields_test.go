package server

import (
	"encoding/json"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"market/internal/catalog"
	"market/internal/refusal"
)

// What can be said in the API can be said on the pages: every member has its field, but the headers, which have a page of their own.
func TestFieldSets_HaveEveryMemberOfTheAPI(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	members := func(schema, under string) (out []string) {
		properties, _ := d.at("/components/schemas/" + schema + "/properties")
		for name := range properties.(map[string]any) {
			out = append(out, under+name)
		}
		return out
	}
	described := members("ServiceDraft", "")
	described = slices.DeleteFunc(described, func(name string) bool {
		return slices.Contains([]string{"headers", "endpoints", "probe", "capacity", "notices"}, name)
	})
	described = slices.Concat(described, members("ProbeDraft", "probe."), members("Capacity", "capacity."), members("NoticesDraft", "notices."), members("EndpointDraft", "endpoint."))
	var typed []string
	for _, set := range newListing(nil).sets {
		for i := range set.Fields {
			typed = append(typed, set.Fields[i].name(set.Prefix))
		}
	}
	slices.Sort(described)
	slices.Sort(typed)
	if !slices.Equal(described, typed) {
		t.Errorf("only in the API: %q, only on the page: %q", without(described, typed), without(typed, described))
	}
}

const everythingTyped = `{"slug":"weather","name":"Weather & more","description":"Of a city","tags":["data","weather"],"base_url":"https://api.weather.example/base",
 "probe":{"method":"POST","path":"/healthz","statuses":["200-299","401"],"body":{"a":1}},"capacity":{"requests_per_second":2.5,"concurrency":3},
 "notices":{"email":"ops@weather.example"},
 "endpoints":[{"method":"POST","path":"/v1/current","price_usd":"0.002","description":"Now","input_schema":{"type":"object"},"input_example":{"n":10000000000000000001},
  "output_example":"<b>","output_schema":{"type":"string"},"served_statuses":[404,410],"timeout_ms":5000,"max_response_bytes":4096,"trial_calls_per_day":5,"trial_calls_per_caller":2,"mime_type":"text/plain"}]}`

// A listing that is written into the form and read from it again is the same listing.
func TestTypedForm_KeepsAWholeListing(t *testing.T) {
	t.Parallel()
	want, err := catalog.ParseDraft([]byte(everythingTyped), catalog.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var listing map[string]any
	if err := json.Unmarshal([]byte(everythingTyped), &listing); err != nil {
		t.Fatal(err)
	}
	form := newListing(url.Values{})
	for _, set := range form.sets {
		var view any = json.RawMessage(everythingTyped)
		if set.At == firstEndpoint {
			var of struct{ Endpoints []json.RawMessage }
			if err := json.Unmarshal([]byte(everythingTyped), &of); err != nil {
				t.Fatal(err)
			}
			view = of.Endpoints[0]
		}
		if err := set.typedOf(view, form.values); err != nil {
			t.Fatal(err)
		}
	}
	body, problems, err := form.document(false)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %v", problems, err)
	}
	got, err := catalog.ParseDraft(body, catalog.Rules{})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, want)
	}
}

// In a change, what was emptied is taken away; in a new listing it is left out.
func TestTypedForm_WhatIsEmptyIsLeftOutOrTakenAway(t *testing.T) {
	t.Parallel()
	form := &typedForm{sets: endpointSets("", ""), values: url.Values{"price_usd": {" 0.003 "}, "timeout_ms": {"5 s"}, "description": {"two\r\nlines"}, "stream": {"yes"}}}
	for patch, want := range map[bool]string{
		false: `{"description":"two lines","price_usd":"0.003","stream":true,"timeout_ms":"5 s"}`,
		true: `{"description":"two lines","idle_timeout_ms":null,"input_example":null,"input_schema":null,"max_response_bytes":null,"mime_type":null,"output_example":null,` +
			`"output_schema":null,"price_usd":"0.003","served_statuses":[],"stream":true,"timeout_ms":"5 s","trial_calls_per_caller":null,"trial_calls_per_day":null}`,
	} {
		if body, problems, err := form.document(patch); err != nil || problems != nil || string(body) != want {
			t.Errorf("patch %v: %s, %v, %v", patch, body, problems, err)
		}
	}
}

// A page does not show everything that a text can hold. What comes back as it was shown was not typed, and is not written over what stands.
func TestTypedForm_WhatCameBackAsItWasShownIsNoChange(t *testing.T) {
	t.Parallel()
	stands := `{"method": "GET", "path": "/x", "price_usd": "0.002", "description": "a\u202eb", "input_example": {"n": 1, "m": "a\u202eb"}, "timeout_ms": 5000, "served_statuses": [404, 410],
		"stream": true}`
	sets := endpointSets("", "")
	stood, err := typedAs(json.RawMessage(stands), sets)
	if err != nil {
		t.Fatal(err)
	}
	// shown is what the browser sends of the page as it came.
	shown := func() url.Values {
		values := url.Values{}
		for _, set := range sets {
			for _, in := range set.part(stood, map[string]string{}, true).Inputs {
				for _, o := range in.Options {
					if o.Chosen {
						values.Add(in.Name, o.ID)
					}
				}
				if in.Ticked {
					values.Set(in.Name, "yes")
				} else if in.Options == nil {
					values.Set(in.Name, strings.ReplaceAll(in.Value, "\n", "\r\n"))
				}
			}
		}
		return values
	}
	for name, tt := range map[string]struct {
		typed url.Values
		want  string
	}{
		"nothing":        {nil, `{}`},
		"another text":   {url.Values{"description": {"another"}}, `{"description":"another"}`},
		"an empty one":   {url.Values{"timeout_ms": {""}}, `{"timeout_ms":null}`},
		"another tick":   {url.Values{"served_statuses": {"404"}}, `{"served_statuses":[404]}`},
		"no stream":      {url.Values{"stream": nil}, `{"stream":false}`},
		"another price":  {url.Values{"price_usd": {"0.003"}}, `{"price_usd":"0.003"}`},
		"something more": {url.Values{"max_response_bytes": {"100"}}, `{"max_response_bytes":100}`},
	} {
		form := &typedForm{sets: sets, values: shown(), stood: stood}
		for field, v := range tt.typed {
			form.values[field] = v
		}
		if body, problems, err := form.document(true); err != nil || problems != nil || string(body) != tt.want {
			t.Errorf("%s: %s, %v, %v; want %s", name, body, problems, err, tt.want)
		}
	}
}

// A text that is no JSON is told beside its field, with everything else that is wrong, and nothing is sent.
func TestTypedForm_TellsAllProblemsBesideTheirFields(t *testing.T) {
	t.Parallel()
	form := newListing(url.Values{"slug": {"A"}, "tags": {"data,,B"}, "endpoint.method": {"POST"}, "endpoint.price_usd": {"0.002"}, "endpoint.path": {"/x"}, "endpoint.input_schema": {"{"},
		"endpoint.output_schema": {`{"required":["n"]}`}, "endpoint.output_example": {`{"m":1}`}})
	err := form.send(false, func(body []byte) error {
		_, err := catalog.ParseDraft(body, catalog.Rules{})
		return err
	}, func([]byte) error { t.Error("it was sent"); return nil })
	fields, ok := fieldsOf(err)
	if !ok {
		t.Fatal(err)
	}
	beside, others := besideFields(fields, form.sets...)
	for name, want := range map[string]string{"slug": "must have lower-case", "tags": "number 2: must have", "name": "is required", "base_url": "is required", "probe.path": "is required",
		"endpoint.input_schema": "JSON", "endpoint.output_example": "n"} {
		if name == "probe.path" {
			continue // the whole probe is missing, which stands beside its first field
		}
		if !strings.Contains(beside[name], want) {
			t.Errorf("%s: %q, want %q", name, beside[name], want)
		}
	}
	if !strings.Contains(beside["probe.method"], "is required") || len(others) > 0 {
		t.Errorf("probe: %q, others: %q", beside["probe.method"], others)
	}
}

func TestBesideFields_WhatHasNoFieldIsNotLost(t *testing.T) {
	t.Parallel()
	beside, others := besideFields([]refusal.Field{{Name: "/endpoints/0/input_example/a/0", Message: "must be a string"}, {Name: "/headers/X", Message: "is too long"}, {Message: "is odd"}},
		newListing(nil).sets...)
	if beside["endpoint.input_example"] != "a/0: must be a string" || !slices.Equal(others, []string{"/headers/X is too long", "is odd"}) {
		t.Errorf("%v, %q", beside, others)
	}
}
