package server

import (
	"encoding/hex"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/call"
	"market/internal/strikes"
)

// A strikePage is a page of the queue.
type strikePage struct {
	Items    []strikeView  `json:"items"`    // of Services, in their order
	Services []summaryView `json:"services"` // those that are to be looked at first, first
	Total    int           `json:"total"`    // services on all pages
	Next     string        `json:"next_cursor"`
}

// A serviceStrikesView is everything about the strikes of one service.
type serviceStrikesView struct {
	Summary    summaryView     `json:"summary"`
	Items      []strikeView    `json:"items"`
	Delistings []delistingView `json:"delistings"`
	Appeals    []appealView    `json:"appeals"` // about the service as a whole, the newest
}

// A summaryView is the check before a delisting.
type summaryView struct {
	Service      string     `json:"service"`
	Name         string     `json:"name"`
	State        string     `json:"state"`
	Open         int        `json:"open"`           // strikes that count at the next failure
	LeftOut      int        `json:"left_out"`       // of them: those that are not among the items beside it
	Limit        int        `json:"limit"`          // of them that take the service off the shelf
	Window       float64    `json:"window_seconds"` // in which they count
	Needed       int        `json:"sources_needed"` // networks; with fewer the service is held instead
	Concentrated bool       `json:"concentrated"`
	Words        string     `json:"words"`
	Next         string     `json:"next"`
	Sources      spreadView `json:"sources"`
	Clears       clearsView `json:"clears"`
}

// summaryViewOf sums a service up beside the strikes of it that are shown.
func summaryViewOf(s strikes.Summary, shown []strikes.Strike) summaryView {
	leftOut := s.Open
	for _, st := range shown {
		if st.Counts {
			leftOut--
		}
	}
	return summaryView{Service: s.Slug, Name: s.Name, State: s.State, Open: s.Open, LeftOut: max(0, leftOut), Limit: s.Policy.Limit, Window: s.Policy.Window.Seconds(),
		Needed: max(1, s.Policy.Sources), Concentrated: s.Concentrated, Words: s.Words, Next: s.Next, Sources: spreadViewOf(s.Spread),
		Clears: clearsView{Times: s.Clears.Times, Trials: s.Clears.Trials, Networks: s.Clears.Sources, LastAt: timeJSON(s.Clears.Last), Words: s.ClearedWords}}
}

// A spreadView is how evidence is spread over those who called.
type spreadView struct {
	Evidence  int     `json:"evidence"` // deliveries
	Trials    int     `json:"trials"`   // of them
	FirstAt   string  `json:"first_at,omitempty"`
	LastAt    string  `json:"last_at,omitempty"`
	Span      float64 `json:"span_seconds"`
	Networks  int     `json:"networks"` // different /24, or /48 of IPv6
	Largest   string  `json:"largest_network,omitempty"`
	Share     float64 `json:"largest_network_share"`
	Addresses int     `json:"largest_network_addresses"`
	Payers    int     `json:"payers"`
	Payer     string  `json:"largest_payer,omitempty"`
	PayerPart float64 `json:"largest_payer_share"`
	Words     string  `json:"words"`
}

func spreadViewOf(s strikes.Spread) spreadView {
	v := spreadView{Evidence: s.Evidence, Trials: s.Trials, FirstAt: timeJSON(s.First), LastAt: timeJSON(s.Last), Span: s.Span().Seconds(),
		Networks: s.Sources, Share: s.SourceShare(), Addresses: s.Addresses, Payers: s.Payers, Payer: payerJSON(s.LargestPayer), PayerPart: s.PayerShare(),
		Words: s.Words()}
	if s.LargestSource.IsValid() {
		v.Largest = s.LargestSource.String()
	}
	return v
}

// A clearsView is who cleared strikes within the window.
type clearsView struct {
	Times    int    `json:"times"`
	Trials   int    `json:"trials"` // of them
	Networks int    `json:"networks"`
	LastAt   string `json:"last_at,omitempty"`
	Words    string `json:"words,omitempty"`
}

// A strikeView is one strike with the deliveries that prove it.
type strikeView struct {
	ID         uuid.UUID      `json:"id"`
	Service    string         `json:"service"`
	State      string         `json:"state"`
	Counts     bool           `json:"counts"` // at the next failure
	OpenedAt   string         `json:"opened_at"`
	FoldsUntil string         `json:"folds_until"`
	LastAt     string         `json:"last_evidence_at"`
	ClearedAt  string         `json:"cleared_at,omitempty"`
	ClearedBy  string         `json:"cleared_by,omitempty"` // the call
	Deliveries int            `json:"deliveries"`
	Calls      []uuid.UUID    `json:"calls"` // the first 100
	Sources    spreadView     `json:"sources"`
	Evidence   []evidenceView `json:"evidence"` // the oldest and the newest

	// Decision is the last of a review, and Appeals what the provider says. They stand where one service is shown, not in the queue.
	Decision *answeredView `json:"decision,omitempty"`
	Appeals  []appealView  `json:"appeals,omitempty"`
}

