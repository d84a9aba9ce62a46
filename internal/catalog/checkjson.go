package catalog

// CheckJSON says what is wrong with a text that is to be one JSON value of a listing, by the rules by which a whole listing is read; nil for nothing. A form
// that gathers a listing from several texts asks it for each, so that a fault is told beside the text that has it.
func CheckJSON(text []byte) error {
	_, err := decodeValue(text)
	return err
}
