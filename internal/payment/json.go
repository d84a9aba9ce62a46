package payment

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// jsonDepthMax is how deep a header may nest; a real payment has four levels and its extensions' schemas a few more.
const jsonDepthMax = 16

var (
	errNotJSON      = errors.New("not JSON in UTF-8")
	errDuplicateKey = errors.New("a member occurs twice")
	errTooDeep      = errors.New("nested too deep")
)

type kind int

const (
	_ kind = iota
	kindObject
	kindArray
	kindString
	kindNumber
	kindBool
	kindNull
)

// A value is one JSON value. The decoder of the standard library would match member names in any case and let the last of two win, so
// that two readers of one header could see different payments; here names are exact and a second one is an error.
type value struct {
	kind    kind
	text    string           // of a string its content, of a number its literal
	members map[string]value // of an object
	items   []value          // of an array
	raw     []byte           // of an object its very bytes, for echoing
}

// parseJSON reads exactly one value. The caller has capped data.
func parseJSON(data []byte) (value, error) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return value{}, errNotJSON
	}
	p := parser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	return p.value(1)
}

type parser struct {
	data []byte
	dec  *json.Decoder
}

func (p *parser) value(depth int) (value, error) {
	if depth > jsonDepthMax {
		return value{}, errTooDeep
	}
	token, err := p.dec.Token()
	if err != nil {
		return value{}, errNotJSON
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case string:
		return value{kind: kindString, text: t}, nil
	case json.Number:
		return value{kind: kindNumber, text: t.String()}, nil
	case bool:
		return value{kind: kindBool}, nil
	case nil:
		return value{kind: kindNull}, nil
	}
	return value{}, errNotJSON
}

func (p *parser) object(depth int) (value, error) {
	start := p.dec.InputOffset() - 1
	v := value{kind: kindObject, members: map[string]value{}}
	for p.dec.More() {
		token, err := p.dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return value{}, errNotJSON
		}
		if _, twice := v.members[name]; twice {
			return value{}, errDuplicateKey
		}
		member, err := p.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.members[name] = member
	}
	if _, err := p.dec.Token(); err != nil {
		return value{}, errNotJSON
	}
	v.raw = p.data[start:p.dec.InputOffset()]
	return v, nil
}

func (p *parser) array(depth int) (value, error) {
	v := value{kind: kindArray}
	for p.dec.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
	if _, err := p.dec.Token(); err != nil {
		return value{}, errNotJSON
	}
	return v, nil
}

// given says whether an object has a member that is not null; clients write null for what they leave out.
func (v value) given(name string) bool {
	member, ok := v.members[name]
	return ok && member.kind != kindNull
}
