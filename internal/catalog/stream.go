package catalog

import (
	"errors"
	"mime"
	"time"
)

// Limits of an endpoint that is sold as a stream. Nothing of it is stored, so it may be larger than an answer that is; its call stays open
// for as long as it lasts, so it may not last for ever.
const (
	streamTimeoutDefaultMS = 300_000
	streamTimeoutHighMS    = 600_000
	streamBytesMax         = 64 << 20

	idleDefaultMS = 30_000
	idleLowMS     = 100
	idleHighMS    = 120_000

	// eventStream is the media type of server-sent events, which have no end that could be waited for.
	eventStream = "text/event-stream"
)

// IsEventStream says whether a Content-Type is that of server-sent events.
func IsEventStream(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return media == eventStream && (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter))
}

// limits reads how long an answer may take and how large it may be: more of both for a stream, and of a stream also how long it may pause.
func (f *form) limits(e *EndpointDraft) {
	timeout, timeoutHigh, bytesMax := timeoutDefaultMS, timeoutHighMS, responseBytesMax
	if e.Stream {
		timeout, timeoutHigh, bytesMax = streamTimeoutDefaultMS, streamTimeoutHighMS, streamBytesMax
	}
	e.Timeout = milliseconds(f.whole("timeout_ms", timeout, timeoutLowMS, timeoutHigh))
	e.MaxResponseBytes = f.whole("max_response_bytes", bytesMax, 1, bytesMax)
	e.IdleTimeout = milliseconds(f.whole("idle_timeout_ms", idleDefaultMS, idleLowMS, idleHighMS))
	if !e.Stream && f.given("idle_timeout_ms") {
		f.wrong("idle_timeout_ms", "is of streams only: any other answer is waited for as a whole")
	}
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// streaming reports what cannot be said of a stream, and what can be said of nothing else.
func (f *form) streaming(e EndpointDraft) {
	switch {
	case !e.Stream && IsEventStream(e.MIMEType):
		f.wrong("mime_type", "must not be %s unless stream is true: such an answer is not waited for", eventStream)
	case e.Stream && e.Method == "HEAD":
		f.wrong("stream", "must not be true for HEAD, whose answers have no body")
	case e.Stream && e.OutputSchema != nil:
		f.wrong("output_schema", "must be left out for a stream, which is passed on before all of it is there to be checked")
	}
}
