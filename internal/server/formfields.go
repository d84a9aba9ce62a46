package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"market/internal/catalog"
	"market/internal/refusal"
)

// A control is how one member of a document is typed into a form.
type control int

const (
	_           control = iota
	oneLine             // text
	manyLines           // text with room
	jsonText            // a JSON value
	wholeNumber         // what is no number is sent as it was typed, and refused as such
	oneOf               // of Options
	commaList           // of texts, with commas or spaces between
	tickedOf            // those of Options that are ticked
	yesOrNo
)

// A formField is one member of a document of the API, as people type it. A form has no rules of its own: it becomes the document, and what the API says of a
// member stands beside its field.
type formField struct {
	Path    []string // of the member, such as probe, path
	Label   string
	Hint    string
	Control control
	Options []string
	Asked   bool // the API requires it: a browser may say so first
	Fixed   bool // it cannot be changed once it is there
}

// name is that of the input, below a prefix.
func (f *formField) name(prefix string) string { return prefix + strings.Join(f.Path, ".") }

// A fieldSet is a part of a form: the members of one object.
type fieldSet struct {
	Title, Hint string
	Prefix      string // of the names of its inputs
	At          string // JSON pointer of the object in the document
	Fields      []formField
}

// A formPart is a fieldSet with what was typed, and what is wrong with it.
type formPart struct {
	Title, Hint string
	Inputs      []formInput
}

type formInput struct {
	ID, Name, Label, Hint, Value, Problem string
	Control                               string // a word for the template
	Options                               []choice
	Ticked                                bool
	Asked, Fixed                          bool
}

// words of the controls in templates.
var controlWords = map[control]string{
	oneLine: "line", manyLines: "lines", jsonText: "json", wholeNumber: "number", oneOf: "one", commaList: "list", tickedOf: "ticks", yesOrNo: "tick",
}

