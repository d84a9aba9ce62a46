package catalog

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/refusal"
)

// weather is a listing that is right, with everything that can be said.
const weather = `{"slug":"weather","name":"Weather","description":"Current weather by city","tags":["data"],
 "base_url":"https://api.weather.example/base/",
 "probe":{"method":"GET","path":"/healthz","statuses":["200-399","401"]},
 "endpoints":[{"method":"POST","path":"/v1/current","price_usd":"0.002","description":"Current weather",
   "input_schema":{"type":"object","required":["city"],"properties":{"city":{"type":"string","minLength":1}}},
   "input_example":{"city":"Lima"},"output_example":{"temp_c":19},"output_schema":{"type":"object"},"served_statuses":[404],
   "timeout_ms":5000,"max_response_bytes":4096,"trial_calls_per_day":5,"stream":false},
  {"method":"GET","path":"/v1/city/{id}","price_usd":"1",
   "input_schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"day":{"type":"string"}},"additionalProperties":false},
   "input_example":{"id":"lima"}}]}`

func production() Rules {
	return Rules{Assets: []AssetRule{{Decimals: 6, FloorUSD: decimal.RequireFromString("0.001")}}}
}

func TestParseDraft_ReadsTheWholeListing(t *testing.T) {
	t.Parallel()
	d, err := ParseDraft([]byte(weather), production())
	if err != nil {
		t.Fatal(err)
	}
	if d.Slug != "weather" || d.Name != "Weather" || !slices.Equal(d.Tags, []string{"data"}) {
		t.Errorf("draft = %+v", d)
	}
	if want := "https://api.weather.example/base"; d.BaseURL != want {
		t.Errorf("base URL = %q, want %q", d.BaseURL, want)
	}
	if d.Probe.Method != "GET" || d.Probe.Path != "/healthz" || d.Probe.Statuses.String() != "200-399,401" {
		t.Errorf("probe = %+v", d.Probe)
	}
	first, second := d.Endpoints[0], d.Endpoints[1]
	if first.PriceUSD.String() != "0.002" || first.Timeout != 5*time.Second || first.MaxResponseBytes != 4096 ||
		first.TrialCallsPerDay != 5 || !slices.Equal(first.ServedStatuses, []int{404}) || string(first.InputExample) != `{"city":"Lima"}` {
		t.Errorf("first endpoint = %+v", first)
	}
	if second.Timeout != 10*time.Second || second.MaxResponseBytes != 1048576 || second.TrialCallsPerDay != 0 ||
		second.MIMEType != "application/json" || second.OutputSchema != nil {
		t.Errorf("defaults of the second endpoint = %+v", second)
	}
}

// A stream has limits of its own, and defaults that fit what streams are.
func TestParseEndpointDraft_AStreamMayLastLongerAndSendMore(t *testing.T) {
	t.Parallel()
	parse := func(more string) (EndpointDraft, error) {
		return ParseEndpointDraft([]byte(`{"method":"GET","path":"/feed","price_usd":"0.002","stream":true`+more+`}`), production())
	}
	d, err := parse("")
	if err != nil || !d.Stream || d.Timeout != 5*time.Minute || d.IdleTimeout != 30*time.Second || d.MaxResponseBytes != 64<<20 || d.MIMEType != "text/event-stream" {
		t.Errorf("defaults of a stream = %+v, %v", d, err)
	}
	if d, err := parse(`,"timeout_ms":600000,"idle_timeout_ms":120000,"mime_type":"application/x-ndjson","output_example":{"n":1}`); err != nil ||
		d.Timeout != 10*time.Minute || d.MIMEType != "application/x-ndjson" {
		t.Errorf("a long stream = %+v, %v", d, err)
	}
	for more, want := range map[string]string{
		`,"timeout_ms":600001`:           "/timeout_ms",
		`,"idle_timeout_ms":99`:          "/idle_timeout_ms",
		`,"idle_timeout_ms":120001`:      "/idle_timeout_ms",
		`,"max_response_bytes":67108865`: "/max_response_bytes",
		`,"output_schema":{}`:            "/output_schema",
	} {
		if _, err := parse(more); !slices.Equal(namesOf(t, err), []string{want}) {
			t.Errorf("%s: fields = %q, want %s", more, namesOf(t, err), want)
		}
	}
	_, err = ParseEndpointDraft([]byte(`{"method":"HEAD","path":"/feed","price_usd":"0.002","stream":true}`), production())
	if !slices.Equal(namesOf(t, err), []string{"/stream"}) {
		t.Errorf("a stream of HEAD: fields = %q", namesOf(t, err))
	}
}

