package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
	"net/url"
	"slices"
	"strings"

	"market/internal/call"
	"market/internal/refusal"
)

// queryKeysMax bounds the query parameters that are checked one by one.
const queryKeysMax = 256

// An Input is what a caller sent to an endpoint.
type Input struct {
	Params      map[string]string // from the path, decoded
	RawQuery    string
	ContentType string
	Body        []byte
}

// CheckInput says whether an input is what the listing asks for; the error is a *refusal.Error with InputEmpty or InputInvalid. An
// endpoint without an input schema takes anything.
func (e *Endpoint) CheckInput(in Input) error {
	if e.input == nil {
		return nil
	}
	value, no := e.inputValue(in)
	if no != nil {
		return no
	}
	err := e.input.check(value)
	if err == nil {
		return nil
	}
	if object, ok := value.(map[string]any); ok && !TakesBody(e.Method) && len(object) == 0 {
		no = refusal.New(call.InputEmpty, "this endpoint needs query parameters")
	} else {
		no = refusal.New(call.InputInvalid, "the input does not fit the endpoint's schema")
	}
	no.Fields = problemsOf(err, "")
	return no
}

// MatchesExample says whether an input is the one that the provider itself gives as an example, and nothing else: the same JSON, whatever
// its spelling, in a request that leaves the service no other reason to refuse it. A service that refuses its own example has a broken
// listing; what the example does not say, a path parameter, a query beside a body, another content type, is the caller's own.
func (e *Endpoint) MatchesExample(in Input) bool {
	if len(e.InputExample) == 0 {
		return false
	}
	if TakesBody(e.Method) && (len(in.Params) > 0 || in.RawQuery != "" || in.ContentType != "" && in.ContentType != mimeDefault) {
		return false
	}
	example, err := decodeValue(e.InputExample)
	if err != nil {
		return false
	}
	value, no := e.inputValue(in)
	return no == nil && sameValue(value, example)
}

// inputValue makes the one JSON value that the input schema describes.
func (e *Endpoint) inputValue(in Input) (any, *refusal.Error) {
	if !TakesBody(e.Method) {
		return e.parameters(in)
	}
	if len(bytes.TrimSpace(in.Body)) == 0 {
		return nil, refusal.New(call.InputEmpty, "this endpoint needs a JSON body")
	}
	if !isJSONType(in.ContentType) {
		return nil, refusal.New(call.InputInvalid, "the body must be sent as application/json, in UTF-8")
	}
	value, err := decodeValue(in.Body)
	if err != nil {
		return nil, refusal.New(call.InputInvalid, "the body %s", err)
	}
	return value, nil
}

// parameters makes an object of path and query parameters. All are strings; a key that is repeated in the query is a list of them.
func (e *Endpoint) parameters(in Input) (any, *refusal.Error) {
	if len(bytes.TrimSpace(in.Body)) != 0 {
		return nil, refusal.New(call.InputInvalid, "this endpoint takes no body; its input is in the path and the query")
	}
	query, err := url.ParseQuery(in.RawQuery)
	if err != nil {
		return nil, refusal.New(call.InputInvalid, "the query is malformed")
	}
	if len(query) > queryKeysMax {
		return nil, refusal.New(call.InputInvalid, "the query has more than %d parameters", queryKeysMax)
	}
	object := make(map[string]any, len(query)+len(in.Params))
	for name, value := range in.Params {
		object[name] = value
	}
	for name, values := range query {
		if _, taken := in.Params[name]; taken {
			// Which of the two a service would believe is not ours to guess.
			return nil, refusal.New(call.InputInvalid, "the parameter %s is in the path and can't be in the query too", shorten(name, 60))
		}
		if len(values) == 1 {
			object[name] = values[0]
			continue
		}
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		object[name] = list
	}
	return object, nil
}

// isJSONType accepts JSON media types in UTF-8, and none given at all.
func isJSONType(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return false
	}
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// ChecksOutput says whether the listing promises a form of its answers.
func (e *Endpoint) ChecksOutput() bool { return e.output != nil }

// ChecksInput says whether the listing asks for a form of its input.
func (e *Endpoint) ChecksInput() bool { return e.input != nil }

// CheckOutput says whether an answer's body, already without any content encoding, is what the listing promises. An endpoint without
// an output schema promises nothing about it. An answer that takes too long to check passes: that is no evidence against the service.
func (e *Endpoint) CheckOutput(body []byte) error {
	if e.output == nil {
		return nil
	}
	value, err := decodeValue(body)
	if err != nil {
		return err
	}
	if err := e.output.check(value); !errors.Is(err, errTooComplex) {
		return err
	}
	return nil
}

// parameterExample says whether an example can be sent as query and path parameters: an object of strings and lists of strings.
func parameterExample(v any) bool {
	object, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for _, member := range object {
		switch member := member.(type) {
		case string:
		case []any:
			if len(member) < 2 || slices.ContainsFunc(member, func(v any) bool { _, ok := v.(string); return !ok }) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// prepare compiles what the stored row holds, and reuses what the same row compiled to before: schemas of an endpoint do not change.
func (e *Endpoint) prepare(before *Endpoint) error {
	template, err := ParseTemplate(e.Path)
	if err != nil {
		return err
	}
	e.template = template
	if before != nil && before.Broken == "" {
		if bytes.Equal(before.InputSchema, e.InputSchema) && bytes.Equal(before.OutputSchema, e.OutputSchema) {
			e.input, e.output = before.input, before.output
			return nil
		}
	}
	if e.input, err = compileStored(e.InputSchema); err != nil {
		return err
	}
	e.output, err = compileStored(e.OutputSchema)
	return err
}

func compileStored(raw json.RawMessage) (*schema, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	document, err := decodeValue(raw)
	if err != nil {
		return nil, err
	}
	return compileSchema(document)
}
