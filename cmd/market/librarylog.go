package main

import (
	"strings"

	"github.com/rs/zerolog"
)

// A libraryLog takes what libraries print of their own accord into our log. net/http prints bytes that a service sends unasked; of those only
// the fact is kept, because a service may repeat in them what we sent to it alone.
type libraryLog struct{ log zerolog.Logger }

func (l libraryLog) Write(line []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(line)), " starting with ")
	l.log.Warn().Str("by", "a library").Msg(text)
	return len(line), nil
}
