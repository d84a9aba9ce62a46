package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// An Action is what was decided.
type Action string

const (
	Void    Action = "void"    // a strike was none
	Uphold  Action = "uphold"  // a strike stays
	Relist  Action = "relist"  // a service is put back on the shelf
	Suspend Action = "suspend" // a service is taken off it
	Recount Action = "recount" // evidence was excused, and by what is left its service belongs elsewhere
	// SourceTried is that somebody said that a source is topped up, so that it is asked before its window ends.
	SourceTried Action = "source_tried"

	SwitchedOn   Action = "switched_on"   // the operator stopped something by hand
	SwitchedOff  Action = "switched_off"  // and lets it go on
	PlanSet      Action = "plan_set"      // an account has another plan
	AdminGranted Action = "admin_granted" // a wallet is an admin
	AdminRevoked Action = "admin_revoked" // and is not any more
	SessionEnded Action = "session_ended" // a wallet signed out
	KeyMade      Action = "key_made"      // an account made an API key
	KeyRevoked   Action = "key_revoked"   // and ended one

	RefundRetried   Action = "refund_retried"     // a refund that could not be sent is tried again
	ReviewRefunded  Action = "review_refunded"    // a call that was up for review after a restore is given back
	ReviewServed    Action = "review_served"      // and one may be served after all
	AddressSet      Action = "payout_address_set" // an account is to be paid to another address
	PayoutMade      Action = "payout_made"        // an admin had an account paid out
	PayoutHeld      Action = "payout_held"
	PayoutReleased  Action = "payout_released"
	PayoutRetried   Action = "payout_retried"
	PayoutCancelled Action = "payout_cancelled"

	// TransferBooked is that an admin said what a transfer of a treasury was.
	TransferBooked Action = "transfer_booked"
)

// Actions returns every action.
func Actions() []Action {
	return []Action{Void, Uphold, Relist, Suspend, Recount, SourceTried, SwitchedOn, SwitchedOff, PlanSet, AdminGranted, AdminRevoked, SessionEnded, KeyMade, KeyRevoked,
		RefundRetried, ReviewRefunded, ReviewServed, TransferBooked,
		AddressSet, PayoutMade, PayoutHeld, PayoutReleased, PayoutRetried, PayoutCancelled}
}

// A Kind is what a decision can be about.
type Kind string

const (
	KindStrike   Kind = "strike"
	KindService  Kind = "service"
	KindSource   Kind = "source"
	KindSwitch   Kind = "switch"
	KindAccount  Kind = "account"
	KindAdmin    Kind = "admin"
	KindRefund   Kind = "refund"
	KindCall     Kind = "call"
	KindTransfer Kind = "transfer"
	KindPayout   Kind = "payout"
)

// Kinds returns every kind.
func Kinds() []Kind {
	return []Kind{KindStrike, KindService, KindSource, KindSwitch, KindAccount, KindAdmin, KindRefund, KindCall, KindTransfer, KindPayout}
}

// A Subject is what one decision is about: the id of a strike, the slug of a service, the name of a source or of a switch, the id of an account,
// the wallet of an admin, the id of a call, also for its refund, the network of a transfer
// with its transaction and log index, the id of a payout.
type Subject struct {
	Kind Kind
	Name string
}

// Strike, Service, Source, Switch, Account, Admin, Refund, Call, Transfer and Payout name a subject.
func Strike(id uuid.UUID) Subject  { return Subject{KindStrike, id.String()} }
func Service(slug string) Subject  { return Subject{KindService, slug} }
func Source(name string) Subject   { return Subject{KindSource, name} }
func Switch(name string) Subject   { return Subject{KindSwitch, name} }
func Account(id uuid.UUID) Subject { return Subject{KindAccount, id.String()} }
func Admin(wallet string) Subject  { return Subject{KindAdmin, wallet} }
func Refund(of uuid.UUID) Subject  { return Subject{KindRefund, of.String()} }
func Call(id uuid.UUID) Subject    { return Subject{KindCall, id.String()} }
func Transfer(name string) Subject { return Subject{KindTransfer, name} }
func Payout(id uuid.UUID) Subject  { return Subject{KindPayout, id.String()} }

// An Entry is one decision.
type Entry struct {
	ID      int64     // in the order of writing; given by Add
	At      time.Time // given by Add
	Actor   string    // what kind of author: "admin"
	By      string    // who: "admin token"
	Action  Action
	Subject Subject
	Service uuid.UUID // whose history it belongs to; zero where it is about no service
	Slug    string    // of that service; given by the readings
	Reason  string    // as the author wrote it
	Before  json.RawMessage
	After   json.RawMessage
}

// Changed sets how what an entry is about stood before and after.
func (e *Entry) Changed(before, after any) (err error) {
	if e.Before, err = json.Marshal(before); err != nil {
		return fmt.Errorf("keep what stood before: %w", err)
	}
	if e.After, err = json.Marshal(after); err != nil {
		return fmt.Errorf("keep what stands now: %w", err)
	}
	return nil
}

var errIncomplete = errors.New("an entry names its author, action, subject and reason, and what stood before and after")

func (e Entry) check() error {
	if e.Actor == "" || e.By == "" || e.Action == "" || e.Subject.Kind == "" || e.Subject.Name == "" || e.Reason == "" || e.Before == nil || e.After == nil {
		return errIncomplete
	}
	return nil
}
