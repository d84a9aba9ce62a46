package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// DepthMax is how deep a header may nest. A real payment has four levels, and what it echoes of our extensions as many more as the schema of what
// is sold: two for each of its own.
const DepthMax = 64

// A Kind is the type of a JSON value.
type Kind int

// The zero Kind is that of a member that is not there.
const (
	_ Kind = iota
	Object
	Array
	String
	Number
	Bool
	Null
)

// A Value is one JSON value. The decoder of the standard library would match member names in any case and let the last of two win, so
// that two readers of one header could see different payments; here names are exact and a second one is an error.
type Value struct {
	Kind    Kind
	Text    string           // of a string its content, of a number and a bool its literal
	Members map[string]Value // of an object
	Items   []Value          // of an array
	Raw     []byte           // of an object its very bytes, for echoing
}

// Given says whether an object has a member that is not null; clients write null for what they leave out.
func (v Value) Given(name string) bool {
	member, ok := v.Members[name]
	return ok && member.Kind != Null
}

// Parse reads exactly one value. The caller has capped data.
func Parse(data []byte) (Value, error) {
	if !utf8.Valid(data) || !json.Valid(data) || !escapesText(data) {
		return Value{}, ErrNotJSON
	}
	p := parser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	return p.value(1)
}

// escapesText says whether every escape in valid JSON stands for a character that all readers and our database can hold. Halves of surrogate pairs
// become the same replacement character in some readers and an error in others, so that one header would be two; a zero ends a string for some.
func escapesText(data []byte) bool {
	for i := bytes.IndexByte(data, '\\'); i >= 0 && i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // what is escaped; a backslash in valid JSON is never the last byte
		if data[i] != 'u' {
			continue
		}
		unit := codeUnit(data[i+1 : i+5])
		i += 4
		switch {
		case unit == 0 || utf16.IsSurrogate(unit) && unit >= 0xdc00:
			return false
		case utf16.IsSurrogate(unit):
			if !bytes.HasPrefix(data[i+1:], []byte(`\u`)) || utf16.DecodeRune(unit, codeUnit(data[i+3:i+7])) == utf8.RuneError {
				return false
			}
			i += 6
		}
	}
	return true
}

// codeUnit reads four hexadecimal digits.
func codeUnit(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits), 16, 16) // the JSON is valid
	return rune(n)
}

type parser struct {
	data []byte
	dec  *json.Decoder
}

func (p *parser) value(depth int) (Value, error) {
	if depth > DepthMax {
		return Value{}, ErrTooDeep
	}
	token, err := p.dec.Token()
	if err != nil {
		return Value{}, ErrNotJSON
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case string:
		return Value{Kind: String, Text: t}, nil
	case json.Number:
		return Value{Kind: Number, Text: t.String()}, nil
	case bool:
		if t {
			return Value{Kind: Bool, Text: "true"}, nil
		}
		return Value{Kind: Bool, Text: "false"}, nil
	case nil:
		return Value{Kind: Null}, nil
	}
	return Value{}, ErrNotJSON
}

func (p *parser) object(depth int) (Value, error) {
	start := p.dec.InputOffset() - 1
	v := Value{Kind: Object, Members: map[string]Value{}}
	for p.dec.More() {
		token, err := p.dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return Value{}, ErrNotJSON
		}
		if _, twice := v.Members[name]; twice {
			return Value{}, ErrDuplicateKey
		}
		member, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		v.Members[name] = member
	}
	if _, err := p.dec.Token(); err != nil {
		return Value{}, ErrNotJSON
	}
	v.Raw = p.data[start:p.dec.InputOffset()]
	return v, nil
}

func (p *parser) array(depth int) (Value, error) {
	v := Value{Kind: Array}
	for p.dec.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return Value{}, err
		}
		v.Items = append(v.Items, item)
	}
	if _, err := p.dec.Token(); err != nil {
		return Value{}, ErrNotJSON
	}
	return v, nil
}
