package remote

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"market/internal/source"
)

func definite(err error) bool {
	trouble, ok := errors.AsType[*Trouble](err)
	return ok && trouble.Definite()
}

// A facilitator that has said what it settles an instant ago is asked again: what it says now counts.
func TestClient_Prove_TellsANoFromNoAnswer(t *testing.T) {
	t.Parallel()
	const elsewhere = `{"kinds":[{"x402Version":2,"scheme":"exact","network":"eip155:8453"}]}`
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	breaks := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, tt := range map[string]struct {
		answer     http.HandlerFunc
		proved, no bool
		relied     bool // Settles, which asks nothing, still does
	}{
		"it settles":                     {says(200, supportsBoth), true, false, true},
		"it settles for version 1":       {says(200, supportsV1), true, false, true},
		"it does not take us":            {says(401, `{"error":"who are you"}`), false, true, false},
		"it forbids us":                  {says(403, html), false, true, false},
		"it wants money":                 {says(402, ""), false, true, false},
		"it settles elsewhere":           {says(200, elsewhere), false, true, false},
		"it settles by another scheme":   {says(200, `{"kinds":[{"x402Version":2,"scheme":"upto","network":"eip155:84532"}]}`), false, true, false},
		"it settles nothing":             {says(200, `{"kinds":[]}`), false, true, false},
		"it throttles us":                {says(429, ""), false, false, true},
		"it does not know the question":  {says(404, html), false, false, true},
		"trouble of its own":             {says(500, html), false, false, true},
		"a gateway without it":           {says(503, ""), false, false, true},
		"a 403 of its own inside a 502":  {says(502, `{"status":403}`), false, false, true},
		"a redirect":                     {redirects(308), false, false, true},
		"HTML":                           {says(200, html), false, false, true},
		"JSON of another shape":          {says(200, `{"kinds":{}}`), false, false, true},
		"it hangs":                       {hangs, false, false, true},
		"it hangs up before it answered": {breaks, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, says(200, settled(nil)))
			c := d.client(t, nil)
			d.supports(tt.answer)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if name == "it hangs" {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			validFor, err := c.Prove(ctx, network)
			if (err == nil) != tt.proved || definite(err) != tt.no || validFor != 0 {
				t.Errorf("%v, definite %v, valid for %s; want it proved %v, definite %v", err, definite(err), validFor, tt.proved, tt.no)
			}
			if err := c.Settles(network); (err == nil) != tt.relied {
				t.Errorf("afterwards it settles: %v, want %v", err, tt.relied)
			}
		})
	}
}

// A 403 beside a payment may be about that payment, and is no word on us.
func TestTrouble_Definite_OnlyAboutWhatIsSupported(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]bool{callSupported: true, "settle": false, "verify": false} {
		for _, trouble := range []*Trouble{{Call: call, Fault: Turned, Status: 403}, {Call: call, Fault: Unauthorized, Status: 401}, {Call: call, Fault: Unsupported}} {
			if got := trouble.Definite(); got != want {
				t.Errorf("%s: definite %v, want %v", trouble, got, want)
			}
		}
	}
	for _, f := range Faults() {
		trouble := &Trouble{Call: callSupported, Fault: f}
		if got, want := trouble.Definite(), f == Unsupported || f == Unauthorized || f == Unpaid; got != want {
			t.Errorf("%s: definite %v, want %v", trouble, got, want)
		}
	}
}