func TestIsEventStream_ReadsAContentTypeAsItIsMeant(t *testing.T) {
	t.Parallel()
	for contentType, want := range map[string]bool{
		"text/event-stream": true, "Text/Event-Stream; charset=utf-8": true, "text/event-stream; charset": true, "text/event-stream;": true,
		"text/plain": false, "text/event-streams": false, "": false, "application/json; x=text/event-stream": false,
	} {
		if got := IsEventStream(contentType); got != want {
			t.Errorf("%q: %v, want %v", contentType, got, want)
		}
	}
}

// edited returns the listing after a change to its decoded form.
func edited(t *testing.T, change func(listing, endpoint map[string]any)) []byte {
	t.Helper()
	var listing map[string]any
	if err := json.Unmarshal([]byte(weather), &listing); err != nil {
		t.Fatal(err)
	}
	change(listing, listing["endpoints"].([]any)[0].(map[string]any))
	body, err := json.Marshal(listing)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// namesOf returns the fields of a refusal with InvalidRequest, and fails on any other error.
func namesOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	no, ok := errors.AsType[*refusal.Error](err)
	if !ok || no.Reason != call.InvalidRequest {
		t.Fatalf("error = %v, want a refusal with invalid_request", err)
	}
	names := map[string]bool{}
	for _, f := range no.Fields {
		names[f.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func TestParseDraft_NamesTheMemberThatIsWrong(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	tests := map[string]struct {
		member string // set in the listing, or in its first endpoint where it starts with "endpoint."
		value  any
		want   string
	}{
		"a slug in capitals":                      {"slug", "Weather", "/slug"},
		"a slug that ends with a hyphen":          {"slug", "weather-", "/slug"},
		"a slug with a slash":                     {"slug", "a/b", "/slug"},
		"a slug that is too long":                 {"slug", strings.Repeat("a", 65), "/slug"},
		"a reserved slug":                         {"slug", "import", "/slug"},
		"a slug that is a command":                {"slug", "void", "/slug"},
		"a slug that is another command":          {"slug", "uphold", "/slug"},
		"a slug that asks for help":               {"slug", "help", "/slug"},
		"an empty slug":                           {"slug", "", "/slug"},
		"an empty name":                           {"name", "", "/name"},
		"a name that is a number":                 {"name", 1, "/name"},
		"a name that is null":                     {"name", nil, "/name"},
		"a name with a line break":                {"name", "a\nb", "/name"},
		"a name that turns the writing direction": {"name", "a\u202eb", "/name"},
		"a name that is too long":                 {"name", strings.Repeat("é", 81), "/name"},
		"a description with U+0000":               {"description", "a\x00b", "/description"},
		"too many tags":                           {"tags", []string{"a", "b", "c", "d", "e", "f"}, "/tags"},
		"a tag with a space":                      {"tags", []string{"a", "b c"}, "/tags/1"},
		"a tag twice":                             {"tags", []string{"a", "a"}, "/tags/1"},
		"tags that are a string":                  {"tags", "a", "/tags"},
		"a capacity that is a number":             {"capacity", 5, "/capacity"},
		"a capacity that is null":                 {"capacity", nil, "/capacity"},
		"a capacity with an unknown member":       {"capacity", object{"per_day": 1}, "/capacity/per_day"},
		"a concurrency of nothing":                {"capacity", object{"concurrency": 0}, "/capacity/concurrency"},
		"a concurrency that is too high":          {"capacity", object{"concurrency": 10_001}, "/capacity/concurrency"},
		"a concurrency in fractions":              {"capacity", object{"concurrency": 1.5}, "/capacity/concurrency"},
		"a rate of nothing":                       {"capacity", object{"requests_per_second": 0}, "/capacity/requests_per_second"},
		"a rate that is too low":                  {"capacity", object{"requests_per_second": 0.01}, "/capacity/requests_per_second"},
		"a rate that is too high":                 {"capacity", object{"requests_per_second": 10_000.1}, "/capacity/requests_per_second"},
		"a rate as a text":                        {"capacity", object{"requests_per_second": "5"}, "/capacity/requests_per_second"},
		"a rate that is null":                     {"capacity", object{"requests_per_second": nil}, "/capacity/requests_per_second"},
		"headers that are a list":                 {"headers", []any{"X-Api-Key"}, "/headers"},
		"headers that are null":                   {"headers", nil, "/headers"},
		"a header without a value":                {"headers", object{"X-Api-Key": nil}, "/headers/X-Api-Key"},
		"a header of ours":                        {"headers", object{"Market-Call": "x"}, "/headers/Market-Call"},
		"an unknown member":                       {"colour", "red", "/colour"},
		"an http base URL":                        {"base_url", "http://api.weather.example", "/base_url"},
		"no probe":                                {"probe", nil, "/probe"},
		"a probe that changes things":             {"probe", object{"method": "DELETE", "path": "/", "statuses": []string{"200"}}, "/probe/method"},
		"a probe by GET with a body":              {"probe", object{"path": "/", "statuses": []string{"200"}, "body": object{}}, "/probe/body"},
		"a probe by OPTIONS with a body":          {"probe", object{"method": "OPTIONS", "path": "/", "statuses": []string{"200"}, "body": 1}, "/probe/body"},
		"a probe with too long a body": {"probe", object{"method": "POST", "path": "/", "statuses": []string{"200"},
			"body": strings.Repeat("a", 4<<10-1)}, "/probe/body"},
		"a probe with U+0000 in its body":          {"probe", object{"method": "POST", "path": "/", "statuses": []string{"200"}, "body": "\x00"}, "/probe/body"},
		"a relative probe path":                    {"probe", object{"path": "healthz", "statuses": []string{"200"}}, "/probe/path"},
		"a probe path that leaves the prefix":      {"probe", object{"path": "/../x", "statuses": []string{"200"}}, "/probe/path"},
		"a probe path with parameters":             {"probe", object{"path": "/{x}", "statuses": []string{"200"}}, "/probe/path"},
		"a probe without statuses":                 {"probe", object{"path": "/"}, "/probe/statuses"},
		"a probe with malformed statuses":          {"probe", object{"path": "/", "statuses": []string{"2xx"}}, "/probe/statuses"},
		"a probe with an unknown member":           {"probe", object{"path": "/", "statuses": []string{"200"}, "x": 1}, "/probe/x"},
		"no endpoints":                             {"endpoints", []any{}, "/endpoints"},
		"too many endpoints":                       {"endpoints", make([]any, 101), "/endpoints"},
		"an endpoint that is a string":             {"endpoints", []any{"GET /"}, "/endpoints/0"},
		"an unknown method":                        {"endpoint.method", "TRACE", "/endpoints/0/method"},
		"a method in lower case":                   {"endpoint.method", "post", "/endpoints/0/method"},
		"a path with an empty segment":             {"endpoint.path", "/v1//x", "/endpoints/0/path"},
		"a path with a query":                      {"endpoint.path", "/v1?x=1", "/endpoints/0/path"},
		"a price that is a number":                 {"endpoint.price_usd", 0.002, "/endpoints/0/price_usd"},
		"a price below the floor":                  {"endpoint.price_usd", "0.0009", "/endpoints/0/price_usd"},
		"a media type without a slash":             {"endpoint.mime_type", "json", "/endpoints/0/mime_type"},
		"a served status that is no result":        {"endpoint.served_statuses", []int{404, 500}, "/endpoints/0/served_statuses/1"},
		"a served status twice":                    {"endpoint.served_statuses", []int{404, 404}, "/endpoints/0/served_statuses/1"},
		"a timeout just below its range":           {"endpoint.timeout_ms", 99, "/endpoints/0/timeout_ms"},
		"a timeout just above its range":           {"endpoint.timeout_ms", 120001, "/endpoints/0/timeout_ms"},
		"a timeout that is no whole number":        {"endpoint.timeout_ms", 1000.5, "/endpoints/0/timeout_ms"},
		"no room for a response":                   {"endpoint.max_response_bytes", 0, "/endpoints/0/max_response_bytes"},
		"a response past the store limit":          {"endpoint.max_response_bytes", 1048577, "/endpoints/0/max_response_bytes"},
		"no trial call for a caller":               {"endpoint.trial_calls_per_caller", 0, "/endpoints/0/trial_calls_per_caller"},
		"more for a caller than there are":         {"endpoint.trial_calls_per_caller", 6, "/endpoints/0/trial_calls_per_caller"},
		"a caller's trial calls that are null":     {"endpoint.trial_calls_per_caller", nil, "/endpoints/0/trial_calls_per_caller"},
		"negative trial calls":                     {"endpoint.trial_calls_per_day", -1, "/endpoints/0/trial_calls_per_day"},
		"a stream with an output schema":           {"endpoint.stream", true, "/endpoints/0/output_schema"},
		"a stream that is a word":                  {"endpoint.stream", "yes", "/endpoints/0/stream"},
		"a pause of what is no stream":             {"endpoint.idle_timeout_ms", 1000, "/endpoints/0/idle_timeout_ms"},
		"an event stream that is no stream":        {"endpoint.mime_type", "text/event-stream; charset=utf-8", "/endpoints/0/mime_type"},
		"a schema that is no schema":               {"endpoint.input_schema", object{"type": "objekt"}, "/endpoints/0/input_schema"},
		"a schema that is a string":                {"endpoint.input_schema", "{}", "/endpoints/0/input_schema"},
		"a schema that points to the web":          {"endpoint.input_schema", object{"$ref": "https://evil.example/s"}, "/endpoints/0/input_schema"},
		"a schema that points to a file":           {"endpoint.input_schema", object{"$ref": "file:///etc/passwd"}, "/endpoints/0/input_schema"},
		"a schema with a metaschema elsewhere":     {"endpoint.input_schema", object{"$schema": "https://evil.example/s"}, "/endpoints/0/input_schema"},
		"a schema with a bad pattern":              {"endpoint.input_schema", object{"pattern": "("}, "/endpoints/0/input_schema"},
		"a schema with a giant pattern":            {"endpoint.input_schema", object{"pattern": strings.Repeat("a", 257)}, "/endpoints/0/input_schema"},
		"a schema that is too long":                {"endpoint.input_schema", object{"title": strings.Repeat("a", 33<<10)}, "/endpoints/0/input_schema"},
		"a schema with U+0000":                     {"endpoint.input_schema", object{"title": "a\x00"}, "/endpoints/0/input_schema"},
		"an example that does not fit":             {"endpoint.input_example", object{"city": ""}, "/endpoints/0/input_example/city"},
		"an output example that does not fit":      {"endpoint.output_example", "warm", "/endpoints/0/output_example"},
		"an unknown member of an endpoint":         {"endpoint.price", "1", "/endpoints/0/price"},
		"an example that parameters can't express": {"endpoint.method", "GET", "/endpoints/0/input_example"},
	}
	for name, tt := range tests {
		body := edited(t, func(listing, endpoint map[string]any) {
			if member, ok := strings.CutPrefix(tt.member, "endpoint."); ok {
				endpoint[member] = tt.value
			} else {
				listing[tt.member] = tt.value
			}
			if name == "an example that parameters can't express" {
				endpoint["input_example"] = object{"city": 5}
			}
		})
		_, err := ParseDraft(body, production())
		if got := namesOf(t, err); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: fields = %q, want %q (%v)", name, got, tt.want, err)
		}
	}
}

func TestParseDraft_ReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := ParseDraft([]byte(`{"slug":"A","base_url":"ftp://x","x":1,"endpoints":[{"method":"GET","path":"x","price_usd":"0"}]}`), production())
	want := []string{"/base_url", "/endpoints/0/path", "/endpoints/0/price_usd", "/name", "/probe", "/slug", "/x"}
	if got := namesOf(t, err); !slices.Equal(got, want) {
		t.Errorf("fields = %q, want %q", got, want)
	}
}

// B129: a service that sells nothing but POST is probed by POST, with the input that its provider names.
func TestParseDraft_AProbeByPostMayHaveABody(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		body any
		want string
	}{
		"an object":                  {map[string]any{"city": "Lima & more", "n": json.Number("1.0")}, `{"city":"Lima & more","n":1.0}`},
		"as long as it may be":       {strings.Repeat("a", 4<<10-2), `"` + strings.Repeat("a", 4<<10-2) + `"`},
		"a number":                   {0, "0"},
		"a value that is false":      {false, "false"},
		"none, which is no body too": {nil, ""},
	} {
		body := edited(t, func(listing, _ map[string]any) {
			probe := map[string]any{"method": "POST", "path": "/status", "statuses": []string{"200"}}
			if tt.body != nil {
				probe["body"] = tt.body
			}
			listing["probe"] = probe
		})
		d, err := ParseDraft(body, production())
		if err != nil || d.Probe.Method != "POST" || string(d.Probe.Body) != tt.want {
			t.Errorf("%s: probe %s with the body %.50q, %v, want POST with %.50q", name, d.Probe.Method, d.Probe.Body, err, tt.want)
		}
	}
}

