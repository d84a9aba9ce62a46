package delivery

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/payment"
)

// ask returns a request for an endpoint, with a body.
func ask(method, path, query, body string) Request {
	return Request{
		Target: catalog.Target{Service: &catalog.Service{ID: uuid.UUID{1}}, Endpoint: &catalog.Endpoint{ID: uuid.UUID{2}}, UpstreamPath: path},
		Method: method, RawQuery: query, Header: http.Header{}, Body: NewBody(strings.NewReader(body)),
	}
}

func printOf(t *testing.T, r Request) payment.Fingerprint {
	t.Helper()
	print, ok := fingerprint(r)
	if !ok {
		t.Fatal("no fingerprint")
	}
	return print
}

func TestFingerprint_TellsRequestsApart(t *testing.T) {
	t.Parallel()
	base := func() Request { return ask("POST", "/v1/a", "x=1&y=2", "body") }
	for name, tt := range map[string]struct {
		change func(*Request)
		same   bool
	}{
		"nothing else":                          {func(*Request) {}, true},
		"other names in another order":          {func(r *Request) { r.RawQuery = "y=2&x=1" }, true},
		"other headers":                         {func(r *Request) { r.Header.Set("Accept", "text/plain") }, true},
		"another value":                         {func(r *Request) { r.RawQuery = "x=1&y=3" }, false},
		"one name more":                         {func(r *Request) { r.RawQuery = "x=1&y=2&y=2" }, false},
		"no query":                              {func(r *Request) { r.RawQuery = "" }, false},
		"another body":                          {func(r *Request) { r.Body = NewBody(strings.NewReader("Body")) }, false},
		"no body":                               {func(r *Request) { r.Body = NewBody(nil) }, false},
		"the body's start moved into the query": {func(r *Request) { r.RawQuery, r.Body = "x=1&y=2b", NewBody(strings.NewReader("ody")) }, false},
		"another method":                        {func(r *Request) { r.Method = "PUT" }, false},
		"another path":                          {func(r *Request) { r.Target.UpstreamPath = "/v1/b" }, false},
		"another service":                       {func(r *Request) { r.Target.Service = &catalog.Service{ID: uuid.UUID{9}} }, false},
		"another endpoint":                      {func(r *Request) { r.Target.Endpoint = &catalog.Endpoint{ID: uuid.UUID{9}} }, false},
	} {
		changed := base()
		tt.change(&changed)
		if same := printOf(t, base()) == printOf(t, changed); same != tt.same {
			t.Errorf("%s: the same fingerprint %v, want %v", name, same, tt.same)
		}
	}
}

func TestFingerprint_EqualNamesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	one, other := ask("GET", "/", "a=1&b=0&a=2", ""), ask("GET", "/", "a=2&b=0&a=1", "")
	if printOf(t, one) == printOf(t, other) {
		t.Error("the order of equal names makes no difference, and to the service it may")
	}
}

func TestFingerprint_IsTheSameWhenAskedAgain(t *testing.T) {
	t.Parallel()
	r := ask("POST", "/", "", "body")
	first := printOf(t, r)
	if printOf(t, r) != first {
		t.Error("a body that was read once has another fingerprint")
	}
}

func TestFingerprint_ABodyThatDidNotArriveHasNone(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]io.Reader{
		"cut off":   io.MultiReader(strings.NewReader("bo"), brokenReader{}),
		"too large": io.LimitReader(zeros{}, RequestBytesMax+1),
	} {
		r := ask("POST", "/", "", "")
		r.Body = NewBody(body)
		if _, ok := fingerprint(r); ok {
			t.Errorf("%s: it has a fingerprint", name)
		}
	}
	r := ask("POST", "/", "", "")
	r.Body = NewBody(io.LimitReader(zeros{}, RequestBytesMax))
	if _, ok := fingerprint(r); !ok {
		t.Error("a body of the greatest size has no fingerprint")
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestCanonicalQuery(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":              "",
		"a=1":           "a=1",
		"b=1&a=2":       "a=2&b=1",
		"a=2&a=1":       "a=2&a=1",
		"b&a":           "a&b",
		"b=1&a=2&b=0":   "a=2&b=1&b=0",
		"a=1=2&A=0":     "A=0&a=1=2",
		"b=%26&a=%3D":   "a=%3D&b=%26",
		"a=1&&b=2":      "&a=1&b=2",
		"aa=1&a=2&a0=3": "a=2&a0=3&aa=1",
	} {
		if got := canonicalQuery(raw); got != want {
			t.Errorf("%q becomes %q, want %q", raw, got, want)
		}
	}
}