func TestMaxAge_IsTheShortestPositiveNumberOrNone(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"":                                     0,
		"max-age=1":                            time.Second,
		"public, Max-Age=60, must-revalidate":  time.Minute,
		"max-age=60, max-age=5":                5 * time.Second,
		"no-store":                             0,
		"no-store, max-age=0":                  0,
		"max-age=0, max-age=7":                 7 * time.Second,
		"s-maxage=3":                           0,
		"max-age=-1":                           0,
		"max-age=+1":                           0,
		"max-age=1.5":                          0,
		"max-age=\"5\"":                        0,
		"max-age=soon":                         0,
		"max-age":                              0,
		"max-age=2147483647":                   2147483647 * time.Second,
		"max-age=2147483648":                   0,
		"max-age=99999999999999999999999":      0,
		"stale-while-revalidate=9, max-age=30": 30 * time.Second,
	} {
		if got := maxAge([]string{header}); got != want {
			t.Errorf("Cache-Control: %s: %s, want %s", header, got, want)
		}
	}
	if got := maxAge([]string{"max-age=9", "private, max-age=4"}); got != 4*time.Second {
		t.Errorf("two lines: %s, want 4s", got)
	}
	if got := maxAge(make([]string, 2*cacheControlMax)); got != 0 {
		t.Errorf("more than is read: %s", got)
	}
}

func TestClient_Prove_HasTheTimeForWhichTheAnswerHolds(t *testing.T) {
	t.Parallel()
	d := newDesk(t, says(200, settled(nil)))
	for _, header := range []string{"max-age=3", ""} {
		d.supports(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Cache-Control"); got != "no-cache" {
				t.Errorf("asked with Cache-Control %q, which a cache on the way may answer", got)
			}
			if header != "" {
				w.Header().Set("Cache-Control", header)
			}
			says(200, supportsBoth)(w, r)
		})
		want := map[string]time.Duration{"max-age=3": 3 * time.Second, "": 0}[header]
		if got, err := d.stranger(t, nil).Prove(t.Context(), network); err != nil || got != want {
			t.Errorf("%q: valid for %s, %v; want %s", header, got, err, want)
		}
	}
}

// Who is out is not asked one thing more; what it said before stands until a payment tests it.
func TestClient_Prove_AsksNobodyWhoIsOut(t *testing.T) {
	t.Parallel()
	g := guard(t, source.Prepaid)
	if _, err := g.Prove(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	g.answers(turnsAway(402, "", `{"error":"out of credit"}`))
	settle(t.Context(), g.Client)
	if _, err := g.Prove(t.Context(), network); err != nil || g.said.Load() != 1 || g.out() != source.Exhausted {
		t.Errorf("out: %v, asked %d times, out by %s; want it asked once, and only its limit against it", err, g.said.Load(), g.out())
	}
}

// Whether a payment or a question finds out that it takes nothing more: at the end of its window one payment tests it, and no question beside that one.
func TestClient_Prove_AQuestionThatIsTurnedAwayBringsNoOtherAtTheEndOfTheWindow(t *testing.T) {
	t.Parallel()
	g := guard(t, source.Prepaid)
	if _, err := g.Prove(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	g.supports(turnsAway(402, "", `{"error":"out of credit"}`))
	if _, err := g.Prove(t.Context(), network); !definite(err) || g.out() != source.Exhausted {
		t.Errorf("%v, out by %s; want a definite no, and no credit", err, g.out())
	}
	asked := g.said.Load()
	g.shift(t, 2*time.Hour)
	if _, err := g.Prove(t.Context(), network); err != nil || g.said.Load() != asked {
		t.Errorf("at the end of the window: %v, asked %d times more, want what it said before", err, g.said.Load()-asked)
	}
}

// A credential that is not taken is a no, and stays one while nobody is asked: until then its limit says so, and afterwards its last word.
func TestClient_Prove_ACredentialThatIsNotTakenStaysANo(t *testing.T) {
	t.Parallel()
	g := guard(t, source.Prepaid)
	if _, err := g.Prove(t.Context(), network); err != nil {
		t.Fatal(err)
	}
	g.supports(says(401, ""))
	for range 2 {
		if _, err := g.Prove(t.Context(), network); !definite(err) || g.out() != source.Denied {
			t.Errorf("%v, out by %s; want a definite no, and its credential against it", err, g.out())
		}
	}
	if n := g.said.Load(); n != 2 {
		t.Errorf("asked %d times, want once after it was denied", n)
	}
}