func TestParseDraft_RefusesTwoEndpointsForOneRequest(t *testing.T) {
	t.Parallel()
	body := edited(t, func(listing, endpoint map[string]any) {
		listing["endpoints"] = append(listing["endpoints"].([]any), map[string]any{"method": "GET", "path": "/v1/city/{name}", "price_usd": "1"})
	})
	_, err := ParseDraft(body, production())
	if got, want := namesOf(t, err), []string{"/endpoints/2/path"}; !slices.Equal(got, want) {
		t.Errorf("fields = %q, want %q", got, want)
	}
}

func TestParseDraft_RefusesWhatIsNotOneJSONObject(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":            "",
		"a list":             "[]",
		"two values":         "{} {}",
		"cut short":          `{"slug":`,
		"a member twice":     `{"slug":"a","slug":"b"}`,
		"not UTF-8":          "{\"slug\":\"\xff\"}",
		"nested too deep":    strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200),
		"a giant exponent":   `{"timeout_ms":1e999999999}`,
		"longer than a meg":  `{"slug":"` + strings.Repeat("a", 1<<20) + `"}`,
		"a very long number": `{"timeout_ms":` + strings.Repeat("9", 1000) + `}`,
	} {
		_, err := ParseDraft([]byte(body), production())
		no, ok := errors.AsType[*refusal.Error](err)
		if !ok || no.Reason != call.InvalidRequest || no.Detail == "" {
			t.Errorf("%s: error = %v, want a refusal that says why", name, err)
		}
	}
}

