package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/shopspring/decimal"

	"market/internal/catalog"
)

// example returns a fresh copy of the example of a request body.
func (d document) example(t *testing.T, operation string) map[string]any {
	t.Helper()
	v, ok := d.at(operation + "/requestBody/content/application~1json/example")
	if !ok {
		t.Fatalf("%s has no example", operation)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var example map[string]any
	if err := json.Unmarshal(text, &example); err != nil {
		t.Fatal(err)
	}
	return example
}

// draftRules are those of a server with one asset of six decimals.
var draftRules = catalog.Rules{Assets: []catalog.AssetRule{{Decimals: 6}}}

func TestOpenAPI_TheExampleOfAListingShowsEveryMember(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	service := d.example(t, "/paths/~1api~1v1~1services/post")
	stream := d.example(t, "/paths/~1api~1v1~1services~1{slug}~1endpoints/post")
	for schema, object := range map[string]map[string]any{
		"ServiceDraft": service, "ProbeDraft": service["probe"].(map[string]any), "Capacity": service["capacity"].(map[string]any), "EndpointDraft": service["endpoints"].([]any)[0].(map[string]any),
	} {
		all, _ := d.members("/components/schemas/" + schema)
		for _, name := range all {
			_, shown := object[name]
			if _, ofStreams := stream[name]; !shown && !(schema == "EndpointDraft" && ofStreams) {
				t.Errorf("the example of %s lacks %s", schema, name)
			}
		}
	}
}

// What the schema lets through and what the server takes are one, as far as a schema can say it.
func TestOpenAPI_AListingThatFitsIsTakenAndOneThatDoesNotIsRefused(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	set := func(name string, value any) func(s, p, e map[string]any) {
		return func(s, _, _ map[string]any) { s[name] = value }
	}
	probe := func(name string, value any) func(s, p, e map[string]any) {
		return func(_, p, _ map[string]any) { p[name] = value }
	}
	endpoint := func(name string, value any) func(s, p, e map[string]any) {
		return func(_, _, e map[string]any) { e[name] = value }
	}
	capacity := func(name string, value any) func(s, p, e map[string]any) {
		return func(s, _, _ map[string]any) { s["capacity"] = map[string]any{name: value} }
	}
	stream := func(name string, value any) func(s, p, e map[string]any) {
		return func(_, _, e map[string]any) { asStream(e); e[name] = value }
	}
	for what, tt := range map[string]struct {
		change func(service, probe, endpoint map[string]any)
		taken  bool
	}{
		"the example":               {func(_, _, _ map[string]any) {}, true},
		"the least":                 {func(s, p, e map[string]any) { least(s, p, e) }, true},
		"a probe by OPTIONS":        {func(_, p, _ map[string]any) { p["method"] = "OPTIONS"; delete(p, "body") }, true},
		"a probe by POST, no body":  {func(_, p, _ map[string]any) { delete(p, "body") }, true},
		"a status and a range":      {probe("statuses", []any{"200-299,401", "404"}), true},
		"an example that is a list": {func(_, _, e map[string]any) { delete(e, "output_schema"); e["output_example"] = []any{1} }, true},

		"a rate in tenths":         {capacity("requests_per_second", 0.1), true},
		"the highest rate":         {capacity("requests_per_second", 10_000), true},
		"one call at once":         {capacity("concurrency", 1), true},
		"no limit at all":          {set("capacity", map[string]any{}), true},
		"a stream":                 {stream("mime_type", "text/event-stream"), true},
		"a stream of other things": {stream("mime_type", "application/x-ndjson"), true},
		"a long and large stream":  {func(_, _, e map[string]any) { asStream(e); e["timeout_ms"], e["max_response_bytes"] = 600_000, 64<<20 }, true},

		"no probe":                    {func(s, _, _ map[string]any) { delete(s, "probe") }, false},
		"no endpoint":                 {set("endpoints", []any{}), false},
		"an unknown member":           {set("colour", "red"), false},
		"no header":                   {set("headers", map[string]any{}), true},
		"headers without a name":      {set("headers", map[string]any{"": "k"}), false},
		"a header that is no token":   {set("headers", map[string]any{"X Key": "k"}), false},
		"a header without a value":    {set("headers", map[string]any{"X-Api-Key": ""}), false},
		"a header of two lines":       {set("headers", map[string]any{"X-Api-Key": "a\nb"}), false},
		"a header that is a number":   {set("headers", map[string]any{"X-Api-Key": 1}), false},
		"a slug in capitals":          {set("slug", "Weather"), false},
		"a reserved slug":             {set("slug", "admin"), false},
		"an empty name":               {set("name", ""), false},
		"a name that is too long":     {set("name", strings.Repeat("n", 81)), false},
		"no name but null":            {set("name", nil), false},
		"six tags":                    {set("tags", []any{"a", "b", "c", "d", "e", "f"}), false},
		"a tag twice":                 {set("tags", []any{"a", "a"}), false},
		"an empty base URL":           {set("base_url", ""), false},
		"a probe by PUT":              {probe("method", "PUT"), false},
		"a probe by GET with a body":  {probe("method", "GET"), false},
		"a body and no method":        {func(_, p, _ map[string]any) { delete(p, "method") }, false},
		"a body that is null":         {probe("body", nil), false},
		"a probe path without slash":  {probe("path", "healthz"), false},
		"no status":                   {probe("statuses", []any{}), false},
		"an informational status":     {probe("statuses", []any{"100"}), false},
		"a class of statuses":         {probe("statuses", []any{"2xx"}), false},
		"a rate of nothing":           {capacity("requests_per_second", 0), false},
		"a rate in hundredths":        {capacity("requests_per_second", 0.15), false},
		"a rate that is too high":     {capacity("requests_per_second", 10_000.1), false},
		"no call at once":             {capacity("concurrency", 0), false},
		"half a call at once":         {capacity("concurrency", 1.5), false},
		"too many calls at once":      {capacity("concurrency", 10_001), false},
		"a capacity of another kind":  {capacity("requests_per_minute", 1), false},
		"a capacity that is a number": {set("capacity", 1), false},
		"a method that is not sold":   {endpoint("method", "OPTIONS"), false},
		"a price with a comma":        {endpoint("price_usd", "0,002"), false},
		"a price with an exponent":    {endpoint("price_usd", "2e-3"), false},
		"a price that is a number":    {endpoint("price_usd", 0.002), false},
		"a status that cannot serve":  {endpoint("served_statuses", []any{403}), false},
		"a served status twice":       {endpoint("served_statuses", []any{404, 404}), false},
		"too little time":             {endpoint("timeout_ms", 99), false},
		"too much time":               {endpoint("timeout_ms", 120_001), false},
		"no room for an answer":       {endpoint("max_response_bytes", 0), false},
		"fewer trials than none":      {endpoint("trial_calls_per_day", -1), false},
		"no trial for a caller":       {endpoint("trial_calls_per_caller", 0), false},
		"half a trial for a caller":   {endpoint("trial_calls_per_caller", 0.5), false},
		"all trials for a caller":     {endpoint("trial_calls_per_caller", 5), true},
		"a stream that is a word":     {endpoint("stream", "yes"), false},
		"a pause of what is whole":    {endpoint("idle_timeout_ms", 1000), false},
		"events that are no stream":   {endpoint("mime_type", "text/event-stream; charset=utf-8"), false},
		"a stream of HEAD":            {stream("method", "HEAD"), false},
		"a stream with a schema":      {stream("output_schema", map[string]any{}), false},
		"a stream without an end":     {stream("timeout_ms", 600_001), false},
		"a stream of too much":        {stream("max_response_bytes", 64<<20+1), false},
		"a stream with a long pause":  {stream("idle_timeout_ms", 120_001), false},
		"a schema that is no object":  {endpoint("input_schema", true), false},
		"an example that is null":     {endpoint("output_example", nil), false},
		"a media type that is number": {endpoint("mime_type", 1), false},
	} {
		service := d.example(t, "/paths/~1api~1v1~1services/post")
		tt.change(service, service["probe"].(map[string]any), service["endpoints"].([]any)[0].(map[string]any))
		body, err := json.Marshal(service)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.fits("ServiceDraft", service); (err == nil) != tt.taken {
			t.Errorf("%s: the schema takes it: %v, want %v (%v)", what, err == nil, tt.taken, err)
		}
		if _, err := catalog.ParseDraft(body, draftRules); (err == nil) != tt.taken {
			t.Errorf("%s: the server takes it: %v, want %v (%v)", what, err == nil, tt.taken, err)
		}
	}
}

// asStream makes the example's endpoint a stream.
func asStream(endpoint map[string]any) {
	delete(endpoint, "output_schema")
	endpoint["stream"] = true
}

// least takes everything away that need not be there.
func least(service, probe, endpoint map[string]any) {
	for _, name := range []string{"description", "tags", "headers"} {
		delete(service, name)
	}
	delete(probe, "method")
	delete(probe, "body")
	for name := range endpoint {
		if name != "method" && name != "path" && name != "price_usd" {
			delete(endpoint, name)
		}
	}
}

func TestOpenAPI_TheOtherBodiesAreTakenAsTheirExamplesShow(t *testing.T) {
	t.Parallel()
	d := openDocument(t)
	encode := func(operation string) []byte {
		text, err := json.Marshal(d.example(t, operation))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if _, err := catalog.ParseEndpointDraft(encode("/paths/~1api~1v1~1services~1{slug}~1endpoints/post"), draftRules); err != nil {
		t.Error(err)
	}
	if _, err := catalog.ParseHeaders(encode("/paths/~1api~1v1~1services~1{slug}~1headers/put"), false); err != nil {
		t.Error(err)
	}
	if _, err := catalog.ParseHeaders(encode("/paths/~1api~1v1~1services~1{slug}~1headers/patch"), true); err != nil {
		t.Error(err)
	}
	for body, taken := range map[string]bool{
		`{"after_seconds":0}`: true, `{"after_seconds":604800}`: true, `{}`: true, `{"after_seconds":604801}`: false, `{"after_seconds":-1}`: false,
		`{"after_seconds":"1"}`: false, `{"after_seconds":1.5}`: false, `{"after":1}`: false, `[]`: false,
	} {
		decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		fits := d.check("/components/schemas/SecretChange", decoded) == nil
		if _, err := catalog.ParseSecretChange([]byte(body)); fits != taken || (err == nil) != taken {
			t.Errorf("%s: the schema takes it: %v, the server: %v, want %v", body, fits, err == nil, taken)
		}
	}
	service := catalog.Service{Slug: "weather", Name: "Weather", BaseURL: "https://api.weather.example", Probe: catalog.Probe{Method: "GET", Path: "/", Statuses: parsed(t, "200")}}
	endpoint := catalog.Endpoint{Method: "GET", Path: "/v1", MIMEType: "application/json", Timeout: time.Second, MaxResponseBytes: 1,
		Prices: []catalog.Price{{USD: decimal.NewFromInt(1)}}}
	for schema, parse := range map[string]func([]byte) error{
		"ServicePatch":  func(body []byte) error { _, err := service.ParsePatch(body, draftRules); return err },
		"EndpointPatch": func(body []byte) error { _, err := endpoint.ParsePatch(body, draftRules); return err },
		"Order":         func(body []byte) error { _, _, err := catalog.ParseOrder(body); return err },
		"Why":           func(body []byte) error { _, err := catalog.ParseReason(body); return err },
		"AppealDraft":   func(body []byte) error { _, err := catalog.ParseAppeal(body); return err },
	} {
		operation := map[string]string{"ServicePatch": "/paths/~1api~1v1~1services~1{slug}/patch",
			"EndpointPatch": "/paths/~1api~1v1~1services~1{slug}~1endpoints~1{id}/patch", "Order": "/paths/~1api~1v1~1admin~1services~1{slug}~1suspend/post",
			"Why":         "/paths/~1api~1v1~1admin~1strikes~1{id}~1void/post",
			"AppealDraft": "/paths/~1api~1v1~1services~1{slug}~1appeals/post"}[schema]
		bodies := map[string]bool{string(encode(operation)): true, `{"surprise":1}`: false}
		for body, taken := range map[string]map[string]bool{
			"ServicePatch": {`{}`: true, `{"description":null,"tags":null,"probe":{"method":null}}`: true, `{"slug":"weather","name":"x"}`: true, `{"name":null}`: false,
				`{"base_url":""}`: false, `{"probe":null}`: false, `{"probe":{"statuses":[]}}`: false, `{"tags":["A"]}`: false, `{"headers":{}}`: true, `{"headers":{"X-Api-Key":null}}`: true,
				`{"headers":null}`: true, `{"headers":{"X Y":"k"}}`: false, `{"capacity":{"concurrency":null}}`: true, `{"capacity":5}`: false},
			"EndpointPatch": {`{}`: true, `{"price_usd":"0.003","stream":false}`: true, `{"price_usd":3}`: false, `{"price_usd":null}`: false,
				`{"input_schema":null,"timeout_ms":null,"served_statuses":null}`: true, `{"input_schema":true}`: false, `{"timeout_ms":99}`: false, `{"stream":1}`: false, `{"stream":true,"mime_type":null}`: true},
			"AppealDraft": {`{"text":"no"}`: true, `{}`: false, `{"text":""}`: false, `{"text":"no","strike":"x"}`: false, `{"text":"no","strike":null}`: false},
			"Order": {`{"reason":"x"}`: true, `{"state_since":"2026-11-30T01:07:30.000000Z"}`: false, `{"reason":"x","state_since":"2026-11-30T01:07:30.000000Z"}`: true,
				`{"reason":"x","state_since":"yesterday"}`: false, `{"reason":"x","state_since":""}`: false, `{"reason":"x","state_since":null}`: false},
			"Why": {`{"reason":"x"}`: true, `{}`: false, `{"reason":""}`: false, `{"reason":null}`: false, `{"reason":"x","silent":true}`: false},
		}[schema] {
			bodies[body] = taken
		}
		for body, taken := range bodies {
			decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(body)))
			if err != nil {
				t.Fatal(err)
			}
			if fits, err := d.check("/components/schemas/"+schema, decoded) == nil, parse([]byte(body)); fits != taken || (err == nil) != taken {
				t.Errorf("%s %s: the schema takes it: %v, the server: %v (%v), want %v", schema, body, fits, err == nil, err, taken)
			}
		}
	}
}

func parsed(t *testing.T, statuses string) catalog.Statuses {
	t.Helper()
	s, err := catalog.ParseStatuses(statuses)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
