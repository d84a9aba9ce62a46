package wire

// ParseObject reads a document of one JSON object that is not in a header, as strictly. The caller has capped it.
func ParseObject(document []byte) (Value, error) {
	root, err := Parse(document)
	if err != nil {
		return Value{}, err
	}
	if root.Kind != Object {
		return Value{}, ErrNotObject
	}
	return root, nil
}
