package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	jsonDepthMax   = 128
	numberLenMax   = 200
	numberExponent = 400 // past what a float64 can say, far below what an expanded exponent would cost
)

// A value is decoded JSON: map[string]any, []any, string, json.Number, bool or nil. Numbers stay text, so none loses a digit.

// decodeValue reads exactly one JSON value, strictly: UTF-8, nothing after it, no member twice (readers differ on which one counts),
// bounded depth, and numbers that can be compared without expanding a giant exponent.
func decodeValue(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("must be UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeNext(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one JSON value with nothing after it")
	}
	return v, nil
}

func decodeNext(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, notJSON(err)
	}
	switch token := token.(type) {
	case json.Delim:
		if depth >= jsonDepthMax {
			return nil, fmt.Errorf("must not be nested deeper than %d", jsonDepthMax)
		}
		if token == '{' {
			return decodeObject(d, depth+1)
		}
		return decodeArray(d, depth+1)
	case json.Number:
		return token, checkNumber(token)
	}
	return token, nil
}

func decodeObject(d *json.Decoder, depth int) (any, error) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, notJSON(err)
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("is not JSON: a member needs a name")
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("has the member %s twice", shorten(strconv.Quote(name), 60))
		}
		if object[name], err = decodeNext(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, notJSON(err)
}

func decodeArray(d *json.Decoder, depth int) (any, error) {
	array := []any{}
	for d.More() {
		v, err := decodeNext(d, depth)
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
	_, err := d.Token()
	return array, notJSON(err)
}

// notJSON turns a decoder's error into a fixed text with the position, which is all that helps; nil stays nil.
func notJSON(err error) error {
	if err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("is not JSON, at byte %d", syntax.Offset)
	}
	return errors.New("is not whole JSON")
}

// checkNumber refuses what would be expanded to very many digits when two numbers are compared.
func checkNumber(n json.Number) error {
	text := string(n)
	if len(text) > numberLenMax {
		return fmt.Errorf("has a number longer than %d characters", numberLenMax)
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exponent, err := strconv.Atoi(text[i+1:])
		if err != nil || exponent > numberExponent || exponent < -numberExponent {
			return fmt.Errorf("has a number with an exponent past %d", numberExponent)
		}
	}
	return nil
}

// sameValue says whether two decoded values are the same JSON: members in any order, numbers by what they are worth (1.0 is 1).
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, member := range a {
			other, ok := b[name]
			if !ok || !sameValue(member, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameValue(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	}
	return a == b
}

func sameNumber(a, b json.Number) bool {
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	return okX && okY && x.Cmp(y) == 0
}

// encodeValue writes a decoded value; equal values give equal bytes but for the spelling of numbers.
func encodeValue(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// A value that came out of decodeValue always encodes.
	_ = e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n")
}

// hasNUL says whether a string in the value holds U+0000, which Postgres cannot keep in jsonb.
func hasNUL(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if strings.ContainsRune(name, 0) || hasNUL(member) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if hasNUL(element) {
				return true
			}
		}
	case string:
		return strings.ContainsRune(v, 0)
	}
	return false
}

// shorten cuts a text to at most so many bytes, at the edge of a character.
func shorten(s string, bytesMax int) string {
	if len(s) <= bytesMax {
		return s
	}
	cut := bytesMax - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
