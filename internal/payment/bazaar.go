package payment

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"

	"market/internal/wire"
)

// bazaarKey names the extension by which a server tells catalogues what an endpoint takes and gives.
const bazaarKey = "bazaar"

const schemaDialect = "https://json-schema.org/draft/2020-12/schema"

// A Listing is what the bazaar declaration of an endpoint is made of. It comes from the catalog and never from a request, so nobody
// who asks can put words into a catalogue.
type Listing struct {
	Method        string
	Path          string // as callers see it, with parameters in braces: /s/weather/v1/city/{id}
	TakesBody     bool   // else the input is the query and path parameters
	MIMEType      string // of the answer
	InputSchema   json.RawMessage
	InputExample  json.RawMessage
	OutputSchema  json.RawMessage
	OutputExample json.RawMessage
}

// A Bazaar is the declaration of one endpoint, made once. The zero Bazaar declares nothing.
type Bazaar struct {
	full  json.RawMessage // with the schemas of input and output
	brief json.RawMessage // with examples only
	v1    json.RawMessage // what x402 v1 has in its place
	notes []string
}

// Notes say, to the owner of the listing, what of it the declaration leaves out whatever room there is.
func (b Bazaar) Notes() []string { return slices.Clone(b.notes) }

// Full is the whole declaration; nil where there is none.
func (b Bazaar) Full() json.RawMessage { return b.full }

// Brief is the declaration with examples only; nil where there is none.
func (b Bazaar) Brief() json.RawMessage { return b.brief }

// V1 is the outputSchema of x402 v1; nil where there is none.
func (b Bazaar) V1() json.RawMessage { return b.v1 }

// v1SchemaBytesMax bounds what each entry of a v1 body repeats.
const v1SchemaBytesMax = 4096

// NewBazaar makes the declaration of a listing. An input without an example is declared without one, by its schema. What a catalogue could not check as
// we do stays out: a schema that validators read differently, and a declaration that nests deeper than any header may, because clients
// send it back with the payment.
func NewBazaar(l Listing) Bazaar {
	d := &declaration{Listing: l}
	d.InputExample = d.sendable("input_example", l.InputExample)
	d.OutputExample = d.sendable("output_example", l.OutputExample)
	template, params, ok := routeTemplate(l.Path)
	if !ok {
		return Bazaar{notes: []string{"bazaar: the path has two dots in a row, which no catalogue takes; there is no declaration"}}
	}
	d.params = params
	if len(params) > 0 {
		d.template = template
	}
	input, output := d.inputSchemas(), d.outputSchema()
	b := Bazaar{full: d.json(input, output), brief: d.json(schemas{}, nil)}
	if !shallow(b.full) {
		b.full = b.brief
		d.note("bazaar: the schemas nest too deep; the declaration has the examples only")
	}
	if !shallow(b.brief) {
		return Bazaar{notes: append(d.notes, "bazaar: the examples nest too deep; there is no declaration")}
	}
	b.v1 = d.v1()
	b.notes = d.notes
	return b
}