func TestCanonicalQuery_EqualNamesKeepTheirOrderHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	var pairs, as, bs []string
	for n := range 100 { // a sort that is not stable is so by chance with a few
		a, b := "a="+strconv.Itoa(n), "b="+strconv.Itoa(n)
		pairs, as, bs = append(pairs, b, a), append(as, a), append(bs, b)
	}
	if got, want := canonicalQuery(strings.Join(pairs, "&")), strings.Join(append(as, bs...), "&"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCanonicalQuery_NeitherOrderOfNamesNorARepetitionChangesIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching(`[a-c]{1,3}`), func(s string) string { return s }).Draw(t, "names")
		var pairs []string
		for _, name := range names {
			pairs = append(pairs, name+"="+rapid.StringMatching(`[a-z=%]{0,3}`).Draw(t, "value"))
		}
		once := canonicalQuery(strings.Join(pairs, "&"))
		if twice := canonicalQuery(once); twice != once {
			t.Fatalf("%q becomes %q", once, twice)
		}
		shuffled := strings.Join(rapid.Permutation(pairs).Draw(t, "order"), "&")
		if got := canonicalQuery(shuffled); got != once {
			t.Fatalf("%q becomes %q, and in another order %q", shuffled, got, once)
		}
	})
}

func TestResting_DelistingGoesBeforeACooldown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		standing standing
		want     call.Reason
	}{
		"listed and awake":     {standing{listed: true}, ""},
		"listed and resting":   {standing{listed: true, cooling: true}, call.InCooldown},
		"delisted":             {standing{}, call.Withdrawn},
		"delisted and resting": {standing{cooling: true}, call.Withdrawn},
	} {
		var got call.Reason
		if no := resting(tt.standing); no != nil {
			got = no.Reason
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestFollows_EveryEndOfACallIsAMoveOfTheTable(t *testing.T) {
	t.Parallel()
	asked := Delivery{AskedAt: time.Now()}
	for _, row := range call.Rows() {
		end := Delivery{}
		switch {
		case row.Outcome == call.Served, row.Reason == call.RejectedByService, row.Outcome == call.Failed && row.Party == call.Service:
			end = asked
		case row.Outcome == call.Refused && row.Reason != call.SettleRejected && row.Reason != call.SettleFailed:
			continue // refused before it was claimed, or released
		}
		end = end.end(row.Reason, "")
		if from := end.follows(); from.Final() || !call.CanMove(from, call.FinalState(row.Outcome)) {
			t.Errorf("%s %s follows %s, which the moves do not allow", row.Outcome, row.Reason, from)
		}
	}
	for name, tt := range map[string]struct {
		end  Delivery
		want call.State
	}{
		"interrupted while the service was asked": {asked.end(call.Interrupted, ""), call.Asked},
		"interrupted before it was asked":         {Delivery{}.end(call.Interrupted, ""), call.Settled},
		"lapsed":                                  {Delivery{}.end(call.SettleFailed, ""), call.Expired},
		"refused by the token, and lapsed":        {Delivery{}.end(call.SettleRejected, ""), call.Rejected},
	} {
		if got := tt.end.follows(); got != tt.want {
			t.Errorf("%s: it follows %s, want %s", name, got, tt.want)
		}
	}
}
