package apptest

import (
	"bytes"
	"compress/gzip"
)

// Gzip packs a text.
func Gzip(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text)) // into memory
	_ = z.Close()
	return b.String()
}