var wholeForm = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,10})?$`)

// gather makes the object that the fields were typed for. In a patch, what was left empty is null, which takes it away; else it is left out. What came back
// as it was shown of what stood is left out of a patch. A text that is to be JSON and is not is a problem, under its pointer, and left out.
func (s *fieldSet) gather(form, stood url.Values, patch bool) (map[string]any, []refusal.Field) {
	object, problems := map[string]any{}, []refusal.Field(nil)
	for i := range s.Fields {
		f := &s.Fields[i]
		if patch && (f.Fixed || stood != nil && f.untouched(form, stood, s.Prefix)) {
			continue
		}
		v, err := f.read(form, s.Prefix, patch)
		if err != nil {
			problems = append(problems, refusal.Field{Name: s.At + "/" + strings.Join(f.Path, "/"), Message: err.Error()})
			continue
		}
		if v == nil && !patch {
			continue
		}
		in := object
		for _, name := range f.Path[:len(f.Path)-1] {
			inner, ok := in[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				in[name] = inner
			}
			in = inner
		}
		in[f.Path[len(f.Path)-1]] = v
	}
	return object, problems
}

// untouched says whether a field came back as it was shown of what stood. A page does not show everything that a text can hold, and what was not typed is not
// changed.
func (f *formField) untouched(form, stood url.Values, prefix string) bool {
	name := f.name(prefix)
	switch f.Control {
	case yesOrNo:
		return (form.Get(name) != "") == (stood.Get(name) != "")
	case tickedOf:
		shown := slices.DeleteFunc(slices.Clone(stood[name]), func(v string) bool { return !slices.Contains(f.Options, v) })
		return slices.Equal(form[name], shown)
	case oneOf:
		return form.Get(name) == stood.Get(name)
	}
	came := strings.ReplaceAll(form.Get(name), "\r\n", "\n")
	return strings.TrimSpace(came) == strings.TrimSpace(shownTyped(stood.Get(name), f.Control))
}

// read returns the value that was typed; nil for none.
func (f *formField) read(form url.Values, prefix string, patch bool) (any, error) {
	name := f.name(prefix)
	text := strings.TrimSpace(form.Get(name))
	switch f.Control {
	case yesOrNo:
		if text == "" && !patch {
			return nil, nil
		}
		return text != "", nil
	case tickedOf:
		list := []any{}
		for _, v := range form[name] {
			list = append(list, numberOrText(v))
		}
		if len(list) == 0 && !patch {
			return nil, nil
		}
		return list, nil
	}
	if text == "" {
		if f.Control == commaList && patch {
			return []any{}, nil
		}
		return nil, nil
	}
	switch f.Control {
	case jsonText:
		if err := catalog.CheckJSON([]byte(text)); err != nil {
			return nil, err
		}
		return json.RawMessage(text), nil
	case wholeNumber:
		return numberOrText(text), nil
	case commaList:
		list := []any{}
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' }) {
			list = append(list, word)
		}
		return list, nil
	case manyLines:
		return strings.Join(strings.Fields(text), " "), nil // texts of listings have one line
	}
	return text, nil
}

func numberOrText(text string) any {
	if wholeForm.MatchString(text) && json.Valid([]byte(text)) {
		return json.Number(text)
	}
	return text
}

// typedOf writes an object of the API as it would be typed.
func (s *fieldSet) typedOf(view any, into url.Values) error {
	text, err := json.Marshal(view)
	if err != nil {
		return err
	}
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		return err
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		var v any = object
		for _, name := range f.Path {
			in, _ := v.(map[string]any)
			v = in[name]
		}
		if v != nil {
			into[f.name(s.Prefix)] = f.typed(v)
		}
	}
	return nil
}

// typed is one value as it would be typed.
func (f *formField) typed(v any) []string {
	switch f.Control {
	case jsonText:
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(v); err != nil {
			return nil
		}
		return []string{strings.TrimSpace(out.String())}
	case yesOrNo:
		if v == true {
			return []string{"yes"}
		}
		return nil
	case commaList, tickedOf:
		list, _ := v.([]any)
		words := make([]string, 0, len(list))
		for _, x := range list {
			words = append(words, textOf(x))
		}
		if f.Control == commaList {
			return []string{strings.Join(words, ", ")}
		}
		return words
	}
	return []string{textOf(v)}
}

func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// part shows the fields with what was typed and what is wrong. What it tells of is taken out of problems; what is left belongs to no field of it.
func (s *fieldSet) part(typed url.Values, problems map[string]string, editing bool) formPart {
	p := formPart{Title: s.Title, Hint: s.Hint}
	for i := range s.Fields {
		f := &s.Fields[i]
		name := f.name(s.Prefix)
		in := formInput{ID: "f-" + strings.ReplaceAll(name, ".", "-"), Name: name, Label: f.Label, Hint: f.Hint, Control: controlWords[f.Control],
			Asked: f.Asked, Fixed: f.Fixed && editing, Problem: problems[name]}
		switch f.Control {
		case oneOf, tickedOf:
			given := typed[name]
			for _, o := range f.Options {
				in.Options = append(in.Options, choice{ID: o, Name: o, Chosen: slices.Contains(given, o)})
			}
			in.Value = strings.Join(given, ", ")
		case yesOrNo:
			in.Ticked = typed.Get(name) != ""
		default:
			in.Value = shownTyped(typed.Get(name), f.Control)
		}
		delete(problems, name)
		p.Inputs = append(p.Inputs, in)
	}
	return p
}

// shownTyped is what was typed without what is not shown. Texts with several lines keep them.
func shownTyped(text string, as control) string {
	if as != jsonText && as != manyLines {
		return plain(text)
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = plain(strings.ReplaceAll(line, "\t", "  "))
	}
	return strings.Join(lines, "\n")
}

// besideFields puts the problems of a refusal beside the fields that they are about, by name of the input. A problem inside of what was typed, such as in an
// example, names the place. Those that are about no field are returned by themselves.
func besideFields(fields []refusal.Field, sets ...*fieldSet) (beside map[string]string, others []string) {
	beside = map[string]string{}
	for _, p := range fields {
		name, rest := "", p.Name
		for _, s := range sets {
			if n, inside, ok := s.fieldAt(p.Name); ok && (name == "" || len(inside) < len(rest)) {
				name, rest = n, inside
			}
		}
		if name == "" {
			others = append(others, plain(strings.TrimSpace(p.Name+" "+p.Message)))
			continue
		}
		message := plain(p.Message)
		if rest != "" {
			message = plain(strings.TrimPrefix(rest, "/")) + ": " + message
		}
		if beside[name] != "" {
			message = beside[name] + "; " + message
		}
		beside[name] = message
	}
	return beside, others
}

// fieldAt finds the field of a JSON pointer, and what of the pointer lies inside of it. What is wrong with an object as a whole stands beside its first field.
func (s *fieldSet) fieldAt(pointer string) (name, inside string, ok bool) {
	for i := range s.Fields {
		f := &s.Fields[i]
		at := s.At + "/" + strings.Join(f.Path, "/")
		if inside, found := strings.CutPrefix(pointer, at); found && (inside == "" || inside[0] == '/') {
			if f.Control == commaList || f.Control == tickedOf {
				inside = placeInList(inside)
			}
			return f.name(s.Prefix), inside, true
		}
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if len(f.Path) > 1 && pointer == s.At+"/"+f.Path[0] {
			return f.name(s.Prefix), "", true
		}
	}
	return "", "", false
}

// placeInList says which of several is wrong as people count.
func placeInList(inside string) string {
	if n, err := strconv.Atoi(strings.TrimPrefix(inside, "/")); err == nil {
		return "/number " + strconv.Itoa(n+1)
	}
	return inside
}

// fieldsOf returns what is wrong with members of what was sent; false for an error that is not about them.
func fieldsOf(err error) ([]refusal.Field, bool) {
	no, ok := errors.AsType[*refusal.Error](err)
	if !ok || len(no.Fields) == 0 {
		return nil, false
	}
	return no.Fields, true
}
