package watch

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"market/internal/chain"
	"market/internal/delivery"
	"market/internal/facilitator"
	"market/internal/money"
	"market/internal/notify"
	"market/internal/pulse"
	"market/internal/refund"
)

var (
	usdc    = common.Address{0xcc}
	payers  = []common.Address{{1}, {2}}
	network = Network{Network: chain.Network{ID: "eip155:1", Confirmations: 10, Assets: []chain.Asset{{Address: usdc, Symbol: "USDC", Decimals: 6}}}}
)

func TestNothingSettles_SaysSoOfSeveralPayersWhoseSeveralPaymentsFailed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tries delivery.Tries
		want  bool
	}{
		"a quiet night":                       {delivery.Tries{}, false},
		"a crawler that looks at every price": {delivery.Tries{Challenges: 100_000}, false},
		"one below":                           {delivery.Tries{Failed: 4, Payers: payers}, false},
		"enough":                              {delivery.Tries{Failed: 5, Payers: payers}, true},
		"more":                                {delivery.Tries{Failed: 6, Payers: payers}, true},
		"one payer, however often":            {delivery.Tries{Failed: 1000, Payers: payers[:1]}, false},
		"one of many settled":                 {delivery.Tries{Failed: 1000, Settled: 1, Payers: payers}, false},
		"on two processes, one payer on each each": {delivery.Tries{Failed: 2, Payers: payers[:1]}.Add(delivery.Tries{Failed: 3, Payers: payers[1:]}), true},
		"on two processes, the same on both":       {delivery.Tries{Failed: 3, Payers: payers[:1]}.Add(delivery.Tries{Failed: 3, Payers: payers[:1]}), false},
	} {
		if got := nothingSettles(tt.tries); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestSettling_IsOverWithTheNextPaymentThatSettlesAndNotWithSilence(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tries         delivery.Tries
		open          bool
		raise, settle bool
	}{
		"it begins":           {delivery.Tries{Failed: 5, Payers: payers}, false, true, false},
		"it goes on":          {delivery.Tries{Failed: 5, Payers: payers}, true, false, false},
		"nobody tries":        {delivery.Tries{}, true, false, false},
		"one settles":         {delivery.Tries{Settled: 1, Failed: 5, Payers: payers}, true, false, true},
		"one settles, as all": {delivery.Tries{Settled: 1}, false, false, false},
	} {
		told, settle := settling(tt.tries, tt.open)
		if (told != nil) != tt.raise || settle != tt.settle {
			t.Errorf("%s: raised %v, settled %v", name, told, settle)
		}
	}
}

func TestGasLow_IsOverOnlyWithTwiceAsMuch(t *testing.T) {
	t.Parallel()
	for transactions, want := range map[int64]struct{ first, again bool }{
		0: {true, true}, 499: {true, true}, 500: {false, true}, 501: {false, true}, 999: {false, true}, 1000: {false, false}, 1001: {false, false},
	} {
		if got := gasLow(false, transactions); got != want.first {
			t.Errorf("%d transactions: low is %v, want %v", transactions, got, want.first)
		}
		if got := gasLow(true, transactions); got != want.again {
			t.Errorf("%d transactions where it was low: low is %v, want %v", transactions, got, want.again)
		}
	}
}

func TestOffset_AClockIsApartForCertainOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o           offset
		first, next bool
	}{
		"right":                         {offset{0, 0}, false, false},
		"behind, on the bound":          {offset{-5 * time.Second, 0}, false, true},
		"behind, just over it":          {offset{-5*time.Second - 1, 0}, true, true},
		"ahead, just under it":          {offset{5*time.Second - 1, 0}, false, true},
		"ahead, just over it":           {offset{5*time.Second + 1, 0}, true, true},
		"over it, by a slow round trip": {offset{6 * time.Second, 2 * time.Second}, false, true},
		"nearly right again":            {offset{4 * time.Second, 0}, false, true},
		"right again":                   {offset{4*time.Second - 1, 0}, false, false},
	} {
		if first, next := tt.o.apart(false), tt.o.apart(true); first != tt.first || next != tt.next {
			t.Errorf("%s: apart %v, where it was so before %v; want %v, %v", name, first, next, tt.first, tt.next)
		}
	}
}

func TestLateRefunds_AreToldByNetworkAndOverWhenNoneIsNearTheLimit(t *testing.T) {
	t.Parallel()
	known := map[string]Network{"eip155:1": network}
	late := refund.Late{Network: "eip155:1", Asset: usdc, Count: 12, Parked: 3, Sum: money.FromUnits(3_400_000), Oldest: 25 * time.Minute, Why: "the token refused it"}
	near := refund.Late{Network: "eip155:1", Asset: usdc, Oldest: 8 * time.Minute}
	was := map[key]finding{{notify.RefundsLate, "eip155:1"}: {bad: true, told: notify.Outage{What: "as before"}}}
	for name, tt := range map[string]struct {
		late  []refund.Late
		was   map[key]finding
		found int
		bad   bool
	}{
		"none":                       {nil, nil, 0, false},
		"some":                       {[]refund.Late{late}, nil, 1, true},
		"some, as before":            {[]refund.Late{late}, was, 1, true},
		"near the limit":             {[]refund.Late{near}, nil, 1, false},
		"still near the limit":       {[]refund.Late{near}, was, 1, true},
		"none near the limit":        {nil, was, 0, false},
		"of a network that has gone": {[]refund.Late{{Network: "eip155:9", Asset: usdc, Count: 1, Sum: money.FromUnits(5)}}, nil, 1, true},
	} {
		found := lateRefunds(tt.late, known, tt.was)
		if len(found) != tt.found || tt.found > 0 && found[0].bad != tt.bad {
			t.Errorf("%s: found %+v", name, found)
		}
	}
	want := "12 refunds on eip155:1, 3.4 USDC in all, are owed for longer than refunds take, the oldest for 25 minutes: the token refused it"
	if got := lateRefunds([]refund.Late{late}, known, nil)[0].told; got.What != want || !strings.Contains(got.Effect, "3 of them are parked") {
		t.Errorf("it says %+v, want %q", got, want)
	}
}

