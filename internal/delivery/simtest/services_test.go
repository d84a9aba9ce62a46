package simtest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"market/internal/call"
)

// A class is what a service is like.
type class int

const (
	_          class = iota
	healthy          // fails once in thousands of calls
	flaky            // fails now and then, and often for some minutes
	broken           // fails always, from some moment on
	malicious        // fails whoever pays, and answers its provider and our scanners well
	ownExample       // refuses its own example
	throttling       // has too many calls now and then, and says so
	oversized        // answers with more than its listing says, now and then
	poisonable       // fails on valid input of one kind
	touchy           // fails its provider, who tries things out on it, and nobody else

	classEnd // keep last
)

func (c class) String() string {
	return [...]string{"invalid", "healthy", "flaky", "broken", "malicious", "breaks on its example", "throttling", "answers too large",
		"poisonable", "fails its provider only"}[c]
}

const (
	services  = 500
	providers = 120
)

// classes says how many services there are of each; the rest is healthy.
var classes = map[class]int{flaky: 80, broken: 40, malicious: 25, ownExample: 15, throttling: 20, oversized: 15, poisonable: 20, touchy: 20}

// A service is one as it is in truth.
type service struct {
	class    class
	provider int
	weight   float64 // of its calls among all
	from     time.Duration
	reason   call.Reason // of its failures
	rate     float64     // of failures, where it fails at times
	weather  *rand.Rand
	storm    bool // it has a bad time
	until    time.Duration
}

var failures = []call.Reason{call.Upstream5xx, call.Upstream5xx, call.Upstream5xx, call.UpstreamTimeout, call.UpstreamUnreachable,
	call.UpstreamBadResponse, call.UpstreamRedirect, call.UpstreamAuth, call.UpstreamPaymentRequired}

func newServices(seed uint64) []*service {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a run is repeated by its seed
	var all []*service
	for c := flaky; c < classEnd; c++ {
		for range classes[c] {
			all = append(all, &service{class: c})
		}
	}
	for len(all) < services {
		all = append(all, &service{class: healthy})
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, s := range all {
		s.provider = r.IntN(providers)
		s.weight = 1 / float64(i+20)
		s.reason = failures[r.IntN(len(failures))]
		s.weather = rand.New(rand.NewPCG(seed, uint64(i)+1000)) //nolint:gosec // as above
		switch s.class {
		case flaky:
			s.rate = 0.1 + 0.85*r.Float64()
		case broken:
			s.from = time.Duration(r.Int64N(int64(72 * time.Hour)))
			if r.IntN(4) == 0 {
				s.from = time.Duration(r.Int64N(int64(2 * time.Hour)))
			}
		case malicious:
			s.rate = 0.85 + 0.15*r.Float64()
		case throttling, oversized:
			s.rate = 0.02 + 0.2*r.Float64()
		case healthy, ownExample, poisonable, touchy:
		}
	}
	return all
}

// slug is the name of a service in the market.
func slug(i int) string { return fmt.Sprintf("service-%03d", i) }

// bad says whether a service that has good and bad times has a bad one now.
func (s *service) bad(now time.Duration) bool {
	for now >= s.until {
		s.storm = !s.storm && s.until > 0
		lasts := time.Duration(float64(3*time.Hour) * s.weather.ExpFloat64())
		if s.storm {
			lasts = 20*time.Second + time.Duration(s.weather.Int64N(int64(15*time.Minute)))
		}
		s.until += max(lasts, time.Second)
	}
	return s.storm
}

// An answer is what a service does with one call that reaches it.
type answer struct {
	reason call.Reason
	truth  doing
	takes  time.Duration
	wait   time.Duration
}

// answers says what the service does with a valid call. example: the call is the one that its listing gives as an example.
func (s *service) answers(r *rand.Rand, now time.Duration, from caller, example bool) answer {
	good := answer{reason: call.OK, truth: delivered, takes: quick(r)}
	if slow := s.class == flaky || s.class == poisonable; slow && r.IntN(6) == 0 {
		good.takes = time.Duration(r.Int64N(int64(30 * time.Second))) // asked before others fail, and served after
	}
	bad := answer{reason: s.reason, truth: ownFault, takes: quick(r)}
	if s.reason == call.UpstreamTimeout {
		bad.takes = 30 * time.Second
	}
	fails := false
	switch s.class {
	case healthy:
		fails = r.IntN(3000) == 0
	case flaky:
		share := 0.01
		if s.bad(now) {
			share = s.rate
		}
		fails = r.Float64() < share
	case broken:
		fails = now >= s.from
	case malicious:
		fails = from.outside() && r.Float64() < s.rate
	case ownExample:
		if example && from.outside() {
			return answer{reason: call.ListingBroken, truth: ownFault, takes: quick(r)}
		}
	case throttling:
		if s.bad(now) || r.Float64() < s.rate/10 {
			return answer{reason: call.UpstreamThrottled, truth: flagged, takes: quick(r), wait: time.Duration(r.IntN(20)) * time.Minute}
		}
	case oversized:
		if r.Float64() < s.rate {
			return answer{reason: call.UpstreamTooLarge, truth: flagged, takes: quick(r)}
		}
	case poisonable:
		if from == poisoner {
			return answer{reason: call.Upstream5xx, truth: ownFault, takes: quick(r)}
		}
	case touchy:
		fails = from == provider && r.IntN(2) == 0
	}
	if fails {
		return bad
	}
	return good
}

// quick is how long an answer takes: mostly well under a second, now and then half a minute.
func quick(r *rand.Rand) time.Duration {
	d := time.Duration(float64(400*time.Millisecond) * r.ExpFloat64())
	if r.IntN(50) == 0 {
		d = time.Duration(r.Int64N(int64(30 * time.Second)))
	}
	return min(max(d, 10*time.Millisecond), 30*time.Second)
}
