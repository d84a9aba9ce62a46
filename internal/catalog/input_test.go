package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"market/internal/call"
	"market/internal/refusal"
)

// endpointWith returns a prepared endpoint with an input schema and an example; either may be empty.
func endpointWith(t *testing.T, method, inputSchema, inputExample string) *Endpoint {
	t.Helper()
	e := &Endpoint{Method: method, Path: "/c/{id}", InputSchema: json.RawMessage(inputSchema), InputExample: json.RawMessage(inputExample)}
	if err := e.prepare(nil); err != nil {
		t.Fatal(err)
	}
	return e
}

func reasonOf(t *testing.T, err error) call.Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	no, ok := errors.AsType[*refusal.Error](err)
	if !ok {
		t.Fatalf("error = %v, want a refusal", err)
	}
	return no.Reason
}

const citySchema = `{"type":"object","required":["city"],"properties":{"city":{"type":"string","minLength":1},"n":{"type":"integer","maximum":9007199254740993}}}`

func TestEndpoint_CheckInput_Body(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body, contentType string
		want              call.Reason
	}{
		"what the schema asks for":             {`{"city":"Lima"}`, "application/json", ""},
		"with a charset":                       {`{"city":"Lima"}`, "application/json; charset=UTF-8", ""},
		"another JSON type":                    {`{"city":"Lima"}`, "application/geo+json", ""},
		"no content type":                      {`{"city":"Lima"}`, "", ""},
		"a form's content type":                {`{"city":"Lima"}`, "application/x-www-form-urlencoded", call.InputInvalid},
		"another charset":                      {`{"city":"Lima"}`, "application/json; charset=latin1", call.InputInvalid},
		"a malformed content type":             {`{"city":"Lima"}`, "json", call.InputInvalid},
		"no body":                              {"", "application/json", call.InputEmpty},
		"only spaces":                          {" \n", "application/json", call.InputEmpty},
		"an empty object":                      {"{}", "application/json", call.InputInvalid},
		"not JSON":                             {"city=Lima", "application/json", call.InputInvalid},
		"cut short":                            {`{"city":"Li`, "application/json", call.InputInvalid},
		"two values":                           {`{"city":"Lima"}{"city":"Lima"}`, "application/json", call.InputInvalid},
		"not UTF-8":                            {"{\"city\":\"\xff\"}", "application/json", call.InputInvalid},
		"a byte order mark":                    {"\ufeff" + `{"city":"Lima"}`, "application/json", call.InputInvalid},
		"a member twice":                       {`{"city":"Lima","city":5}`, "application/json", call.InputInvalid},
		"an integer past 2^53, at its maximum": {`{"city":"Lima","n":9007199254740993}`, "application/json", ""},
		"an integer past 2^53, one above it":   {`{"city":"Lima","n":9007199254740994}`, "application/json", call.InputInvalid},
		"a giant exponent":                     {`{"city":"Lima","n":1e999999999}`, "application/json", call.InputInvalid},
		"nested too deep":                      {`{"city":"Lima","x":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, "application/json", call.InputInvalid},
	}
	e := endpointWith(t, "POST", citySchema, "")
	for name, tt := range tests {
		err := e.CheckInput(Input{Body: []byte(tt.body), ContentType: tt.contentType})
		if got := reasonOf(t, err); got != tt.want {
			t.Errorf("%s: reason = %q, want %q (%v)", name, got, tt.want, err)
		}
	}
}

func TestEndpoint_CheckInput_Parameters(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","required":["id","day"],"additionalProperties":false,"properties":{"id":{"type":"string","maxLength":4},
		"day":{"type":"string"},"tag":{"type":"array","items":{"maxLength":2}}}}`
	tests := map[string]struct {
		id, query, body string
		want            call.Reason
	}{
		"path and query":                      {"lima", "day=mon", "", ""},
		"a repeated key is a list":            {"lima", "day=mon&tag=a&tag=b", "", ""},
		"one element of the list is wrong":    {"lima", "day=mon&tag=a&tag=bcd", "", call.InputInvalid},
		"the path parameter is wrong":         {"trujillo", "day=mon", "", call.InputInvalid},
		"one is missing":                      {"lima", "", "", call.InputInvalid},
		"one is unknown":                      {"lima", "day=mon&x=1", "", call.InputInvalid},
		"the path's parameter again":          {"lima", "day=mon&id=x", "", call.InputInvalid},
		"a malformed escape":                  {"lima", "day=%zz", "", call.InputInvalid},
		"a semicolon, which servers disagree": {"lima", "day=mon;x=1", "", call.InputInvalid},
		"a body":                              {"lima", "day=mon", "{}", call.InputInvalid},
	}
	for _, method := range []string{"GET", "HEAD", "DELETE"} {
		e := endpointWith(t, method, schema, "")
		for name, tt := range tests {
			err := e.CheckInput(Input{Params: map[string]string{"id": tt.id}, RawQuery: tt.query, Body: []byte(tt.body)})
			if got := reasonOf(t, err); got != tt.want {
				t.Errorf("%s %s: reason = %q, want %q (%v)", method, name, got, tt.want, err)
			}
		}
	}
	e := endpointWith(t, "GET", `{"required":["q"]}`, "")
	if got := reasonOf(t, e.CheckInput(Input{})); got != call.InputEmpty {
		t.Errorf("no parameter at all: reason = %q, want %q", got, call.InputEmpty)
	}
}

func TestEndpoint_CheckInput_WithoutASchemaAnythingGoes(t *testing.T) {
	t.Parallel()
	if err := endpointWith(t, "POST", "", "").CheckInput(Input{Body: []byte("\xff"), ContentType: "image/png"}); err != nil {
		t.Errorf("error = %v", err)
	}
}

func TestEndpoint_CheckInput_SaysWhichMembersAreWrongWithinBounds(t *testing.T) {
	t.Parallel()
	e := endpointWith(t, "POST", `{"properties":{"a":{"type":"string"},"b":{"minimum":5}},"additionalProperties":{"type":"null"}}`, "")
	err := e.CheckInput(Input{Body: []byte(`{"a":1,"b":2}`)})
	no, ok := errors.AsType[*refusal.Error](err)
	if !ok || len(no.Fields) != 2 {
		t.Fatalf("error = %v, want a refusal that names two members", err)
	}
	got := map[string]bool{no.Fields[0].Name: true, no.Fields[1].Name: true}
	if !got["/a"] || !got["/b"] || no.Fields[0].Message == "" {
		t.Errorf("fields = %v, want /a and /b", no.Fields)
	}

	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, `,"%s%d":1`, strings.Repeat("é", 300), i)
	}
	err = e.CheckInput(Input{Body: []byte(`{"c":1` + many.String() + `}`)})
	no, ok = errors.AsType[*refusal.Error](err)
	if !ok || len(no.Fields) != problemsMax {
		t.Fatalf("got %d fields, want %d", len(no.Fields), problemsMax)
	}
	for _, f := range no.Fields {
		if len(f.Name) > problemLenMax || len(f.Message) > problemLenMax {
			t.Errorf("field of %d and %d bytes, want at most %d", len(f.Name), len(f.Message), problemLenMax)
		}
	}
}