func TestParsePrice_AcceptsOnlyWhatEveryAssetExpressesExactly(t *testing.T) {
	t.Parallel()
	wide := AssetRule{Decimals: 18, FloorUSD: decimal.RequireFromString("0.002")}
	// B45: what is not a whole number of base units is no price, whichever way it is written.
	tests := map[string]struct {
		price string
		also  []AssetRule
		good  bool
	}{
		"the floor":                       {"0.001", nil, true},
		"just below the floor":            {"0.000999", nil, false},
		"six digits":                      {"0.010001", nil, true},
		"seven digits":                    {"0.0100001", nil, false},
		"seven digits, the last a zero":   {"0.0100010", nil, true},
		"a whole number":                  {"12", nil, true},
		"below the other network's floor": {"0.001", []AssetRule{wide}, true}, // it is not asked for there
		"below both floors":               {"0.000999", []AssetRule{wide}, false},
		"the most":                        {"1000", nil, true},
		"more than the most":              {"1000.000001", nil, false},
		"base units for dollars":          {"2000", nil, false},
		"the other asset has more digits": {"0.0100001", []AssetRule{wide}, false},
		"below one base unit":             {"0.0000001", nil, false},
		"zero":                            {"0", nil, false},
		"zero with digits":                {"0.000000", nil, false},
		"scientific":                      {"1e-7", nil, false},
		"scientific and giant":            {"1e999999999", nil, false},
		"no leading digit":                {".5", nil, false},
		"no digit after the point":        {"5.", nil, false},
		"underscores":                     {"1_000", nil, false},
		"a currency sign":                 {"$0.01", nil, false},
		"a comma":                         {"0,01", nil, false},
		"negative":                        {"-1", nil, false},
		"a plus sign":                     {"+1", nil, false},
		"a leading zero":                  {"01", nil, false},
		"a space":                         {" 1", nil, false},
		"full-width digits":               {"１", nil, false},
		"empty":                           {"", nil, false},
		"past what is stored":             {"1000000000000000000", nil, false},
		"not a number":                    {"NaN", nil, false},
	}
	for name, tt := range tests {
		rules := production()
		rules.Assets = append(rules.Assets, tt.also...)
		usd, err := ParsePrice(tt.price, rules)
		if (err == nil) != tt.good {
			t.Errorf("%s: ParsePrice(%q) = %s, %v, want good = %v", name, tt.price, usd, err, tt.good)
		}
		if err != nil && err.Error() == "" {
			t.Errorf("%s: no text", name)
		}
	}
}

