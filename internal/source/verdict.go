package source

import "time"

// An Answer is what came back from a source: of HTTP the status, of JSON-RPC and SMTP the code too.
type Answer struct {
	Status     int           // HTTP; 0: none came, or it was not HTTP
	RetryAfter time.Duration // as the source asked; 0: it did not
	Code       int           // of the error in JSON-RPC, or the reply code of SMTP; 0: none
	Text       string        // hostile, and bounded by whoever read it: a body, or the message of an error
}

// A Shape is how else a refusal of a source looks: a status, words in the text, or both.
type Shape struct {
	Status int    // 0: any
	Text   string // contained in the answer's text, in whatever case; empty: any
}

// A Result is what an answer says about its source.
type Result int

const (
	_        Result = iota // invalid
	Worked                 // it did what it is for
	Refused                // no credit or quota is left: they stopped us
	Rejected               // our credential is not accepted
	Slowed                 // it asks us to wait for a moment
	Troubled               // nothing was learnt: it could not be reached, it failed, or what was asked was at fault

	resultEnd // keep last
)

func (r Result) String() string {
	return word(int(r), "", "worked", "refused", "rejected", "slowed", "troubled")
}

// A Verdict is what came of a request.
type Verdict struct {
	Kind Result
	Wait time.Duration // as long as it asked to wait: always of Slowed, of Refused where it said so
	Said string        // what it was known by, such as "HTTP 402", in words of ours; empty: nothing to say
}
