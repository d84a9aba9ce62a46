package readiness

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

const dollar = 1_000_000

var errHangs = errors.New("it does not answer")

// The product's numbers, with nothing sent at once.
func TestAllowance_IsWhatMayBeLostOverWhatIsSentASecond(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		got, want time.Duration
	}{
		"two processes at 20 USD/s with 200 USD": {Allowance(200*dollar, 0, 40*dollar), 5 * time.Second},
		"a quarter of that for itself":           {shared(200*dollar, 2500, 0, 20*dollar), 2500 * time.Millisecond},
		"eight processes":                        {Allowance(200*dollar, 0, 160*dollar), 1250 * time.Millisecond},
		"what goes at once is less for later":    {Allowance(200*dollar, 40*dollar, 40*dollar), 4 * time.Second},
		"all of it goes at once":                 {Allowance(40*dollar, 40*dollar, 40*dollar), 0},
		"more than all of it":                    {Allowance(40*dollar, 41*dollar, 40*dollar), 0},
		"nothing to lose":                        {Allowance(0, 0, dollar), 0},
		"it is rounded down":                     {Allowance(10, 0, 3), 3_333_333_333},
		"more than fits":                         {Allowance(math.MaxInt64, 0, 1), math.MaxInt64},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", name, tt.got, tt.want)
		}
	}
}

// Whatever the processes of a fleet are told, what all of them may send within their allowances is never more than the budget.
func TestFleet_Allowance_AllTogetherNeverSendMoreThanTheBudget(t *testing.T) {
	t.Parallel()
	plain := func(r, c int64) Terms { return Terms{Budget: 200 * dollar, Rate: r * dollar, Burst: c * dollar} }
	shared := func(r, c int64, s int) Terms { t := plain(r, c); t.Share = s; return t }
	for name, tt := range map[string]struct {
		all  []Terms
		want []time.Duration
	}{
		"alone":                         {[]Terms{plain(20, 20)}, []time.Duration{9 * time.Second}},
		"two alike":                     {[]Terms{plain(20, 20), plain(20, 20)}, []time.Duration{4 * time.Second, 4 * time.Second}},
		"a quarter, and three quarters": {[]Terms{shared(20, 10, 2500), shared(20, 10, 7500)}, []time.Duration{2 * time.Second, 7 * time.Second}},
		"half of it shared":             {[]Terms{shared(20, 20, 5000), plain(20, 20)}, []time.Duration{4 * time.Second, 4 * time.Second}},
		"all of it shared by others":    {[]Terms{shared(20, 20, 10_000), plain(20, 20)}, []time.Duration{9 * time.Second, 0}},
		"shares above the whole":        {[]Terms{shared(20, 20, 10_000), shared(20, 20, 10_000)}, []time.Duration{4 * time.Second, 4 * time.Second}},
		"the least budget counts":       {[]Terms{plain(20, 20), {Budget: 100 * dollar, Rate: 20 * dollar, Burst: 20 * dollar}}, []time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond}},
		"who was told nothing":          {[]Terms{plain(20, 20), {}}, []time.Duration{9 * time.Second, 0}},
	} {
		var f Fleet
		for _, terms := range tt.all {
			f.add(terms)
		}
		sent := int64(0)
		for i, terms := range tt.all {
			if terms == (Terms{}) {
				continue // it has no bucket, and no allowance of this kind
			}
			got := f.Allowance(terms, 0)
			if got != tt.want[i] {
				t.Errorf("%s: the allowance of number %d is %s, want %s", name, i, got, tt.want[i])
			}
			if got > 0 {
				sent += terms.Burst + int64(got.Seconds()*float64(terms.Rate))
			}
		}
		if sent > f.Budget {
			t.Errorf("%s: %s USD are sent, of %s", name, usd(sent), usd(f.Budget))
		}
	}
}

