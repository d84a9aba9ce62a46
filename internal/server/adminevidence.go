package server

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/delivery"
	"market/internal/strikes"
)

// requestShownMax is how much of a request's path stands in a table. The page of the call has the whole.
const requestShownMax = 200

// A strikeOnPage is one strike, with everything that it is judged by.
type strikeOnPage struct {
	Anchor    string
	Nth       string // "1 of 3", the newest
	State     badge
	Opened    *moment
	What      string
	Ended     string
	Shown     string // how much of the evidence is
	Evidence  []evidenceOnPage
	Appeals   []appealOnPage
	Decisions []decisionOnPage
	Decided   bool // a decision stands
	Forms     []reviewForm
}

type evidenceOnPage struct {
	At             *moment
	Call, Kind     string
	Source, Origin string
	Payer          string // empty: a trial call
	Request        string
	Replica        string
	Answer         string
	Reason         call.Reason
	Error          string
	Body           string // how much came back; empty: nothing did
	Type           string
	Snippet        string
	Hash, Hashed   string
	Others         string
}

type appealOnPage struct {
	At     *moment
	By     string
	Open   bool
	Lines  []string
	Answer string // empty: nobody has answered it
}

func appealOnPageOf(a delivery.Appeal) appealOnPage {
	page := appealOnPage{At: momentOf(a.At), By: plain(a.By.Name), Open: a.Answer == nil, Lines: linesOf(a.Text)}
	if a.Answer != nil {
		page.Answer = fmt.Sprintf("Answered by %s at %s: %s. %s", plain(a.Answer.By), humanTime(a.Answer.At), strings.ToLower(deeds[a.Answer.Action]), plain(a.Answer.Reason))
	}
	return page
}

type decisionOnPage struct {
	What, By, Reason string
	At               *moment
}

func strikeOnPageOf(st strikes.Strike) strikeOnPage {
	page := strikeOnPage{Anchor: "s-" + st.ID.String(), State: strikeBadge(st), Opened: momentOf(st.OpenedAt)}
	page.What = fmt.Sprintf("%s, %s.", plural(st.Spread.Evidence, "failed call", "failed calls"), st.Spread.Words())
	if st.Excused > 0 {
		page.What += fmt.Sprintf(" Excused by an outage of ours, and not counted here: %s.", count(st.Excused))
	}
	if !st.ClearedAt.IsZero() {
		page.Ended = "A success cleared it at " + humanTime(st.ClearedAt) + ": call " + st.ClearedBy.String() + "."
	}
	for _, e := range st.Evidence {
		page.Evidence = append(page.Evidence, evidenceOnPageOf(e))
	}
	page.Shown = "The evidence, all of it."
	if n := len(st.Evidence); n < st.Spread.Evidence+st.Excused {
		page.Shown = fmt.Sprintf("The evidence: the oldest and the newest %s of %s.", count(n), count(st.Spread.Evidence+st.Excused))
	}
	return page
}

func strikeBadge(st strikes.Strike) badge {
	switch {
	case st.Counts:
		return badge{"counts", "bad"}
	case st.State == "open":
		return badge{"too old to count", "wait"}
	}
	return badge{st.State, "good"}
}

func evidenceOnPageOf(e strikes.Evidence) evidenceOnPage {
	row := evidenceOnPage{
		At: momentOf(e.RecordedAt), Call: e.Call.String(), Kind: "paid call", Source: e.Source.String(), Origin: string(e.Origin) + ", of " + e.Network.String(),
		Request: e.Method + " " + brief(e.Path, requestShownMax), Answer: answerWords(e), Reason: e.Reason, Error: plain(e.Error), Others: othersWords(e.Others),
	}
	if e.Trial {
		row.Kind = "trial call"
	}
	if e.Excused {
		row.Kind += ", excused by an outage of ours"
	}
	if e.Payer != (common.Address{}) {
		row.Payer = e.Payer.Hex()
	}
	if e.Replica != (uuid.UUID{}) {
		row.Replica = e.Replica.String()
	}
	said := e.Said
	if said.Bytes == 0 {
		return row
	}
	row.Body, row.Type, row.Hash = plural(int(said.Bytes), "byte", "bytes")+" came back", brief(said.ContentType, 100), hex.EncodeToString(said.SHA256)
	if said.Cut {
		row.Body = "More than " + row.Body
	}
	row.Hashed = "of them"
	if said.Bytes > call.HashedMax {
		row.Hashed = "of the first " + count(call.HashedMax)
	}
	row.Snippet = strings.Join(linesOf(said.Snippet), "\n")
	if said.Binary() {
		row.Body += ", no text"
	}
	return row
}

func answerWords(e strikes.Evidence) string {
	if e.Status == 0 {
		return "No whole answer in " + span(e.Latency)
	}
	return "Status " + strconv.Itoa(e.Status) + " in " + span(e.Latency)
}

// othersWords says whether it may have been us: how many other services failed at the same time.
func othersWords(o *strikes.Others) string {
	switch {
	case o == nil:
		return "Not known."
	case o.Asked == 0:
		return "No other service was asked."
	case o.Failed == 0:
		return "None of " + count(o.Asked) + " failed."
	}
	return count(o.Failed) + " of " + count(o.Asked) + " failed."
}
