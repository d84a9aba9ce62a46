package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Test is a message by which the operator sees whether a channel works.
const Test Kind = "test"

const (
	// subjectMax bounds what of a trouble stands in the subject of a mail.
	subjectMax = 140
	// partMax bounds each part of a notice: words of others may be in it.
	partMax = 2000
)

// composed is what a channel takes for a notice. publicURL is where our pages are.
func (p pending) composed(publicURL string) Message {
	m := Message{ID: messageID(p.Notice, p.Phase), Type: "notice." + string(p.Phase), At: p.RaisedAt}
	if p.Kind == Test {
		m.Type = "notice.test"
	}
	what := part(p.Outage.What)
	m.Subject = "[market] " + p.headline() + shorten(firstOf(what), subjectMax)
	if p.Phase == Recovered && p.CalmSince != nil {
		m.At = *p.CalmSince
	}
	m.Text = p.text(publicURL)
	m.Data = p.data(publicURL)
	return m
}

// messageID is the same whenever the same message is sent.
func messageID(notice uuid.UUID, phase Phase) string {
	return "notice_" + notice.String() + "_" + string(phase)
}

// headline is what is said before what the trouble is.
func (p pending) headline() string {
	switch {
	case p.Kind == Test:
		return ""
	case p.Phase == Recovered:
		return "over: "
	case p.over():
		return "over already: "
	}
	return ""
}

// firstOf is what is said first, without what explains it where that is long.
func firstOf(what string) string {
	first, _, _ := strings.Cut(what, ". ")
	if short, _, found := strings.Cut(first, ": "); found && len(first) > subjectMax {
		first = short
	}
	return upperFirst(strings.TrimSuffix(first, "."))
}

// text is the mail.
func (p pending) text(publicURL string) string {
	var b strings.Builder
	para := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	what, effect := sentence(part(p.Outage.What)), sentence(part(p.Outage.Effect))
	if p.Kind == Test {
		para("%s", what)
		para("%s", effect)
		p.foot(&b, publicURL)
		return b.String()
	}
	if p.Phase == Recovered {
		para("This is over since %s, and has not come back for a while:", timeText(*p.CalmSince))
		para("  %s", what)
		para("It was noticed at %s and lasted %s. What waited for it goes on by itself.", timeText(p.RaisedAt), lasted(p.CalmSince.Sub(p.RaisedAt)))
		para("You are told again when it stops again.")
		p.foot(&b, publicURL)
		return b.String()
	}
	para("%s", what)
	if effect != "" {
		para("What that means: %s", effect)
	}
	para("Noticed: %s.", timeText(p.RaisedAt))
	if looks := p.looks(publicURL); len(looks) > 0 {
		para("Where to look:\n  %s", strings.Join(looks, "\n  "))
	}
	if p.over() && p.CalmSince != nil {
		para("It is over already, since %s: this could not be sent before. What waited for it goes on by itself. You are told again when it stops again.", timeText(*p.CalmSince))
	} else {
		para("Work that waits for this stays queued. The next notice of it comes only after it has worked again.")
	}
	p.foot(&b, publicURL)
	return b.String()
}

// foot says who tells, and by which name the notice is found again.
func (p pending) foot(b *strings.Builder, publicURL string) {
	fmt.Fprintf(b, "-- \nmarket at %s, notice %s (%s)\nAll notices: %s/admin/notices\n", publicURL, p.Notice, p.named(), publicURL)
}

// named is the kind with its subject.
func (p pending) named() string {
	if p.Subject == "" || p.Kind == Test {
		return string(p.Kind)
	}
	return string(p.Kind) + ": " + part(p.Subject)
}

// looks are the places to look at, ours under our own address.
func (p pending) looks(publicURL string) []string {
	looks := p.Outage.looks()
	for i, look := range looks {
		if look = part(look); strings.HasPrefix(look, "/") {
			look = publicURL + look
		}
		looks[i] = look
	}
	return looks
}

// A noticeData is what a webhook carries of a notice.
type noticeData struct {
	ID      uuid.UUID `json:"id"`
	Kind    Kind      `json:"kind"`
	Subject string    `json:"subject"`
	Phase   Phase     `json:"phase"`
	What    string    `json:"what"`
	Effect  string    `json:"effect"`
	Look    []string  `json:"look"`
	Noticed string    `json:"noticed_at"`
	Over    *string   `json:"over_at"` // null: it holds
	Text    string    `json:"text"`    // as a mail has it
	Page    string    `json:"page"`
}

func (p pending) data(publicURL string) json.RawMessage {
	d := noticeData{ID: p.Notice, Kind: p.Kind, Subject: part(p.Subject), Phase: p.Phase, What: sentence(part(p.Outage.What)), Effect: sentence(part(p.Outage.Effect)),
		Look: p.looks(publicURL), Noticed: p.RaisedAt.UTC().Format(time.RFC3339Nano), Text: p.text(publicURL), Page: publicURL + "/admin/notices"}
	if d.Look == nil {
		d.Look = []string{}
	}
	if p.over() && p.CalmSince != nil {
		over := p.CalmSince.UTC().Format(time.RFC3339Nano)
		d.Over = &over
	}
	text, err := json.Marshal(d)
	if err != nil {
		return json.RawMessage("{}") // strings and times have no error
	}
	return text
}

func part(s string) string { return shorten(oneLine(s), partMax) }

// sentence begins with a capital and ends with a full stop.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	s = upperFirst(s)
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "…") {
		return s
	}
	return s + "."
}

// lasted is a duration for people.
func lasted(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "hour") + " and " + count(int(d%time.Hour/time.Minute), "minute")
	}
	return count(int(d/(24*time.Hour)), "day") + " and " + count(int(d%(24*time.Hour)/time.Hour), "hour")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
