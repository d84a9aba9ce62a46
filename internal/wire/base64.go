package wire

import (
	"encoding/base64"
	"strings"
)

// EncodeBase64 writes the one dialect that every client reads: standard alphabet, padded.
func EncodeBase64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// decodeBase64 reads the four dialects that clients write: either alphabet, padded or not. Line breaks, which the decoders of the
// standard library skip, are refused.
func decodeBase64(s string) ([]byte, bool) {
	if strings.ContainsAny(s, "\r\n") {
		return nil, false
	}
	dialect := base64.StdEncoding
	if strings.ContainsAny(s, "-_") {
		dialect = base64.URLEncoding
	}
	if !strings.HasSuffix(s, "=") {
		dialect = dialect.WithPadding(base64.NoPadding)
	}
	data, err := dialect.DecodeString(s)
	return data, err == nil
}