func TestParseBaseURL_StoresTheParsedForm(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text    string
		private bool
		want    string // empty: refused
	}{
		"a host":                             {"https://api.example.com", false, "https://api.example.com"},
		"a trailing slash":                   {"https://api.example.com/", false, "https://api.example.com"},
		"a prefix":                           {"https://api.example.com/v2/", false, "https://api.example.com/v2"},
		"capitals":                           {"HTTPS://API.Example.com", false, "https://api.example.com"},
		"the port that https implies":        {"https://api.example.com:443", false, "https://api.example.com"},
		"the other public port":              {"https://api.example.com:8443", false, "https://api.example.com:8443"},
		"a public address":                   {"https://93.184.216.34", false, "https://93.184.216.34"},
		"a public IPv6 address":              {"https://[2606:2800:220:1::1]/x", false, "https://[2606:2800:220:1::1]/x"},
		"http in development":                {"http://127.0.0.1:8080", true, "http://127.0.0.1:8080"},
		"localhost in development":           {"http://localhost:8080/x", true, "http://localhost:8080/x"},
		"http":                               {"http://api.example.com", false, ""},
		"a user and a password":              {"https://user:pw@host.example/", false, ""},
		"a user, in development":             {"https://user@host.example/", true, ""},
		"a file":                             {"file:///etc/passwd", true, ""},
		"gopher":                             {"gopher://host.example", true, ""},
		"a database port":                    {"https://host.example:5432/", false, ""},
		"a fragment that looks like a host":  {"https://host.example#@10.0.0.1/", false, ""},
		"an empty fragment":                  {"https://host.example/#", false, ""},
		"a query":                            {"https://host.example/?x=1", false, ""},
		"an empty query":                     {"https://host.example/?", false, ""},
		"a tab":                              {"https://host.example/\tx", false, ""},
		"a line break":                       {"https://host.example\n", false, ""},
		"a backslash":                        {`https://host.example\@10.0.0.1`, false, ""},
		"no host":                            {"https:///x", false, ""},
		"opaque":                             {"https:host.example", false, ""},
		"relative":                           {"//host.example", false, ""},
		"loopback":                           {"https://127.0.0.1/", false, ""},
		"loopback, mapped":                   {"https://[::ffff:127.0.0.1]/", false, ""},
		"metadata, mapped":                   {"https://[::ffff:a9fe:a9fe]/", false, ""},
		"NAT64":                              {"https://[64:ff9b::7f00:1]/", false, ""},
		"unspecified":                        {"https://[::]/", false, ""},
		"an address as one number":           {"https://2130706433/", false, ""},
		"an address in hexadecimal":          {"https://0x7f.0x1/", false, ""},
		"an address with too few parts":      {"https://127.1/", true, ""},
		"a single label":                     {"https://intranet/", false, ""},
		"localhost":                          {"https://localhost/", false, ""},
		"below localhost":                    {"https://a.localhost/", false, ""},
		"an underscore":                      {"https://a_b.example/", false, ""},
		"letters outside ASCII":              {"https://exämple.com/", false, ""},
		"a zone":                             {"https://[fe80::1%25eth0]/", true, ""},
		"a prefix that climbs":               {"https://host.example/../x", false, ""},
		"a prefix with an escape":            {"https://host.example/a%2Fb", false, ""},
		"a prefix with a parameter":          {"https://host.example/{x}", false, ""},
		"a colon without a port":             {"https://host.example:/", false, ""},
		"port 0":                             {"https://host.example:0/", true, ""},
		"a port past the last one":           {"https://host.example:65536/", true, ""},
		"a port with a leading zero":         {"https://host.example:0443/", true, ""},
		"longer than the limit":              {"https://host.example/" + strings.Repeat("a", 300), false, ""},
		"a private address in development":   {"http://10.0.0.1", true, "http://10.0.0.1"},
		"https with its port in development": {"https://localhost:443", true, "https://localhost"},
	}
	for name, tt := range tests {
		got, err := ParseBaseURL(tt.text, Rules{AllowPrivate: tt.private})
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: ParseBaseURL(%q) = %q, %v, want %q", name, tt.text, got, err, tt.want)
		}
	}
}