// shallow says whether a declaration may come back in a payment header: there it stands two levels down.
func shallow(document json.RawMessage) bool {
	const above = 2
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(document); i++ {
		switch c := document[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	// A scalar counts as one more level: that is how the decoder counts.
	return above+deepest+1 <= wire.DepthMax
}

// A declaration is a listing while it is being declared.
type declaration struct {
	Listing
	params   []string // of the path, in its order
	template string   // empty for a path without parameters
	notes    []string
}

func (d *declaration) note(format string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// sendable leaves out an example that would not come back from a client as it was sent.
func (d *declaration) sendable(name string, example json.RawMessage) json.RawMessage {
	if len(example) == 0 || inDoubles(example) {
		return example
	}
	d.note("bazaar: %s has a number that JavaScript has no room for; the declaration leaves it out", name)
	return nil
}

// schemas are those of the input's parts; nil stands for one that allows anything.
type schemas struct{ body, query, path json.RawMessage }

// The members stand in the order in which people read them, so the declaration is made of structs and not of maps.
type (
	bazaarDocument struct {
		RouteTemplate string     `json:"routeTemplate,omitempty"`
		Info          bazaarInfo `json:"info"`
		Schema        objectForm `json:"schema"`
	}
	bazaarInfo struct {
		Input  bazaarInput   `json:"input"`
		Output *bazaarOutput `json:"output,omitempty"`
	}
	bazaarInput struct {
		Type        string          `json:"type"`
		Method      string          `json:"method"`
		BodyType    string          `json:"bodyType,omitempty"`
		Body        json.RawMessage `json:"body,omitempty"`
		PathParams  json.RawMessage `json:"pathParams,omitempty"`
		QueryParams json.RawMessage `json:"queryParams,omitempty"`
	}
	bazaarOutput struct {
		Type    string          `json:"type"`
		Example json.RawMessage `json:"example,omitempty"`
	}
	objectForm struct {
		Dialect    string         `json:"$schema,omitempty"`
		Type       string         `json:"type"`
		Required   []string       `json:"required"`
		Closed     *bool          `json:"additionalProperties,omitempty"`
		Properties map[string]any `json:"properties"`
	}
	constForm struct {
		Const string `json:"const"`
	}
	enumForm struct {
		Type string   `json:"type"`
		Enum []string `json:"enum"`
	}
)

func (d *declaration) json(in schemas, output json.RawMessage) json.RawMessage {
	closed := false
	form := objectForm{Type: "object", Closed: &closed, Required: []string{"type", "method"}, Properties: map[string]any{
		"type": constForm{"http"}, "method": enumForm{"string", []string{d.Method}},
	}}
	input := bazaarInput{Type: "http", Method: d.Method}
	path, query := d.split()
	if d.TakesBody {
		input.BodyType, input.Body = "json", d.InputExample
		form.Properties["bodyType"], form.Properties["body"] = enumForm{"string", []string{"json"}}, orAnything(in.body)
		form.Required = append(form.Required, "bodyType")
		if len(input.Body) > 0 {
			form.Required = append(form.Required, "body")
		}
	} else {
		input.QueryParams = query
		form.Properties["queryParams"] = orObject(in.query)
	}
	if len(d.params) > 0 {
		input.PathParams = path
		form.Properties["pathParams"] = orObject(in.path)
	}
	document := bazaarDocument{RouteTemplate: d.template, Info: bazaarInfo{Input: input},
		Schema: objectForm{Dialect: schemaDialect, Type: "object", Required: []string{"input"}, Properties: map[string]any{"input": form}}}
	if len(d.OutputExample) > 0 || len(output) > 0 {
		example := map[string]any{"type": constForm{d.outputType()}, "example": orAnything(output)}
		document.Schema.Properties["output"] = objectForm{Type: "object", Required: []string{"type"}, Properties: example}
	}
	if len(d.OutputExample) > 0 {
		document.Info.Output = &bazaarOutput{Type: d.outputType(), Example: d.OutputExample}
	}
	return encodeJSON(document)
}

func orAnything(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return json.RawMessage(`{}`)
	}
	return schema
}

func orObject(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return json.RawMessage(`{"type":"object"}`)
	}
	return schema
}

// outputType is json for all that is JSON, else the first half of the media type.
func (d *declaration) outputType() string {
	media, _, err := mime.ParseMediaType(d.MIMEType)
	if err != nil || media == "application/json" || strings.HasSuffix(media, "+json") {
		return "json"
	}
	kind, _, _ := strings.Cut(media, "/")
	return kind
}

// split takes the example of parameters apart into those of the path and those of the query; nil where there is none of a kind.
func (d *declaration) split() (path, query json.RawMessage) {
	if d.TakesBody || len(d.InputExample) == 0 {
		return nil, nil
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(d.InputExample, &all) != nil { // a listing's example of parameters is an object; what is not is left out
		return nil, nil
	}
	inPath := map[string]json.RawMessage{}
	for _, name := range d.params {
		if value, given := all[name]; given {
			inPath[name] = value
			delete(all, name)
		}
	}
	if len(inPath) > 0 {
		path = encodeJSON(inPath)
	}
	if len(all) > 0 {
		query = encodeJSON(all)
	}
	return path, query
}

// v1 says the same in the form of x402 v1.
func (d *declaration) v1() json.RawMessage {
	path, query := d.split()
	type input struct {
		Type         string          `json:"type"`
		Method       string          `json:"method"`
		Discoverable bool            `json:"discoverable"`
		BodyType     string          `json:"bodyType,omitempty"`
		Body         json.RawMessage `json:"body,omitempty"`
		PathParams   json.RawMessage `json:"pathParams,omitempty"`
		QueryParams  json.RawMessage `json:"queryParams,omitempty"`
	}
	type document struct {
		Input  input           `json:"input"`
		Output json.RawMessage `json:"output,omitempty"`
	}
	in := input{Type: "http", Method: d.Method, Discoverable: true}
	bare := encodeJSON(document{Input: in})
	in.PathParams, in.QueryParams = path, query
	if d.TakesBody {
		in.BodyType, in.Body = "json", d.InputExample
	}
	if whole := encodeJSON(document{Input: in, Output: d.OutputExample}); len(whole) <= v1SchemaBytesMax {
		return whole
	}
	return bare
}

// routeTemplate writes a path as catalogues do, with :name for {name} and every other special character escaped, and lists the names. It
// is false for a path that catalogues refuse.
func routeTemplate(path string) (template string, params []string, ok bool) {
	if strings.Contains(path, "..") {
		return "", nil, false
	}
	var b strings.Builder
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		b.WriteByte('/')
		if name, isParam := strings.CutPrefix(segment, "{"); isParam {
			name = strings.TrimSuffix(name, "}")
			params = append(params, name)
			b.WriteString(":" + name)
			continue
		}
		for _, c := range []byte(segment) {
			if isUnreserved(c) {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
	}
	return b.String(), params, true
}

// inputSchemas takes from the listing's schema what every validator reads as we do.
func (d *declaration) inputSchemas() schemas {
	schema, ok := d.portable("input_schema", d.InputSchema)
	switch {
	case !ok:
		return schemas{}
	case d.TakesBody:
		return schemas{body: schema}
	case len(d.params) == 0:
		return schemas{query: schema}
	}
	path, query, ok := splitSchema(schema, d.params)
	if !ok {
		d.note("bazaar: input_schema says more of the parameters than which there are; the declaration has them without their schema")
		return schemas{}
	}
	return schemas{path: path, query: query}
}

func (d *declaration) outputSchema() json.RawMessage {
	schema, _ := d.portable("output_schema", d.OutputSchema)
	return schema
}

func (d *declaration) portable(name string, schema json.RawMessage) (json.RawMessage, bool) {
	if len(schema) == 0 {
		return nil, false
	}
	clean, why := portableSchema(schema)
	if why != "" {
		d.note("bazaar: %s %s; the declaration leaves it out", name, why)
		return nil, false
	}
	return clean, true
}

// splitSchema takes a schema of parameters apart. It can not where the schema says something about path and query together.
func splitSchema(schema json.RawMessage, params []string) (path, query json.RawMessage, ok bool) {
	var whole map[string]json.RawMessage
	if json.Unmarshal(schema, &whole) != nil {
		return nil, nil, false
	}
	for keyword := range whole {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties", "title", "description"}, keyword) {
			return nil, nil, false
		}
	}
	var properties map[string]json.RawMessage
	var required []string
	if p := whole["properties"]; p != nil && json.Unmarshal(p, &properties) != nil {
		return nil, nil, false
	}
	if r := whole["required"]; r != nil && json.Unmarshal(r, &required) != nil {
		return nil, nil, false
	}
	inPath := map[string]json.RawMessage{}
	for _, name := range params {
		inPath[name] = json.RawMessage(`{"type":"string"}`)
		if p, given := properties[name]; given {
			inPath[name] = p
		}
		delete(properties, name)
	}
	required = slices.DeleteFunc(required, func(name string) bool { return slices.Contains(params, name) })
	ofQuery := maps.Clone(whole)
	ofQuery["type"] = json.RawMessage(`"object"`)
	delete(ofQuery, "properties")
	delete(ofQuery, "required")
	if len(properties) > 0 {
		ofQuery["properties"] = encodeJSON(properties)
	}
	if len(required) > 0 {
		ofQuery["required"] = encodeJSON(required)
	}
	return encodeJSON(map[string]any{"type": "object", "properties": inPath}), encodeJSON(ofQuery), true
}
