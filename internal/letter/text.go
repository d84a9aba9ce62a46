package letter

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	subjectMax = 120 // runes
	lineMax    = 500 // runes of what others wrote, in a mail
	snippetMax = 200 // runes of an answer, in a mail; the webhook has all that is kept
)

// headlineOf is a letter in a few words.
func headlineOf(l Letter) string {
	switch l.Kind {
	case StrikeOpened:
		if s := l.Facts.Strikes; s != nil {
			return fmt.Sprintf("a strike (%d of %d)", s.Open, s.Limit)
		}
		return "a strike"
	case StrikeVoided:
		return "a strike does not count any more"
	case StrikeUpheld:
		return "a strike stays"
	case ServiceDelisted:
		return "taken off the shelf by its strikes"
	case ServiceHeld:
		return "held for a review"
	case ServiceSuspended:
		return "suspended by the operator"
	case ServiceRelisted:
		return "on the shelf again"
	case ServiceUpheld:
		return "an appeal was answered: it stays as it is"
	case PayoutPaid:
		return "you are paid"
	case PayoutParked:
		return "a payout waits"
	case PayoutAddress:
		return "you are to be paid to another address"
	}
	return string(l.Kind) // of a younger program
}

func subjectOf(l Letter) string {
	return oneLine("[market] "+l.Facts.Service+": "+headlineOf(l), subjectMax)
}

// textOf is a letter in plain words. What the service, its callers or people wrote stands on one line each, and cannot look like ours.
func textOf(l Letter, data Data) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	f := l.Facts
	say("%s (%s): %s.", f.Service, oneLine(f.Name, lineMax), headlineOf(l))
	say("")
	say("When:    %s", moment(TimeText(l.At)))
	say("Why:     %s", oneLine(f.Reason, lineMax))
	say("By:      %s", oneLine(f.By, lineMax))
	say("State:   %s", oneLine(f.State, lineMax))
	if s := f.Strikes; s != nil {
		say("Strikes: %d of %d that take it off the shelf within %s (%s)", s.Open, s.Limit, spanOf(s.Window), oneLine(s.Words, lineMax))
	}
	say("Next:    %s", oneLine(f.Next, lineMax))
	if f.Strike != nil {
		say("")
		sayStrike(say, f.Strike)
	}
	say("")
	if p := f.Payout; p != nil {
		say("Payout:  number %d, %s on %s, to %s", p.Number, oneLine(p.Sum, lineMax), oneLine(p.Network, lineMax), oneLine(p.To, lineMax))
		if p.Transaction != "" {
			say("         by transaction %s", oneLine(p.Transaction, lineMax))
		}
	}
	if a := f.PaidTo; a != nil {
		say("Paid to: %s on %s", oneLine(a.Now, lineMax), oneLine(a.Network, lineMax))
		if a.Next != "" {
			say("         %s from %s on", oneLine(a.Next, lineMax), moment(a.NextAt))
		}
	}
	if f.Payout != nil || f.PaidTo != nil {
		say("")
		say("You get this because the listing of %s names this address. PATCH its member notices to change that.", f.Service)
		return b.String()
	}
	say("All strikes with their evidence: GET %s", data.StrikesURL)
	say(`If this is wrong, or once your service is repaired, say so: POST %s with {"text":"..."}`, data.AppealURL)
	say("")
	say("You get this because the listing of %s names this address. PATCH its member notices to change that.", f.Service)
	return b.String()
}

func sayStrike(say func(string, ...any), s *Strike) {
	say("Strike %s, %s, opened at %s. Of its %s:", s.ID, oneLine(s.State, lineMax), moment(s.OpenedAt), counted(s.Deliveries, "call", "calls"))
	for _, e := range s.Evidence {
		who := "a trial call"
		if !e.Trial {
			who = "paid by " + oneLine(e.Payer, lineMax)
		}
		say("- %s  %s %s  from %s, %s", moment(e.Recorded), oneLine(e.Method, lineMax), oneLine(e.Path, lineMax), oneLine(e.Source, lineMax), who)
		say("  call %s: %s, %s", e.Call, oneLine(e.Reason, lineMax), oneLine(e.Detail, lineMax))
		if e.Status != 0 {
			say("  your service answered %d after %.0f ms", e.Status, e.Latency)
		}
		if e.Answer != nil && e.Answer.Snippet != "" {
			// In quotes and escaped: it is text of the service's, and a mail program is to make nothing of it.
			say("  its answer began: %s", strconv.Quote(cut(e.Answer.Snippet, snippetMax)))
		}
	}
}

// spanOf is a span of so many seconds, such as 24h or 1h30m.
func spanOf(seconds float64) string {
	text := time.Duration(seconds * float64(time.Second)).String()
	for _, none := range []string{"m0s", "h0m"} {
		if whole, cut := strings.CutSuffix(text, none); cut {
			text = whole + none[:1]
		}
	}
	return text
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// moment is a time of the API as people read it.
func moment(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return "an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// oneLine makes a text one line of characters that are seen: others, such as those that turn the direction of writing, become spaces.
func oneLine(text string, most int) string {
	return cut(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text), most)
}

// cut shortens a text to so many characters, and says so.
func cut(text string, most int) string {
	n := 0
	for i := range text {
		if n++; n > most {
			return text[:i] + "…"
		}
	}
	return text
}