func TestLateLimit_LeavesTheTimeThatTwoConfirmationsTake(t *testing.T) {
	t.Parallel()
	for confirmations, want := range map[int]time.Duration{1: 10*time.Minute + 24*time.Second, 12: 14*time.Minute + 48*time.Second} {
		if got := lateLimit(confirmations); got != want {
			t.Errorf("%d confirmations: %s, want %s", confirmations, got, want)
		}
	}
}

func TestJobFact_IsStuckWhenNoneEndedWellForFiveMinutes(t *testing.T) {
	t.Parallel()
	const never = -1
	for name, tt := range map[string]struct {
		job         jobFact
		up          time.Duration
		stuck, over bool
	}{
		"all well":             {jobFact{failing: never, done: time.Second, given: never}, time.Hour, false, true},
		"given up, just now":   {jobFact{failing: 0, done: never, given: 0}, time.Hour, false, false},
		"given up, just under": {jobFact{failing: jobPatience - 1, done: never, given: 0}, time.Hour, false, false},
		"given up, on it":      {jobFact{failing: jobPatience, done: never, given: 0}, time.Hour, true, false},
		"given up, over it":    {jobFact{failing: jobPatience + 1, done: time.Hour, given: 0}, time.Hour, true, false},
		"ended well since":     {jobFact{failing: never, done: time.Minute, given: 10 * time.Minute}, time.Hour, false, true},
		"long ago, and nobody knows what ended well":  {jobFact{failing: never, done: never, given: 3 * time.Hour}, time.Hour, false, false},
		"nothing is known any more":                   {jobFact{failing: never, done: never, given: never}, time.Hour, false, true},
		"periodic, and it runs":                       {jobFact{periodic: true, done: jobPatience - 1, failing: never, given: never}, time.Hour, false, true},
		"periodic, and it fails now and then":         {jobFact{periodic: true, done: time.Second, failing: never, given: 2 * time.Second}, time.Hour, false, true},
		"periodic, and it has not run":                {jobFact{periodic: true, done: jobPatience, failing: never, given: never}, time.Hour, true, false},
		"periodic, and it never ran":                  {jobFact{periodic: true, done: never, failing: never, given: never}, jobPatience, true, false},
		"periodic, after a long stop":                 {jobFact{periodic: true, done: time.Hour, failing: never, given: never}, jobPatience - 1, false, false},
		"periodic, and it is given up all the time":   {jobFact{periodic: true, done: 10 * time.Minute, failing: 10 * time.Minute, given: 0}, time.Hour, true, false},
		"periodic, and has just been begun to be run": {jobFact{periodic: true, done: never, failing: never, given: never}, 0, false, false},
	} {
		if got := tt.job.stuck(tt.up); got != tt.stuck {
			t.Errorf("%s: stuck is %v, want %v", name, got, tt.stuck)
		}
		if got := tt.job.over(); got != tt.over {
			t.Errorf("%s: over is %v, want %v", name, got, tt.over)
		}
	}
}

// Every text answers what stopped, what that stops and what goes on, and where to look, in the form of a notice.
func TestTexts_AnswerThreeQuestions(t *testing.T) {
	t.Parallel()
	id := uuid.UUID{7}
	late, _ := lateTold("eip155:1", []refund.Late{{Network: "eip155:1", Asset: usdc, Count: 1, Parked: 1, Sum: money.FromUnits(2000), Oldest: 15 * time.Minute}}, network)
	nothing, _ := settling(delivery.Tries{Challenges: 30, Failed: 7, Payers: payers}, false)
	texts := map[string]notify.Outage{
		"refunds":   late,
		"nothing":   *nothing,
		"gas":       gasFinding(network, facilitator.Gas{Address: common.Address{9}, Balance: big.NewInt(12345), Transactions: 312, Least: 20}, false).told,
		"clock":     clockFinding(id, "127.0.0.1:4021", offset{ahead: -7500 * time.Millisecond}, false).told,
		"loop":      silenceFinding(id, "127.0.0.1:4021", pulse.Silence{Loop: "sweeper", For: 3 * time.Minute}).told,
		"job":       jobFact{kind: "deliver_notice", failing: 6 * time.Minute, why: "421 too many connections"}.told(),
		"no job":    jobFact{kind: "refunds_due", periodic: true, done: 6 * time.Minute}.told(),
		"not ready": networks(map[string]error{"eip155:1": facilitatorGone{}})[0].told,
	}
	for name, text := range texts {
		t.Log(text.Text())
		if text.What == "" || text.Effect == "" || text.Look == "" {
			t.Errorf("%s: an answer is missing: %+v", name, text)
		}
		goesOn := slices.ContainsFunc([]string{"go on", "goes on", "other processes"}, func(s string) bool { return strings.Contains(text.Effect, s) })
		if !goesOn {
			t.Errorf("%s: it is not said what goes on: %s", name, text.Effect)
		}
		for _, part := range []string{text.What, text.Effect} {
			if strings.HasSuffix(part, ".") || strings.ContainsAny(part, "\n") || strings.Contains(part, "n't") {
				t.Errorf("%s: %q ends with a full stop, has two lines or a contraction", name, part)
			}
		}
	}
}

type facilitatorGone struct{}

func (facilitatorGone) Error() string { return "the newest block is 4m0s old" }
