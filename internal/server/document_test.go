package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"market/web"
)

// documentURL is where the compiler thinks the document is; every reference in it stays inside.
const documentURL = "https://market.example/openapi.json"

// A document is web/openapi.json with the schemas in it.
type document struct {
	root     any
	compiler *jsonschema.Compiler
}

func openDocument(t *testing.T) document {
	t.Helper()
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(web.OpenAPI))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(documentURL, root); err != nil {
		t.Fatal(err)
	}
	return document{root, c}
}

// at returns the value at a JSON pointer; false where there is none.
func (d document) at(pointer string) (any, bool) {
	v := d.root
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch in := v.(type) {
		case map[string]any:
			member, ok := in[part]
			if !ok {
				return nil, false
			}
			v = member
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// deref follows a reference, and returns the pointer of what is meant.
func (d document) deref(pointer string) (string, map[string]any) {
	v, _ := d.at(pointer)
	object, _ := v.(map[string]any)
	if to, ok := object["$ref"].(string); ok {
		return d.deref(strings.TrimPrefix(to, "#"))
	}
	return pointer, object
}

// walk visits every object of the document with its pointer.
func (d document) walk(visit func(pointer string, object map[string]any)) { walk("", d.root, visit) }

func walk(pointer string, v any, visit func(string, map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(pointer, v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(join(pointer, name), v[name], visit)
		}
	case []any:
		for i, element := range v {
			walk(join(pointer, strconv.Itoa(i)), element, visit)
		}
	}
}

func join(pointer, name string) string {
	return pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// check says whether a value fits the schema at a pointer.
func (d document) check(pointer string, v any) error {
	// A pointer inside a URL has its percent signs and braces escaped.
	schema, err := d.compiler.Compile(documentURL + "#" + strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(pointer))
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	return schema.Validate(v)
}

// fits says whether what encodes to JSON fits a named schema.
func (d document) fits(schema string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return d.check("/components/schemas/"+schema, decoded)
}

// response finds how the document describes a status of an operation: by the status, by its class, or by default.
func (d document) response(path, method string, status int) (pointer string, response map[string]any, err error) {
	responses := join("/paths", path) + "/" + strings.ToLower(method) + "/responses"
	for _, key := range []string{strconv.Itoa(status), strconv.Itoa(status/100) + "XX", "default"} {
		if _, ok := d.at(responses + "/" + key); ok {
			pointer, response = d.deref(responses + "/" + key)
			return pointer, response, nil
		}
	}
	return "", nil, fmt.Errorf("%s %s: no response %d", method, path, status)
}

// members returns the properties of a schema and which of them are required, those of allOf included.
func (d document) members(pointer string) (all, required []string) {
	_, schema := d.deref(pointer)
	properties, _ := schema["properties"].(map[string]any)
	all = slices.Collect(maps.Keys(properties))
	names, _ := schema["required"].([]any)
	for _, name := range names {
		required = append(required, fmt.Sprint(name))
	}
	parts, _ := schema["allOf"].([]any)
	for i := range parts {
		a, r := d.members(fmt.Sprintf("%s/allOf/%d", pointer, i))
		all, required = append(all, a...), append(required, r...)
	}
	slices.Sort(all)
	slices.Sort(required)
	return all, required
}

// enum returns the values that a schema allows.
func (d document) enum(t *testing.T, pointer string) []string {
	t.Helper()
	_, schema := d.deref(pointer)
	values, _ := schema["enum"].([]any)
	if len(values) == 0 {
		t.Fatalf("%s has no enum", pointer)
	}
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return out
}
