// Package refusal holds how we say no: a call.Reason, what to tell the person, and until when. It does no I/O; the door maps it to HTTP
// in one place, and unknown errors become a bare 500 there.
package refusal

import (
	"fmt"
	"time"

	"market/internal/call"
)

// Error is a refusal. Detail and Fields are shown to the client; Cause is only logged.
type Error struct {
	Reason call.Reason
	Detail string
	Until  time.Time // zero: waiting alone does not help
	Fields []Field
	Plan   *PlanLimit // of a refusal with PlanLimit
	Cause  error
}

// A Field says what is wrong with one member of what was sent, by its JSON pointer or parameter name.
type Field struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

// A PlanLimit is the limit of an account's plan that a request would pass.
type PlanLimit struct {
	Limit string // its key: see package plan
	Value int64
	Plan  string
	Next  *NextPlan // nil: no plan has more
}

// A NextPlan is the next plan that has more.
type NextPlan struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// New returns a refusal for a reason with a text for the client.
func New(reason call.Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// WithUntil adds the moment from which trying again makes sense.
func (e *Error) WithUntil(t time.Time) *Error { e.Until = t; return e }

// WithCause adds what the log should know and the client should not.
func (e *Error) WithCause(err error) *Error { e.Cause = err; return e }

func (e *Error) Error() string {
	text := string(e.Reason)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Cause }