// strikeViewOf shows a strike to an admin, and not whole to a provider.
func strikeViewOf(slug string, s strikes.Strike, whole bool) strikeView {
	v := strikeView{ID: s.ID, Service: slug, State: s.State, Counts: s.Counts, OpenedAt: timeJSON(s.OpenedAt), FoldsUntil: timeJSON(s.FoldsUntil),
		LastAt: timeJSON(s.LastEvidenceAt), ClearedAt: timeJSON(s.ClearedAt), Deliveries: s.Spread.Evidence + s.Excused, Calls: s.Calls,
		Sources: spreadViewOf(s.Spread), Evidence: make([]evidenceView, 0, len(s.Evidence))}
	if s.ClearedBy != (call.ID{}) {
		v.ClearedBy = s.ClearedBy.String()
	}
	for _, e := range s.Evidence {
		v.Evidence = append(v.Evidence, evidenceViewOf(e, whole))
	}
	return v
}

// An evidenceView is one delivery that proves a strike.
type evidenceView struct {
	Call     call.ID     `json:"call"`
	Trial    bool        `json:"trial"`
	AskedAt  string      `json:"asked_at"`
	Recorded string      `json:"recorded_at"`
	Replica  string      `json:"replica,omitempty"` // for admins
	Source   string      `json:"source"`            // for providers the network alone
	Origin   call.Origin `json:"origin"`
	Payer    string      `json:"payer,omitempty"` // left out for a trial
	Method   string      `json:"method"`
	Path     string      `json:"path"`
	Status   int         `json:"service_status,omitempty"`
	Latency  float64     `json:"latency_ms"`
	Reason   call.Reason `json:"reason"`
	Detail   string      `json:"detail"`
	Error    string      `json:"error,omitempty"`
	Excused  bool        `json:"excused,omitempty"` // by an outage of ours
	Answer   *saidView   `json:"answer,omitempty"`  // left out where nothing came
	Others   *othersView `json:"others,omitempty"`  // left out where it is not known
}

// A saidView is what came back. All of it was written by the service.
type saidView struct {
	ContentType string `json:"content_type"`
	Snippet     string `json:"snippet"`
	Binary      bool   `json:"binary"` // there is a body, and it is no text
	Bytes       int64  `json:"bytes"`  // that were read
	Cut         bool   `json:"cut"`    // there was more, or was to be
	SHA256      string `json:"sha256"` // of the first 64 KiB of them, in hex
}

// An othersView is how other services fared in the minute before.
type othersView struct {
	Asked  int `json:"asked"`
	Failed int `json:"failed"`
}

func evidenceViewOf(e strikes.Evidence, whole bool) evidenceView {
	v := evidenceView{Call: e.Call, Trial: e.Trial, AskedAt: timeJSON(e.AskedAt), Recorded: timeJSON(e.RecordedAt), Source: e.Network.String(),
		Origin: e.Origin, Payer: payerJSON(e.Payer), Method: e.Method, Path: e.Path, Status: e.Status,
		Latency: float64(e.Latency.Microseconds()) / 1000, Reason: e.Reason, Detail: e.Detail, Error: e.Error, Excused: e.Excused}
	if whole {
		v.Source = e.Source.String()
		if e.Replica != (uuid.UUID{}) {
			v.Replica = e.Replica.String()
		}
	}
	if e.Said.Bytes > 0 {
		v.Answer = &saidView{ContentType: e.Said.ContentType, Snippet: e.Said.Snippet, Binary: e.Said.Binary(), Bytes: e.Said.Bytes, Cut: e.Said.Cut,
			SHA256: hex.EncodeToString(e.Said.SHA256)}
	}
	if e.Others != nil {
		v.Others = &othersView{Asked: e.Others.Asked, Failed: e.Others.Failed}
	}
	return v
}

// A delistingView is one time that strikes took the service off the shelf.
type delistingView struct {
	ID       uuid.UUID `json:"id"`
	At       string    `json:"at"`
	Kind     string    `json:"kind"` // delisted or held
	From     string    `json:"from"` // the state before
	Open     int       `json:"open"`
	Limit    int       `json:"limit"`
	Window   float64   `json:"window_seconds"`
	Networks int       `json:"networks"`
	Needed   int       `json:"sources_needed"`
	Deciding uuid.UUID `json:"deciding_strike"`
}

func delistingViewOf(d strikes.Delisting) delistingView {
	return delistingView{ID: d.ID, At: timeJSON(d.At), Kind: d.Verdict.String(), From: d.From, Open: d.Open, Limit: d.Limit,
		Window: d.Window.Seconds(), Networks: d.Sources, Needed: d.Needed, Deciding: d.Deciding}
}

// payerJSON is a wallet; empty for none.
func payerJSON(a common.Address) string {
	if a == (common.Address{}) {
		return ""
	}
	return a.Hex()
}
