package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// DepthMax is how deep a header may nest; a real payment has four levels and its extensions' schemas a few more.
const DepthMax = 16

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

// parseJSON reads exactly one value. The caller has capped data.
func parseJSON(data []byte, depthMax int) (Value, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return Value{}, ErrNotJSON
	}
	p := parser{data: data, dec: json.NewDecoder(bytes.NewReader(data)), depthMax: depthMax}
	p.dec.UseNumber()
	return p.value(1)
}

type parser struct {
	data     []byte
	dec      *json.Decoder
	depthMax int
}

func (p *parser) value(depth int) (Value, error) {
	if depth > p.depthMax {
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
