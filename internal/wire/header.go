package wire

import (
	"errors"
	"fmt"
)

// What can be wrong with a header. The caller words it for whoever sent it.
var (
	ErrEmpty        = errors.New("empty")
	ErrTooLong      = errors.New("too long")
	ErrNotBase64    = errors.New("not base64")
	ErrNotJSON      = errors.New("not base64 of JSON in UTF-8")
	ErrNotObject    = errors.New("not base64 of a JSON object")
	ErrDuplicateKey = errors.New("an object in which a member occurs twice")
	ErrTooDeep      = fmt.Errorf("JSON nested more than %d levels deep", DepthMax)
)

// DecodeObject reads a header of at most bytesMax bytes: base64, in any of its four dialects, of one JSON object.
func DecodeObject(header string, bytesMax int) (Value, error) {
	if header == "" {
		return Value{}, ErrEmpty
	}
	if len(header) > bytesMax {
		return Value{}, ErrTooLong
	}
	data, ok := decodeBase64(header)
	if !ok {
		return Value{}, ErrNotBase64
	}
	root, err := Parse(data)
	if err != nil {
		return Value{}, err
	}
	if root.Kind != Object {
		return Value{}, ErrNotObject
	}
	return root, nil
}