// What is unproved is lost too when it proves false. Words are believed only while an allowance is left.
func TestFleet_Words_LeaveAnAllowance(t *testing.T) {
	t.Parallel()
	own := Terms{Budget: 200 * dollar, Rate: 20 * dollar, Burst: 20 * dollar}
	shared := own
	shared.Share = 5000
	for name, terms := range map[string]Terms{"alone": own, "with half of it": shared} {
		f := FleetOf([16]byte{1}, terms, nil)
		most := f.Words(terms)
		if most <= 0 || f.Allowance(terms, most) < wordsKeep || f.Allowance(terms, most+2) >= wordsKeep {
			t.Errorf("%s: %s USD may be unproved, which leaves %s; want just %s", name, usd(most), f.Allowance(terms, most), wordsKeep)
		}
	}
	f := FleetOf([16]byte{1}, own, []Member{{ID: [16]byte{2}, Terms: own}, {ID: [16]byte{3}, Terms: own}, {ID: [16]byte{4}, Terms: own}})
	if got := f.Words(own); got != 0 {
		t.Errorf("%s USD may be unproved where that leaves less than %s", usd(got), wordsKeep)
	}
}

func TestFleet_Err_NamesWhatMakesTheAllowanceTooShort(t *testing.T) {
	t.Parallel()
	own := Terms{Budget: 200 * dollar, Rate: 20 * dollar, Burst: 20 * dollar}
	beside := func(n int, terms Terms) Fleet {
		others := make([]Member, n)
		for i := range others {
			others[i] = Member{ID: [16]byte{byte(i + 2)}, Terms: terms}
		}
		return FleetOf([16]byte{1}, own, others)
	}
	if err := beside(4, own).Err(own); err != nil { // (200 − 100) / 100
		t.Errorf("five processes have an allowance of a second: %v", err)
	}
	const want = "MARKET_EXPOSURE_USD: a proof that payments work could be used for 666ms, and has to be for a second at least: b is 200 USD, and the n = 6 processes " +
		"that run send r = 120 USD a second to settlement and c = 120 USD at once (this one: 20 and 20; MARKET_ADMIT_USD_PER_SECOND, MARKET_ADMIT_BURST_USD)"
	if err := beside(5, own).Err(own); err == nil || err.Error() != want {
		t.Errorf("six processes: %v, want %s", err, want)
	}
	shares := own
	shares.Share = 6000
	if err := FleetOf([16]byte{1}, shares, []Member{{ID: [16]byte{2}, Terms: shares}}).Err(shares); err == nil ||
		err.Error() != "MARKET_EXPOSURE_SHARE: the shares of the 2 processes that run sum to 1.2, which is more than 1" {
		t.Errorf("shares of 1.2: %v", err)
	}
	small, large := own, own
	small.Share, large.Share = 1500, 8500 // (0.15 × 200 − 20) / 20 = 0.5, and the same for one without a share
	plain := Member{ID: [16]byte{2}, Terms: own}
	for _, other := range []Member{plain, {ID: plain.ID, Terms: small}} { // what a share of 0.85 leaves them is too little
		err := FleetOf([16]byte{1}, large, []Member{other}).Err(large, other)
		if closes := other == plain; closes && (err == nil || !strings.Contains(err.Error(), "beside this process "+plain.ID.String()+", which runs, could use a proof")) ||
			!closes && (err == nil || !strings.Contains(err.Error(), "500ms")) {
			t.Errorf("a share that closes %+v: %v", other, err)
		}
	}
	if err := beside(20, own).Err(Terms{}); err != nil {
		t.Errorf("who was told nothing: %v", err)
	}
}

