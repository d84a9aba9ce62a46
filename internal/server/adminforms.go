package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/delivery"
	"market/internal/refusal"
	"market/internal/strikes"
)

// An action is what an admin can decide on a page.
type action string

const (
	actVoid    action = "void"
	actUphold  action = "uphold"
	actRelist  action = "relist"
	actSuspend action = "suspend"
	actLeave   action = "leave"
)

// dones say that something was decided.
var dones = map[action]string{
	actVoid:    "The strike is voided.",
	actUphold:  "The strike is upheld.",
	actRelist:  "The service is relisted.",
	actSuspend: "The service is suspended.",
	actLeave:   "The service stays as it is, and the appeals about it are answered.",
}

// A reviewForm is one decision that can be made here, and what it will do.
type reviewForm struct {
	ID, Form      string
	Action        action
	Strike        string // empty: it is about the service
	Seen          string // when the state changed that the page shows; empty where it is about a strike
	Title, Does   string
	Button        string
	Bad           bool
	Kept, Problem string // what was typed, and what is wrong with it
}

// strikeForms are the decisions that can be made about a strike. open and policy are of its service.
func strikeForms(st strikes.Strike, open int, p strikes.Policy) []reviewForm {
	void := reviewForm{Action: actVoid, Strike: st.ID.String(), Title: "Void this strike …", Button: "Void the strike", Bad: true}
	switch st.State {
	case "open":
		left := open
		if st.Counts {
			left--
		}
		void.Does = fmt.Sprintf("It was no failure of the service. It does not count any more: %d of %s are left. A rest that it started ends. Where it took the service off the shelf, and what is left "+
			"falls short of the limit that held then, the service gets its place back.", left, plural(p.Limit, "strike", "strikes"))
		return []reviewForm{void, {Action: actUphold, Strike: st.ID.String(), Title: "Uphold this strike …", Button: "Uphold the strike",
			Does: "It was a failure of the service. It counts as it does now, and that is decided until the provider appeals anew."}}
	case "cleared":
		void.Does = "A success has cleared it, so it does not count. Voided, it never counted: a delisting that rested on it is counted again."
		return []reviewForm{void}
	}
	return nil
}

// serviceForms are the decisions that can be made about a service's place on the shelf.
func serviceForms(state catalog.State, open int, p strikes.Policy) []reviewForm {
	relist := reviewForm{Action: actRelist, Title: "Put it back on the shelf …", Button: "Relist the service"}
	suspend := reviewForm{Action: actSuspend, Title: "Suspend it …", Button: "Suspend the service", Bad: true,
		Does: "It is off the shelf until an admin puts it back. Callers are told to come back later; calls that are under way end as they would have. Its strikes stay as they are."}
	archives := fmt.Sprintf("It is for sale at once. %s archived: kept, and not counted any more, so that the next failure is strike 1 of %d. A rest ends.",
		upperFirst(plural(open, "open strike is", "open strikes are")), p.Limit)
	switch state {
	case catalog.Listed:
		return []reviewForm{suspend}
	case catalog.Delisted:
		relist.Does = archives
		return []reviewForm{relist}
	case catalog.Held:
		relist.Does = archives
		return []reviewForm{relist, suspend}
	case catalog.Suspended:
		relist.Does = "It is for sale at once. Its strikes stay as they are."
		return []reviewForm{relist}
	case catalog.Retired:
	}
	return nil
}

// answerForms are the decision that answers the appeals about a service and nothing else, where some wait.
func answerForms(appeals []delivery.Appeal) []reviewForm {
	if !slices.ContainsFunc(appeals, func(a delivery.Appeal) bool { return a.Answer == nil }) {
		return nil
	}
	return []reviewForm{{Action: actLeave, Title: "Leave it as it is …", Button: "Leave it as it is",
		Does: "Its place and its strikes stay as they are. The appeals about the service as a whole are answered by it, with your reason; those against a strike are not."}}
}

// readied gives forms the token of the session, those about the service what they rest on, and keeps in the one that was sent what
// stood in it.
func (p *casePage) readied(forms []reviewForm, sent decisionAsked) []reviewForm {
	for i := range forms {
		f := &forms[i]
		f.Form, f.ID = p.Admin.Form, "why-"+string(f.Action)+"-"+f.Strike
		if f.Strike == "" && p.Since != nil {
			f.Seen = p.Since.Machine
		}
		if f.Action == sent.action && f.Strike == sent.strike {
			f.Kept, f.Problem = plain(sent.reason), sent.problem
		}
	}
	return forms
}

// A decisionAsked is what a form asked for that was not done. The zero value is that none was sent.
type decisionAsked struct {
	action action
	strike string
	seen   string
	reason string
	notDone
}

// A notDone is why a form of an admin changed nothing. The zero value is that there is no reason, or that none was sent.
type notDone struct {
	problem  string // with what was typed
	conflict string // with what another admin did
}

// refused keeps a refusal that is shown where the form is, and returns the status of that page; false for everything else.
func (n *notDone) refused(err error) (status int, shown bool) {
	no, refused := errors.AsType[*refusal.Error](err)
	if !refused {
		return 0, false
	}
	switch no.Reason {
	case call.Conflict:
		n.conflict = plain(upperFirst(strings.TrimSuffix(no.Detail, ".")))
	case call.InvalidRequest:
		// The API points at a member of its body; a form has the words beside its field.
		text := strings.TrimPrefix(strings.TrimPrefix(no.Detail, "/reason "), "/plan ")
		n.problem = plain(upperFirst(strings.TrimPrefix(text, "/")))
	default:
		return 0, false
	}
	return statusFor(no.Reason, false), true
}
