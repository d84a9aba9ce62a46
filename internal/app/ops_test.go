package app_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"market/internal/app/apptest"
	"market/internal/devnet"
)

func TestOps_TellsThatItLivesAndWhatItIsReadyFor(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	get := func(url string) apptest.Answer {
		return w.Send(t, apptest.Asking{Method: http.MethodGet, URL: url}, "")
	}
	if a := get(w.App.OpsURL() + "/livez"); a.Status != http.StatusOK {
		t.Errorf("livez: %d %s", a.Status, a.Body)
	}
	a := get(w.App.OpsURL() + "/readyz")
	stands := standing(a)
	settle, _ := stands["settle"].(map[string]any)
	age, aged := settle["age_ms"].(float64)
	if a.Status != http.StatusOK || a.JSON["ready"] != true || stands["state"] != "ready" || stands["allowance_ms"] != 15_000.0 || !aged || age >= 15_000 ||
		a.JSON["exposure"] != "b=none n=1 allowance=15s" {
		t.Errorf("readyz: %d %s", a.Status, a.Body)
	}
	// What is for the operator is not on the public listener, and the other way round.
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/debug/pprof/"} {
		expect(t, path, get(w.URL+path), http.StatusNotFound, "not_found")
	}
	for _, path := range []string{"/s/x/y", "/api/v1/services"} {
		expect(t, path, get(w.App.OpsURL()+path), http.StatusNotFound, "not_found")
	}
}

// standing is what /readyz says of the network of the tests.
func standing(readyz apptest.Answer) map[string]any {
	networks, _ := readyz.JSON["networks"].(map[string]any)
	stands, _ := networks[devnet.NetworkID].(map[string]any)
	return stands
}

// B85: where a settlement or a refund could not be paid for, nobody is asked for money and no payment is touched.
func TestOps_WithoutGasNothingIsSold(t *testing.T) {
	t.Parallel()
	empty, _ := apptest.NewKey(t)
	w := apptest.Start(t, "MARKET_GAS_KEY="+empty)
	s := w.List(t, "unready", apptest.Works, map[string]any{"trial_calls_per_day": 1})
	a := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.App.OpsURL() + "/readyz"}, "")
	stands := standing(a)
	why, _ := stands["detail"].(string)
	if stands["state"] != "not_ready" || stands["why"] != "denied" || a.Status != http.StatusServiceUnavailable || a.JSON["ready"] != false || !strings.Contains(why, "gas") {
		t.Errorf("readyz: %d %s", a.Status, a.Body)
	}
	payer := w.Payer(t, apptest.PriceUnits)
	for name, a := range map[string]apptest.Answer{
		"an unpaid request": w.Send(t, apptest.Ask(s.URL), ""),
		"a good payment":    w.Pay(t, payer, w.Terms(t, s, 120), apptest.Ask(s.URL)),
	} {
		expect(t, name, a, http.StatusServiceUnavailable, "not_ready")
		if a.Header.Get("Retry-After") == "" || a.Header.Get("PAYMENT-REQUIRED") != "" || a.JSON["party"] != "rail" || a.JSON["charged"] != false {
			t.Errorf("%s: Retry-After %q, terms %q, %s", name, a.Header.Get("Retry-After"), a.Header.Get("PAYMENT-REQUIRED"), a.Body)
		}
		if strings.Contains(string(a.Body), "0x") {
			t.Errorf("%s: the answer tells about our wallet: %s", name, a.Body)
		}
	}
	untouched(t, w, s)
	if got := w.Balance(t, payer.Address()); got != apptest.PriceUnits {
		t.Errorf("the payer has %d", got)
	}
	// A trial moves no money, so it needs no rail.
	if a := w.Send(t, apptest.Ask(s.URL).Trial(), ""); a.Status != http.StatusOK {
		t.Errorf("a trial: %d %s", a.Status, a.Body)
	}
}

// B87: a call that was paid for ends, is recorded and answered, also when the program is told to stop.
func TestStop_LetsACallUnderWayEnd(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	asked, release := make(chan struct{}), make(chan struct{})
	s := w.List(t, "stopped", func(rw http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		apptest.Works(rw, r)
	}, map[string]any{"timeout_ms": 60_000})
	header := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))
	answer, stopped := make(chan apptest.Answer, 1), make(chan error, 1)
	go func() { answer <- w.Send(t, apptest.Ask(s.URL), header) }()
	<-asked
	go func() { stopped <- w.App.Stop(context.WithoutCancel(t.Context())) }()
	apptest.Eventually(t, "the door takes no new callers", func() bool {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.URL, "http://"))
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	})
	select {
	case err := <-stopped:
		t.Fatalf("it stopped (%v) with a call under way", err)
	default:
	}
	close(release)
	a := <-answer
	if a.Status != http.StatusOK || a.Outcome() != "served" {
		t.Errorf("the call under way: %d %s", a.Status, a.Body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	var state, outcome string
	const endSQL = `SELECT c.state, d.outcome FROM calls c JOIN deliveries d ON d.call_id = c.id WHERE c.id = $1`
	if err := w.DB.QueryRow(t.Context(), endSQL, a.Call()).Scan(&state, &outcome); err != nil || state != "served" || outcome != "served" {
		t.Errorf("the call is recorded as %s and %s (%v), want served", state, outcome, err)
	}
	// Everything that it had open is closed, the database last.
	const connectionsSQL = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()`
	apptest.Eventually(t, "its connections to the database are closed", func() bool {
		var all int32
		if err := w.DB.QueryRow(t.Context(), connectionsSQL).Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all == w.DB.Stat().TotalConns()
	})
}

func TestStop_ItIsNotReadyFromTheMomentAtWhichItStops(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	asked, release := make(chan struct{}), make(chan struct{})
	s := w.List(t, "last", func(rw http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		apptest.Works(rw, r)
	}, map[string]any{"timeout_ms": 60_000, "trial_calls_per_day": 1})
	let := sync.OnceFunc(func() { close(release) })
	t.Cleanup(let)
	ops := func(path string) apptest.Answer {
		return w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.App.OpsURL() + path}, "")
	}
	if a := ops("/readyz"); a.Status != http.StatusOK {
		t.Fatalf("while it runs: %d %s", a.Status, a.Body)
	}
	answer, stopped := make(chan apptest.Answer, 1), make(chan error, 1)
	go func() { answer <- w.Send(t, apptest.Ask(s.URL).Trial(), "") }()
	<-asked
	go func() { stopped <- w.App.Stop(context.WithoutCancel(t.Context())) }()
	var ready apptest.Answer
	apptest.Eventually(t, "it has begun to stop", func() bool {
		ready = ops("/readyz")
		return ready.Status != http.StatusOK
	})
	if ready.Status != http.StatusServiceUnavailable || ready.JSON["ready"] != false || ready.JSON["why"] != "the process is stopping" {
		t.Errorf("readyz with a call under way: %d %s", ready.Status, ready.Body)
	}
	if a := ops("/livez"); a.Status != http.StatusOK {
		t.Errorf("livez with a call under way: %d %s", a.Status, a.Body)
	}
	let()
	if a := <-answer; a.Status != http.StatusOK {
		t.Errorf("the call under way: %d %s", a.Status, a.Body)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}
