package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"market/internal/call"
)

// pollEvery is how often AwaitRefund asks.
const pollEvery = 500 * time.Millisecond

// A Record is what anyone who has a call's id may know of it.
type Record struct {
	ID      string       `json:"id"`
	State   call.State   `json:"state"`
	Outcome call.Outcome `json:"outcome"`
	Reason  call.Reason  `json:"reason"`
	Party   call.Party   `json:"party"`
	Refund  *Refund      `json:"refund"`
}

// RecordURL is where a call's record is. The server names it in its problem document; a URL of another origin than the one that was
// called is not followed.
func RecordURL(called string, ref Reference) (string, error) {
	base, err := url.Parse(called)
	if err != nil {
		return "", fmt.Errorf("record of call: %w", err)
	}
	to, err := base.Parse(ref.URL)
	if err != nil || ref.URL == "" {
		return "", fmt.Errorf("record of call %q: no URL", ref.ID)
	}
	if to.Scheme != base.Scheme || to.Host != base.Host {
		return "", fmt.Errorf("record of call %q: it is on another server", ref.ID)
	}
	return to.String(), nil
}

// FindRecord reads a call's record.
func (c *Client) FindRecord(ctx context.Context, recordURL string) (Record, error) {
	answer, err := c.send(ctx, Request{Method: http.MethodGet, URL: recordURL}, "")
	if err != nil {
		return Record{}, fmt.Errorf("read call: %w", err)
	}
	if answer.Status != http.StatusOK {
		return Record{}, fmt.Errorf("read call: status %d", answer.Status)
	}
	var r Record
	if err := json.Unmarshal(answer.Body, &r); err != nil {
		return Record{}, fmt.Errorf("read call: %w", err)
	}
	r.Outcome, r.Reason = call.Outcome(printable(string(r.Outcome))), call.Reason(printable(string(r.Reason)))
	r.Refund.clean()
	return r, nil
}

// settledUp says that there is nothing to wait for: the refund is proved, or the call ended and owes none.
func (r Record) settledUp() bool {
	if r.Refund == nil {
		return r.State.Final()
	}
	return r.Refund.State == RefundConfirmed
}

// AwaitRefund reads a call's record until its refund is confirmed or ctx ends, and returns what it read last. The error is only of a record
// that could not be read once.
func (c *Client) AwaitRefund(ctx context.Context, recordURL string) (Record, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var last Record
	var seen bool
	for {
		r, err := c.FindRecord(ctx, recordURL)
		if err == nil {
			last, seen = r, true
			if r.settledUp() {
				return last, nil
			}
		}
		select {
		case <-ctx.Done():
			if !seen {
				return Record{}, err
			}
			return last, nil
		case <-tick.C:
		}
	}
}
