package delivery

import (
	"slices"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/cooldown"
	"market/internal/strikes"
)

// effects says, for every reason that can end a call, what a delivery from outside does to the counter and to the cooldown. It is
// written by hand from the table of the design, not derived: the code has to agree with it.
var effects = map[call.Reason]struct {
	counter strikes.Effect
	starts  bool
}{
	call.OK:         {strikes.Clear, false},
	call.CallerLeft: {strikes.None, false},

	call.PaymentMalformed: {strikes.None, false},
	call.PaymentMismatch:  {strikes.None, false},
	call.PaymentInvalid:   {strikes.None, false},
	call.PayerUnfunded:    {strikes.None, false},
	call.RefundLimit:      {strikes.None, false},
	call.InputEmpty:       {strikes.None, false},
	call.InputInvalid:     {strikes.None, false},
	call.InputTooLarge:    {strikes.None, false},
	call.OverCapacity:     {strikes.None, false},
	call.NotReady:         {strikes.None, false},
	call.Released:         {strikes.None, false},
	call.NotListed:        {strikes.None, false},
	call.NotLive:          {strikes.None, false},
	call.SettleRejected:   {strikes.None, false},

	call.SettleFailed:      {strikes.None, false},
	call.RejectedByService: {strikes.None, false},
	call.InCooldown:        {strikes.None, false},

	call.UpstreamUnreachable:     {strikes.Increment, true},
	call.UpstreamTimeout:         {strikes.Increment, true},
	call.Upstream5xx:             {strikes.Increment, true},
	call.UpstreamRedirect:        {strikes.Increment, true},
	call.UpstreamBadResponse:     {strikes.Increment, true},
	call.UpstreamAuth:            {strikes.Increment, true},
	call.UpstreamPaymentRequired: {strikes.Increment, true},
	call.ListingBroken:           {strikes.Increment, true},
	call.UpstreamThrottled:       {strikes.None, true},
	call.UpstreamTooLarge:        {strikes.None, true},

	call.Withdrawn:  {strikes.None, false},
	call.EgressDown: {strikes.None, false},
	call.LocalError: {strikes.None, false},

	call.Interrupted:    {strikes.None, false},
	call.CallerStalled:  {strikes.None, false},
	call.LateSettlement: {strikes.None, false},
	call.SettlementLost: {strikes.None, false},
}

func TestEffects_EveryReasonHasItsRow(t *testing.T) {
	t.Parallel()
	for _, row := range call.Rows() {
		if _, ok := effects[row.Reason]; !ok {
			t.Errorf("nobody has said what %s does to counter and cooldown", row.Reason)
		}
	}
	if len(effects) != len(call.Rows()) {
		t.Errorf("%d reasons have effects, %d can end a call", len(effects), len(call.Rows()))
	}
}

func TestEffects_OnlyEvidenceAboutTheServiceFromOutsideMovesAnything(t *testing.T) {
	t.Parallel()
	const rest = time.Minute
	for _, o := range call.Outcomes() {
		for _, p := range call.Parties() {
			for _, r := range call.Reasons() {
				for _, from := range call.Origins() {
					wantCounter, wantRest := strikes.None, time.Duration(0)
					row, ends := call.RowOf(r)
					outside := slices.Contains([]call.Origin{call.External, call.Unattributed}, from)
					if ends && row == (call.Row{Outcome: o, Reason: r, Party: p}) && outside {
						wantCounter = effects[r].counter
						if effects[r].starts {
							wantRest = rest
						}
					} else if outside && p == call.Service && (o == call.Served || o == call.Failed) {
						continue // no call ends so; the rows are the whole of what can
					}
					if got := strikes.EffectOf(o, p, r, from); got != wantCounter {
						t.Errorf("%s · %s · %s · %s: counter %s, want %s", o, p, r, from, got, wantCounter)
					}
					if got := cooldown.After(o, p, r, from, 0, rest); got != wantRest {
						t.Errorf("%s · %s · %s · %s: cooldown %s, want %s", o, p, r, from, got, wantRest)
					}
				}
			}
		}
	}
}
