package windowtest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"market/internal/app/apptest"
)

// The measure is only as good as this: a question that waits proves nothing, one that is answered proves from when it came, and what was shown before that
// counts no more.
func TestAuthority_AProofCountsFromWhenItsQuestionCame(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	ask := func(ctx context.Context) int {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+"/r1/supported", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	show := func(units uint64) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.all = append(a.all, shown{at: time.Now(), replica: "r1", units: units})
	}
	exposed := func() uint64 {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.exposure()
	}
	show(1)
	if status := ask(t.Context()); status != http.StatusOK || exposed() != 0 {
		t.Fatalf("a question was answered with %d, and %d units are exposed", status, exposed())
	}
	show(2)
	a.becomes(hangs)
	waiting, leave := context.WithCancel(t.Context())
	waits := make(chan int, 2)
	go func() { waits <- ask(waiting) }()
	apptest.Eventually(t, "the question waits", func() bool { return len(a.holds("r1")) == 1 })
	show(4)
	leave()
	if status := <-waits; status != 0 {
		t.Errorf("a question was answered with %d by somebody who hangs", status)
	}
	apptest.Eventually(t, "the question is gone", func() bool { return len(a.holds("r1")) == 0 })
	if got := exposed(); got != 2+4 {
		t.Errorf("%d units are exposed after a question that nobody answered, want 6", got)
	}
	go func() { waits <- ask(t.Context()) }()
	apptest.Eventually(t, "the next question waits", func() bool { return len(a.holds("r1")) == 1 })
	show(8)
	a.becomes(answers)
	if status := <-waits; status != http.StatusOK || exposed() != 8 {
		t.Errorf("a question was answered late with %d, and %d units are exposed; want 200, and the 8 that were shown after it came", status, exposed())
	}
	a.becomes(answers, "r1")
	if a.to("r1") != hangs || a.to("r2") != answers {
		t.Error("it is deaf to others than it was told to be")
	}
}
