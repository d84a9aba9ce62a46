package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"market/internal/call"
	"market/internal/caller"
)

// recordWait is the least time that the record of a stream which broke off gets to say what became of it.
const recordWait = 5 * time.Second

// report says on stderr what the call came to, waits for a refund, and returns the exit code.
func (o *callOptions) report(ctx context.Context, client *caller.Client, r *caller.Result) error {
	o.say("status", "%d", r.Status)
	if r.Quote != nil && (o.yes || o.maxUSD != "") { // else confirm has shown it
		o.say("price", "%s", r.Quote)
	}
	if r.CallID != "" {
		o.say("call", "%s", r.CallID)
	}
	if p := r.Payment; p != nil && p.Transaction != "" {
		o.say("receipt", "transaction %s on %s, settled: %v", p.Transaction, p.Network, p.Success)
	}
	if r.Outcome != "" {
		o.say("outcome", "%s", r.Outcome)
	}
	if p := r.Problem; p != nil {
		o.say("reason", "%s: %s", p.Code, p.Detail)
	}
	if r.Truncated {
		o.say("body", "cut after %d bytes", caller.BodyBytesMax)
	}
	if r.Broken != nil {
		return o.reportBroken(ctx, client, r)
	}
	switch r.Ending() {
	case caller.Served:
		return nil
	case caller.Refused:
		o.awaitRefund(ctx, client, r, r.Problem != nil && r.Problem.Refund != nil)
		return &exitError{code: exitRefused}
	case caller.Failed:
		o.awaitRefund(ctx, client, r, true)
		return &exitError{code: exitFailed}
	case caller.Pending:
		o.sayHowToAskAgain(r.PaymentHeader, o.recordURL(r))
		return &exitError{code: exitPending}
	}
	return errors.New("the answer says nothing about the call")
}

// awaitRefund prints the refund as it stands, and again when it is confirmed within the time that was given.
func (o *callOptions) awaitRefund(ctx context.Context, client *caller.Client, r *caller.Result, owed bool) {
	record := o.recordURL(r)
	if !owed || record == "" {
		return
	}
	if p := r.Problem; p != nil && p.Refund != nil {
		o.say("refund", "%s", p.Refund.State)
		if p.Refund.State == caller.RefundConfirmed {
			return
		}
	}
	if o.wait <= 0 {
		o.say("record", "%s", record)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	got, err := client.AwaitRefund(ctx, record)
	o.sayRefund(got, err, record, o.wait)
}

func (o *callOptions) sayRefund(got caller.Record, err error, record string, waited time.Duration) {
	switch {
	case err != nil:
		o.say("refund", "not known: %v", err)
	case got.Refund == nil:
		o.say("refund", "none is owed")
	case got.Refund.State == caller.RefundConfirmed:
		o.say("refund", "confirmed, transaction %s", got.Refund.Transaction)
	default:
		o.say("refund", "%s after %v; ask %s", got.Refund.State, waited, record)
	}
}

// reportBroken finds out what became of a call whose stream broke off. Only its record tells a service that failed from a connection that did.
func (o *callOptions) reportBroken(ctx context.Context, client *caller.Client, r *caller.Result) error {
	o.say("broken", "%v", r.Broken)
	record := o.recordURL(r)
	if record == "" {
		o.sayHowToAskAgain(r.PaymentHeader, "")
		return &exitError{code: exitPending}
	}
	wait := max(o.wait, recordWait)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	got, err := client.AwaitRefund(ctx, record)
	if err != nil || got.Outcome == "" {
		o.sayHowToAskAgain(r.PaymentHeader, record)
		return &exitError{code: exitPending}
	}
	o.say("outcome", "%s", got.Outcome)
	o.say("reason", "%s", got.Reason)
	if got.Outcome == call.Served {
		return &exitError{exitFailure, errors.New("the stream broke off on its way here, and the call is charged")}
	}
	o.sayRefund(got, err, record, wait)
	return &exitError{code: exitFailed}
}

// recordURL is where the call can be looked up; empty where the server gave no sign of keeping one.
func (o *callOptions) recordURL(r *caller.Result) string {
	var ref caller.Reference
	switch {
	case r.Problem != nil && r.Problem.Call != nil:
		ref = *r.Problem.Call
	case r.CallID != "":
		ref = caller.Reference{ID: r.CallID, URL: "/api/v1/calls/" + url.PathEscape(r.CallID)}
	default:
		return ""
	}
	record, err := caller.RecordURL(o.url, ref)
	if err != nil {
		o.say("record", "%v", err)
	}
	return record
}

func (o *callOptions) sayHowToAskAgain(paymentHeader, record string) {
	o.say("pending", "the payment may have been taken; do not pay again")
	if record != "" {
		o.say("ask", "%s", record)
	}
	if paymentHeader != "" {
		o.say("or send", "the same payment again, by the same command with --payment %s", paymentHeader)
	}
}

func (o *callOptions) say(what, format string, args ...any) {
	_, _ = fmt.Fprintf(o.tell, "%-8s %s\n", what, fmt.Sprintf(format, args...)) //nolint:errcheck // there is nowhere else to say it
}
