package corpustest

import (
	"cmp"
	"net/http"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/call"
)

// slack is how long after a rest began it may be looked at.
const slack = 30 * time.Second

// judge holds what can be seen when a row ends against what it says.
func (s *stage) judge() {
	s.Helper()
	w := s.row.want
	if s.last.Status != w.status {
		s.Fatalf("the caller got %d %s, want %d %s: %.300s", s.last.Status, s.last.Code(), w.status, w.reason, s.last.Body)
	}
	if w.status != 0 {
		s.judgeAnswer()
	}
	switch {
	case w.outcome == "" || s.goesOn:
	case s.call != "":
		s.judgeRecord()
	case onlyCounted(w):
		s.judgeCount()
	default:
		s.Errorf("the answer names no call whose record could be held against %s, %s, %s", w.outcome, w.reason, w.party)
	}
	s.judgeService()
}

// onlyCounted says that a call which ends like that leaves no record that its caller could ask for: it is counted, and that is all.
func onlyCounted(w want) bool {
	if w.outcome != call.Refused {
		return false
	}
	switch w.reason {
	case call.PaymentMalformed, call.PaymentMismatch, call.PaymentInvalid, call.PayerUnfunded, call.RefundLimit, call.NotListed, call.NotReady, call.OverCapacity:
		return true
	}
	return false
}

// judgeCount sees that the refusal was counted. Nothing that people are shown has these counts, so it looks into the database.
func (s *stage) judgeCount() {
	s.Helper()
	if s.trial && s.row.want.reason == call.NotListed {
		return // whether trials are offered is looked at before anything is measured
	}
	if n := s.Refusals(s, s.service.Slug, s.row.want.reason); n == 0 {
		s.Errorf("the refusal is not counted as %s", s.row.want.reason)
	}
}

// A row whose call leaves a record can not end without one; only what is counted and no more can.
func TestJudge_OnlyWhatIsOnlyCountedNeedsNoRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want want
		only bool
	}{
		{refused(call.PaymentInvalid, 402), true},
		{refused(call.OverCapacity, 503), true},
		{refused(call.InputInvalid, 422), false},
		{refused(call.NotLive, 503), false},
		{turnedDown(422), false},
		{served, false},
		{fails(call.Upstream5xx), false},
		{resting, false},
	} {
		if got := onlyCounted(c.want); got != c.only {
			t.Errorf("%s %s is only counted: %v, want %v", c.want.outcome, c.want.reason, got, c.only)
		}
	}
}

func (s *stage) judgeAnswer() {
	s.Helper()
	w, a := s.row.want, s.last
	if a.Header.Get("Content-Type") == "text/event-stream" {
		return // how a stream ends is not known when its answer begins
	}
	if w.outcome == call.Served {
		if a.Outcome() != string(call.Served) {
			s.Errorf("the outcome is %q, want served: %.300s", a.Outcome(), a.Body)
		}
		return
	}
	if a.Code() != string(w.reason) || a.JSON["party"] != string(w.party) {
		s.Errorf("the caller was told code %s, party %v; want %s, %s: %.300s", a.Code(), a.JSON["party"], w.reason, w.party, a.Body)
	}
	if w.outcome != "" && a.JSON["charged"] != false {
		s.Errorf("the caller was told charged %v: %.300s", a.JSON["charged"], a.Body)
	}
	if w.outcome != "" && a.Call() != "" && a.Outcome() != string(w.outcome) {
		s.Errorf("the caller was told outcome %q, want %q", a.Outcome(), w.outcome)
	}
}

func (s *stage) judgeRecord() {
	s.Helper()
	w, r := s.row.want, s.Record(s, s.call)
	charged := w.outcome == call.Served && r.JSON["trial"] != true
	if r.JSON["outcome"] != string(w.outcome) || r.JSON["reason"] != string(w.reason) || r.JSON["party"] != string(w.party) || r.JSON["charged"] != charged {
		s.Errorf("the record says outcome %v, reason %v, party %v, charged %v; want %s, %s, %s, %v", r.JSON["outcome"], r.JSON["reason"], r.JSON["party"],
			r.JSON["charged"], w.outcome, w.reason, w.party, charged)
	}
}

func (s *stage) judgeService() {
	s.Helper()
	w := s.row.want
	open, evidence := s.OpenStrikes(s, s.service.Slug), 0
	for _, strike := range open {
		evidence += strike.Deliveries
	}
	if len(open) != w.strikes || evidence != cmp.Or(w.evidence, w.strikes) {
		s.Errorf("%d open strikes of %d calls, want %d of %d", len(open), evidence, w.strikes, cmp.Or(w.evidence, w.strikes))
	}
	if got := s.Rest(s, s.service.Slug); got > w.rests || got < w.rests-slack || (got > 0) != (w.rests > 0) {
		s.Errorf("the service rests for %s, want about %s", got, w.rests)
	}
	page := s.Send(s, apptest.Asking{Method: http.MethodGet, URL: s.URL + "/api/v1/services/" + s.service.Slug}, "")
	if got := page.JSON["state"]; got != cmp.Or(w.state, listed) {
		s.Errorf("the service is %v, want it %s", got, cmp.Or(w.state, listed))
	}
}

const listed = "listed"

// judgeMoney holds what the chain has moved for the row against what it says: once all has ended.
func (s *stage) judgeMoney(in, out []apptest.Transfer) (well bool) {
	s.Helper()
	var paid, back int
	well = true
	for wallet, held := range s.wallets {
		p, b := apptest.Between(in, out, wallet.Address())
		paid, back = paid+p, back+b
		want := held - uint64(p-b)*apptest.PriceUnits //nolint:gosec // nobody gets more than it paid, or the balance says so
		if got := s.Balance(s.t, wallet.Address()); got != want {
			well = false
			s.t.Errorf("%s: a payer has %d units, want %d", s.row.name, got, want)
		}
	}
	if w := s.row.want; paid != w.paid || back != w.back {
		well = false
		s.t.Errorf("%s: %d payments and %d refunds on the chain, want %d and %d", s.row.name, paid, back, w.paid, w.back)
	}
	return well
}
