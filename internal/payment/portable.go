package payment

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// portableSchema returns a JSON Schema as it may stand inside a declaration, without its dialect, or says why it may not. A catalogue
// checks the declaration with a validator of its own, and refuses it whole where that validator reads the schema in another way than ours:
// a reference that leads elsewhere once the schema stands inside another one, a keyword of another draft, a pattern that JavaScript does not take.
func portableSchema(schema json.RawMessage) (clean json.RawMessage, why string) {
	d := json.NewDecoder(strings.NewReader(string(schema)))
	d.UseNumber()
	var root any
	if err := d.Decode(&root); err != nil {
		return nil, "is not JSON"
	}
	object, ok := root.(map[string]any)
	if !ok {
		return nil, "is not an object"
	}
	if dialect, given := object["$schema"]; given {
		if text, _ := dialect.(string); strings.TrimSuffix(text, "#") != schemaDialect {
			return nil, "is of another draft than 2020-12"
		}
		object = maps.Clone(object)
		delete(object, "$schema")
	}
	if why := notPortable(object); why != "" {
		return nil, why
	}
	return encodeJSON(object), ""
}

// Keywords that every validator of the dialect reads alike, by what stands behind them.
var (
	wordKeywords = []string{"type", "enum", "const", "required", "uniqueItems", "title", "description", "default", "examples", "deprecated",
		"readOnly", "writeOnly", "format", "dependentRequired", "$comment"}
	numberKeywords = []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains",
		"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	schemaKeywords = []string{"additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames"}
	listKeywords   = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
)

var (
	// plainNumber has the same value as a double: others would be rounded by catalogues and not by us.
	plainNumber = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,6})?$`)
	wholeNumber = regexp.MustCompile(`^[0-9]{1,15}$`)
	// plainPattern is what RE2 and JavaScript (with its flag u) read alike: literals, classes and quantifiers.
	plainPattern = regexp.MustCompile(`^\^?((` +
		`[A-Za-z0-9_@:/. -]|\\[dw.]|` +
		`\[\^?([a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9_.@:/ ]|\\[dw.])+-?\]` +
		`)([*+?]|\{[0-9]{1,4}(,[0-9]{0,4})?\})?)*\$?$`)
)

func notPortable(schema any) string {
	object, ok := schema.(map[string]any)
	if !ok {
		return "" // true and false
	}
	for _, keyword := range slices.Sorted(maps.Keys(object)) {
		if why := keywordNotPortable(keyword, object[keyword]); why != "" {
			return why
		}
	}
	return ""
}

func keywordNotPortable(keyword string, value any) string {
	switch {
	case keyword == "multipleOf" && !wholeNumber.MatchString(text(value)), slices.Contains(numberKeywords, keyword) && !plainNumber.MatchString(text(value)):
		return "has a number under " + keyword + " that validators round differently"
	case slices.Contains(numberKeywords, keyword):
		return ""
	case slices.Contains(wordKeywords, keyword):
		if hasReference(value) {
			return "has a value with $ref or $id in it"
		}
		return ""
	case slices.Contains(schemaKeywords, keyword):
		return notPortable(value)
	case slices.Contains(listKeywords, keyword):
		list, _ := value.([]any)
		for _, element := range list {
			if why := notPortable(element); why != "" {
				return why
			}
		}
		return ""
	case keyword == "properties":
		return propertiesNotPortable(value)
	case keyword == "pattern":
		if !plainPattern.MatchString(text(value)) {
			return "has a pattern that other validators may read differently"
		}
		return ""
	}
	return "uses " + shortened(keyword) + ", which other validators may read differently"
}

func propertiesNotPortable(value any) string {
	properties, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if name == "$ref" || name == "$id" {
			return "has a property with the name " + name
		}
		if why := notPortable(properties[name]); why != "" {
			return why
		}
	}
	return ""
}

// hasReference finds what a catalogue takes for a reference even where it is a value.
func hasReference(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if name == "$ref" || name == "$id" || hasReference(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasReference)
	}
	return false
}

// inDoubles says whether every number in a document is within 64 bits of floating point. Others become null on their way through a client in
// JavaScript, which then would not bring back what we declared.
func inDoubles(document json.RawMessage) bool {
	d := json.NewDecoder(strings.NewReader(string(document)))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if n, ok := token.(json.Number); ok {
			if _, err := n.Float64(); err != nil {
				return false
			}
		}
	}
}

// text is the literal of a number and the content of a string.
func text(v any) string {
	switch v := v.(type) {
	case json.Number:
		return v.String()
	case string:
		return v
	}
	return ""
}

// shortened keeps a word of a provider's fit for a line.
func shortened(word string) string {
	const bytesMax = 40
	if !isASCII(word) || len(word) > bytesMax {
		return "a keyword of its own"
	}
	return word
}
