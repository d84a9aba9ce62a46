package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// A Message is what a channel takes to somebody.
type Message struct {
	ID      string          // the same whenever the same message is sent again, so that its receiver can drop the second one: letters, digits, "-" and "_"
	Type    string          // what a program tells messages apart by, such as "notice.raised"
	At      time.Time       // when what it tells of was so
	To      []string        // mail addresses; none: those that the mailer was made for. A webhook has one address
	Subject string          // one line, of a mail
	Text    string          // plain text, of a mail
	Data    json.RawMessage // what a webhook carries
}

// A Channel takes messages to people or to their programs. An error is a *Failure: nobody is known to have got it. It may have arrived all the same, as
// when the connection broke before the answer.
type Channel interface {
	Send(ctx context.Context, m Message) error
}

// A Failure is a message that a channel did not take, with what came back, as far as anything did. No secret is in it.
type Failure struct {
	Status     int           // of HTTP; 0: no answer
	Code       int           // of SMTP; 0: no answer, or none with a code
	RetryAfter time.Duration // as the other side asked; 0: it did not
	// AtRecipient is that a mail server refused an address to which a mail is to go. Where a stranger chose it, that says nothing of the server.
	AtRecipient bool
	Text        string // one bounded line of what the other side said, or of what went wrong
}

func (f *Failure) Error() string {
	switch {
	case f.Status != 0:
		return fmt.Sprintf("answered HTTP %d: %s", f.Status, f.Text)
	case f.Code != 0:
		return fmt.Sprintf("answered SMTP %d: %s", f.Code, f.Text)
	}
	return f.Text
}

// failureTextMax bounds what is kept of somebody else's words.
const failureTextMax = 300

func failed(err error) *Failure { return &Failure{Text: clean(err.Error())} }

// clean makes words of others fit to be kept and shown.
func clean(s string) string { return shorten(oneLine(shorten(s, 4*failureTextMax)), failureTextMax) }