func TestResult_Judge_ChangesOnTheBoundary(t *testing.T) {
	t.Parallel()
	const allowance = 5 * time.Second
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	no := Deny("the treasury is blocklisted")
	for name, tt := range map[string]struct {
		result result
		state  State
		cause  Cause
		at     time.Duration
	}{
		"never looked at":                           {result{}, NotReady, CauseNeverVerified, 0},
		"looked at in vain":                         {result{failed: start, whyFails: errHangs}, NotReady, CauseNeverVerified, 0},
		"just proved":                               {result{good: start}, Ready, 0, 0},
		"just below the allowance":                  {result{good: start}, Ready, 0, allowance - 1},
		"on the allowance":                          {result{good: start}, NotReady, CauseTooOld, allowance},
		"just above the allowance":                  {result{good: start}, NotReady, CauseTooOld, allowance + 1},
		"a look failed after the proof":             {result{good: start, failed: start.Add(1), whyFails: errHangs}, Degraded, 0, allowance - 1},
		"a look failed, and the proof is too old":   {result{good: start, failed: start.Add(1), whyFails: errHangs}, NotReady, CauseTooOld, allowance},
		"a look failed before the proof":            {result{good: start, failed: start.Add(-1), whyFails: errHangs}, Ready, 0, 1},
		"denied":                                    {result{good: start, no: no}, NotReady, CauseDenied, 0},
		"just below what the authority allows":      {result{good: start, until: start.Add(2 * time.Second)}, Ready, 0, 2*time.Second - 1},
		"on what the authority allows":              {result{good: start, until: start.Add(2 * time.Second)}, NotReady, CauseTooOld, 2 * time.Second},
		"the authority cannot make it longer":       {result{good: start, until: start.Add(time.Hour)}, NotReady, CauseTooOld, allowance},
		"denied, and nobody answers any more since": {result{good: start, no: no, failed: start.Add(1), whyFails: errHangs}, NotReady, CauseDenied, 1},
	} {
		got := tt.result.judge(start.Add(tt.at), tt.result.good, allowance)
		if got.State != tt.state || got.Cause != tt.cause || (tt.state == Ready) != (got.Why == nil) && tt.state != NotReady {
			t.Errorf("%s: %s, %s, %v; want %s, %s", name, got.State, got.Cause, got.Why, tt.state, tt.cause)
		}
	}
}

// What is known of a capability after what was found of it, in order.
func TestResult_Found_OnlyWhatIsDefiniteReplacesAGoodResult(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	var r result
	stands := func(when string, now int, state State, age int) {
		t.Helper()
		got := r.judge(at(now), r.good, 10*time.Second)
		if got.State != state || age >= 0 && got.Age != time.Duration(age)*time.Second {
			t.Errorf("%s: %s, %s old; want %s, %d s", when, got.State, got.Age, state, age)
		}
	}
	r.proved(at(0))
	stands("a settlement alone proves nothing that nobody has looked at", 0, NotReady, -1)
	r.found(nil, at(0), 0, at(1))
	stands("a look that began before it may count", 1, NotReady, -1)
	r.found(nil, at(1), 0, at(1))
	stands("a look that may count", 2, Ready, 1)
	r.found(errHangs, at(3), 0, at(1))
	stands("a look that says nothing", 4, Degraded, 3)
	r.proved(at(4))
	stands("a settlement", 5, Ready, 1)
	r.proved(at(2))
	stands("a settlement that began earlier", 5, Ready, 1)
	r.found(Deny("no"), at(5), 0, at(1))
	stands("a definite no", 5, NotReady, 1)
	r.proved(at(6))
	stands("a settlement lifts no definite no", 6, NotReady, -1)
	r.found(errHangs, at(6), 0, at(1))
	stands("nor does a look that says nothing", 7, NotReady, -1)
	r.found(nil, at(8), time.Second, at(1))
	stands("a look that proves the opposite", 8, Ready, 0)
	r.proved(at(9))
	stands("a settlement does not outlive what the authority allows", 9, NotReady, 0)
}

// shared is the allowance of a process that runs alone with a share of the budget.
func shared(budget int64, share int, burst, rate int64) time.Duration {
	own := Terms{Budget: budget, Rate: rate, Burst: burst, Share: share}
	return FleetOf(uuid.UUID{}, own, nil).Allowance(own, 0)
}