func TestEndpoint_CheckInput_StopsWorkThatGrowsWithoutEnd(t *testing.T) {
	t.Parallel()
	var doubling strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 60 { // 2^60 steps
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d60":{"type":"string"}}}`)
	deep := `{"$ref":"#/$defs/n","$defs":{"n":{"allOf":[{"items":{"$ref":"#/$defs/n"}},{"items":{"$ref":"#/$defs/n"}}]}}}`
	wide := `{"allOf":[` + strings.Repeat(`{"items":{"not":{"type":"null"}}},`, 500) + `{}]}`
	// Long texts count as many steps each, which keeps this test short.
	text := `"` + strings.Repeat("a", 64<<10) + `"`
	tests := map[string]struct{ schema, body string }{
		"references that double at each level":  {doubling.String(), text},
		"the same inside a negation":            {strings.Replace(doubling.String(), `"$ref":"#/$defs/d0"`, `"not":{"$ref":"#/$defs/d0"}`, 1), text},
		"the same under an older draft":         {strings.Replace(doubling.String(), `{`, `{"$schema":"http://json-schema.org/draft-07/schema#",`, 1), text},
		"the same behind dynamic references":    {strings.ReplaceAll(doubling.String(), `{"$ref":`, `{"$dynamicRef":`), text},
		"the same in a condition":               {`{"if":` + strings.Replace(doubling.String(), `{`, `{"$id":"x:y",`, 1) + `}`, text},
		"a list that doubles at each level":     {deep, strings.Repeat("[", 100) + text + strings.Repeat("]", 100)},
		"many checks of each element of a list": {wide, `[` + strings.Repeat(text+",", 10) + text + `]`},
		"many patterns against one long string": {`{"allOf":[` + strings.Repeat(`{"pattern":"^(a|aa)+$"},`, 100) + `{}]}`, text},
	}
	for name, tt := range tests {
		e := endpointWith(t, "POST", tt.schema, "")
		err := e.CheckInput(Input{Body: []byte(tt.body)})
		no, ok := errors.AsType[*refusal.Error](err)
		if !ok || no.Reason != call.InputInvalid || len(no.Fields) != 1 || no.Fields[0].Message != errTooComplex.Error() {
			t.Errorf("%s: error = %v, want a refusal that says it is too complex", name, err)
		}
	}
}

func TestEndpoint_CheckInput_CountsEachInputAfresh(t *testing.T) {
	t.Parallel()
	e := endpointWith(t, "POST", `{"minLength":1}`, "")
	body := []byte(`"` + strings.Repeat("a", stepBytes*schemaStepsMax/2) + `"`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 4 { // together far past the limit of one
				if err := e.CheckInput(Input{Body: body}); err != nil {
					t.Errorf("error = %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestEndpoint_MatchesExample_ComparesJSONAndNotItsSpelling(t *testing.T) {
	t.Parallel()
	const example = `{"city":"Lima","n":1.0,"list":[1,{"a":null}]}`
	tests := map[string]struct {
		body string
		want bool
	}{
		"the same bytes":     {example, true},
		"another order":      {`{"list":[1,{"a":null}],"n":1.0,"city":"Lima"}`, true},
		"another spelling":   {"\n{ \"n\" : 10e-1, \"city\":\"\\u004cima\", \"list\":[1.00,{\"a\":null}] }", true},
		"another value":      {`{"city":"Cusco","n":1,"list":[1,{"a":null}]}`, false},
		"one member more":    {`{"city":"Lima","n":1,"list":[1,{"a":null}],"x":1}`, false},
		"one member less":    {`{"city":"Lima","n":1}`, false},
		"a number as text":   {`{"city":"Lima","n":"1.0","list":[1,{"a":null}]}`, false},
		"another list order": {`{"city":"Lima","n":1,"list":[{"a":null},1]}`, false},
		"not JSON":           {`x`, false},
		"nothing":            {``, false},
	}
	for _, schema := range []string{"", `{"type":"object"}`} {
		e := endpointWith(t, "POST", schema, example)
		for name, tt := range tests {
			if got := e.MatchesExample(Input{Body: []byte(tt.body)}); got != tt.want {
				t.Errorf("%s: MatchesExample = %v, want %v", name, got, tt.want)
			}
		}
	}
	if endpointWith(t, "POST", "", "").MatchesExample(Input{Body: []byte("{}")}) {
		t.Error("an endpoint without an example has one")
	}
	get := endpointWith(t, "GET", "", `{"id":"lima","tag":["a","b"]}`)
	if !get.MatchesExample(Input{Params: map[string]string{"id": "lima"}, RawQuery: "tag=a&tag=b"}) {
		t.Error("the example as parameters does not match")
	}
	if get.MatchesExample(Input{Params: map[string]string{"id": "lima"}, RawQuery: "tag=b&tag=a"}) {
		t.Error("other parameters match the example")
	}
}

func TestEndpoint_CheckOutput(t *testing.T) {
	t.Parallel()
	e := &Endpoint{Method: "GET", Path: "/", OutputSchema: json.RawMessage(`{"type":"object"}`)}
	if err := e.prepare(nil); err != nil {
		t.Fatal(err)
	}
	for body, good := range map[string]bool{`{"a":1}`: true, `[]`: false, ``: false, `<html>`: false, `{"a":`: false} {
		if err := e.CheckOutput([]byte(body)); (err == nil) != good {
			t.Errorf("CheckOutput(%q) = %v, want good = %v", body, err, good)
		}
	}
}
