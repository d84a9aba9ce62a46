package wire

// ParseObject reads a body of at most bytesMax bytes that is one JSON object, as strictly as a header: a body that comes from a stranger
// is read once, and means one thing.
func ParseObject(data []byte, bytesMax int) (Value, error) {
	if len(data) == 0 {
		return Value{}, ErrEmpty
	}
	if len(data) > bytesMax {
		return Value{}, ErrTooLong
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
