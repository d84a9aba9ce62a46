package replaytest

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

func probeIncidents() []incident {
	const title = "A readiness probe with a made-up age"
	return []incident{
		{title, "whoever settles falls silent, first with two replicas, then with eight",
			"a result counted for an age that somebody had made up: right for two replicas, and four times too long for eight",
			"no result counts for longer than the budget lasts at the rate of all replicas: eight stop four times sooner than two, configured as before, and what is out stays within the budget",
			silence},
		{title, "a probe times out, and later one is refused", "the timeout overwrote a result that was known to be good, and a healthy market took no payments",
			"a timeout leaves the good result as it is, and payments are taken; a definite no ends them at once", timeout},
	}
}

const (
	// What a replica of these incidents may send to settlement in a second, and what may be out since the last proof, in calls. One call may go at once, and
	// the terms of the incident, ten seconds of one replica's rate, give a result (40 − 8) / 32 = 1 s with eight of them.
	callsASecond, callsOut = 4, 40
	// callsOutLong leave two replicas (200 − 2) / 8 = 24.75 s: a look that waits for 5 s in vain is well within that.
	callsOutLong = 200
)

// proving is a market whose operator names how many calls may be out.
func proving(t *testing.T, h *apptest.Hosted, out int) *market {
	usd := func(calls int) string { return fmt.Sprintf("%.3f", float64(calls*apptest.PriceUnits)/1e6) }
	return newMarketWith(t, apptest.Setup{Prepare: func(testing.TB, *devnet.Chain) []string {
		return []string{"MARKET_EXPOSURE_USD=" + usd(out), "MARKET_ADMIT_USD_PER_SECOND=" + usd(callsASecond), "MARKET_ADMIT_BURST_USD=" + usd(1)}
	}}, nil, 1<<12, h)
}

// silence: how long a result may be used follows from what may be lost, and from how many replicas there are.
func silence(t *testing.T) string {
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	m := proving(t, h, callsOut)
	two, outOfTwo := m.untilStopped(t, h)
	for len(m.replicas) < 8 {
		m.replicas = append(m.replicas, m.Replica(t))
	}
	eight, outOfEight := m.untilStopped(t, h)
	for what, out := range map[string]int{"two": outOfTwo, "eight": outOfEight} {
		if out > callsOut {
			t.Errorf("%s replicas had %d payments out, of %d that may be", what, out, callsOut)
		}
	}
	return fmt.Sprintf("2 replicas stopped after %.1f s with %d payments out, 8 after %.1f s with %d, of %d that may be", two.Seconds(), outOfTwo, eight.Seconds(),
		outOfEight, callsOut)
}

// untilStopped has the facilitator fall silent while callers pay at every replica, and returns how long it took until all of them asked nobody to pay, and how
// many payments the facilitator was shown meanwhile. Then it answers again.
func (m *market) untilStopped(t *testing.T, h *apptest.Hosted) (took time.Duration, out int) {
	t.Helper()
	m.offers(t, true)
	h.Does(apptest.Replies(http.StatusBadGateway, "lost"))
	before := h.Asked.Load()
	h.Says(apptest.Silence)
	began := time.Now()
	ctx, enough := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for _, w := range m.replicas {
		callers.Go(func() {
			every := time.NewTicker(time.Second / callsASecond / 2)
			defer every.Stop()
			for ctx.Err() == nil {
				header := m.sign(t, 1)[0]
				callers.Go(func() { w.Send(t, w.At(t, m.ask), header) })
				select {
				case <-every.C:
				case <-ctx.Done():
				}
			}
		})
	}
	m.offers(t, false)
	took = time.Since(began)
	enough()
	callers.Wait()
	out = int(h.Asked.Load() - before)
	for i, a := range m.pay(t, m.sign(t, len(m.replicas))) {
		turnedAway(t, fmt.Sprintf("a payment at replica %d, which has stopped", i), a)
	}
	h.Does(apptest.Settles)
	h.Says(apptest.Supports(apptest.SupportsUs))
	m.offers(t, true)
	return took, out
}

// timeout: silence is no word, and a word is one.
func timeout(t *testing.T) string {
	h := apptest.NewHosted(t, apptest.SupportsUs, apptest.Settles)
	m := proving(t, h, callsOutLong)
	h.Says(apptest.Silence)
	for _, w := range m.replicas {
		apptest.Eventually(t, "a replica has asked in vain", func() bool { return m.stands(t, w) != "ready" })
	}
	taken := 0
	for _, w := range m.replicas {
		for range 2 {
			if m.stands(t, w) != "degraded" {
				continue
			}
			if a := w.Send(t, w.At(t, m.ask), m.sign(t, 1)[0]); a.Status == http.StatusOK {
				taken++
			} else {
				t.Logf("a payment while a replica is degraded: %d %s", a.Status, a.Body)
			}
		}
	}
	if taken == 0 {
		t.Error("a timeout ended all payments")
	}
	h.Says(apptest.Supports(apptest.SupportsUs))
	for _, w := range m.replicas {
		apptest.Eventually(t, "a replica is ready again", func() bool { return m.stands(t, w) == "ready" })
	}
	h.Says(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) })
	m.offers(t, false)
	for _, a := range m.pay(t, m.sign(t, 2)) {
		turnedAway(t, "a payment after a definite no", a)
	}
	return fmt.Sprintf("%d payments served after the timeout, none after the refusal", taken)
}

// stands is the state of the network, as a replica tells it.
func (m *market) stands(t *testing.T, w *apptest.World) string {
	t.Helper()
	networks, _ := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.App.OpsURL() + "/readyz"}, "").JSON["networks"].(map[string]any)
	network, _ := networks[devnet.NetworkID].(map[string]any)
	state, _ := network["state"].(string)
	return state
}
