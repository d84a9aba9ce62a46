package app_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/app"
	"market/internal/app/apptest"
	"market/internal/payment"
)

// A town is a market whose services have names of their own, on one machine: each breaks by itself, and the names are looked up as the test wants.
type town struct {
	*apptest.World
	names  *names
	url    string // of all services, with the machine's address for a host
	mu     sync.Mutex
	broken map[string]bool // by host
}

// errNowhere is what a resolver says that has lost its way to all others, and does not know it: it takes every name for one that does not exist.
var errNowhere = &net.DNSError{Err: "no such host", IsNotFound: true}

// newTown starts a market that probes a service once and then asks it whatever became of it.
func newTown(t *testing.T) *town {
	t.Helper()
	v := &town{names: &names{}, broken: map[string]bool{}}
	services := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Connection", "close") // so that every call looks the name up
		host, _, _ := strings.Cut(r.Host, ":")
		v.mu.Lock()
		broken := v.broken[host]
		v.mu.Unlock()
		if broken && r.URL.Path == "/work" {
			apptest.Fails(rw, r)
			return
		}
		apptest.Works(rw, r)
	}))
	t.Cleanup(services.Close)
	v.url = services.URL
	v.World = apptest.StartWith(t, apptest.Setup{Options: []app.Option{app.WithResolver(v.names)}}, "MARKET_PROBE_TTL=10m")
	return v
}

// list puts a service at a host on the shelf; its slug is the first label. It serves one trial call.
func (v *town) list(t *testing.T, hosts ...string) {
	t.Helper()
	for _, host := range hosts {
		base := strings.Replace(v.url, "127.0.0.1", host, 1)
		v.ListWith(t, slugOf(host), nil, map[string]any{"trial_calls_per_day": 100}, map[string]any{"base_url": base})
	}
	for _, host := range hosts {
		apptest.Eventually(t, host+" serves a trial", func() bool { return v.trial(t, v.World, host).Outcome() == "served" })
	}
}

func slugOf(host string) string {
	slug, _, _ := strings.Cut(host, ".")
	return slug
}

func (v *town) asking(at *apptest.World, host string) apptest.Asking {
	return apptest.Ask(at.URL + "/s/" + slugOf(host) + "/work")
}

// trial makes a trial call at the door of one program.
func (v *town) trial(t *testing.T, at *apptest.World, host string) apptest.Answer {
	t.Helper()
	return v.Send(t, v.asking(at, host).Trial(), "")
}

func (v *town) breaks(host string, broken bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broken[host] = broken
}

func (v *town) state(t *testing.T, host string) string {
	t.Helper()
	state, _ := v.Send(t, apptest.Asking{Method: http.MethodGet, URL: v.URL + "/api/v1/services/" + slugOf(host)}, "").JSON["state"].(string)
	return state
}

// outages are those of the admin API, the newest first.
func (v *town) outages(t *testing.T) []map[string]any {
	t.Helper()
	status, answer := v.Admin(t, http.MethodGet, "/api/v1/admin/outages", nil)
	items, ok := answer["items"].([]any)
	if status != http.StatusOK || !ok {
		t.Fatalf("outages: %d %v", status, answer)
	}
	var all []map[string]any
	for _, item := range items {
		o, _ := item.(map[string]any)
		all = append(all, o)
	}
	return all
}

// notices counts the notices of outages that are open, and those that are over.
func (v *town) notices(t *testing.T) (open, settled int) {
	t.Helper()
	const noticesSQL = `SELECT count(*) FILTER (WHERE calm_since IS NULL), count(*) FILTER (WHERE calm_since IS NOT NULL) FROM notices WHERE kind = 'outage'`
	if err := v.DB.QueryRow(t.Context(), noticesSQL).Scan(&open, &settled); err != nil {
		t.Fatal(err)
	}
	return open, settled
}

// B136: our own way out breaks under six services of three providers. The first of them is delisted before it can be known, and is back on the shelf
// when it is; nobody else is struck; whoever paid has the money back; the operator is told once, and once more when it is over.
func TestOutage_OfOurOwnDelistsNobodyAndRefundsEverybody(t *testing.T) {
	t.Parallel()
	v := newTown(t)
	hosts := []string{"a1.one.example", "a2.one.example", "b1.two.example", "b2.two.example", "c1.three.example", "c2.three.example"}
	v.list(t, hosts...)
	payer := v.Payer(t, 20*apptest.PriceUnits)
	terms := map[string]payment.Required{} // the gate may hear a moment later that a cooldown is over
	for _, host := range hosts {
		terms[host] = v.Challenge(t, v.asking(v.World, host))
	}
	pay := func(host string) apptest.Answer { return v.Pay(t, payer, terms[host], v.asking(v.World, host)) }

	v.names.err.Store(errNowhere)
	var calls []string
	for n := range 3 {
		a := pay(hosts[0])
		expect(t, "before anything is known", a, http.StatusBadGateway, "upstream_unreachable")
		if a.JSON["party"] != "service" {
			t.Errorf("party = %v", a.JSON["party"])
		}
		calls = append(calls, a.Call())
		if n < 2 {
			v.Shift(t, 61*time.Second)
		}
	}
	if got := v.state(t, hosts[0]); got != "delisted" {
		t.Fatalf("after three failures it is %s", got)
	}
	for n, host := range hosts[1:] {
		a := pay(host)
		expect(t, host, a, http.StatusBadGateway, "upstream_unreachable")
		if want := map[bool]string{true: "platform", false: "service"}[n >= 3]; a.JSON["party"] != want {
			t.Errorf("failure %d is of the %v, want %s", n+2, a.JSON["party"], want)
		}
		calls = append(calls, a.Call())
	}

	apptest.Eventually(t, "no strike is left, and the first service is back", func() bool {
		for _, host := range hosts {
			if len(v.OpenStrikes(t, slugOf(host))) > 0 || v.Rest(t, slugOf(host)) > 0 {
				return false
			}
		}
		return v.state(t, hosts[0]) == "listed"
	})
	for _, host := range hosts {
		a := v.trial(t, v.World, host)
		expect(t, "while it holds", a, http.StatusBadGateway, "upstream_unreachable")
		if detail, _ := a.JSON["detail"].(string); a.JSON["party"] != "platform" || !strings.Contains(detail, "outage of ours") {
			t.Errorf("while it holds: of the %v, %q", a.JSON["party"], detail)
		}
		if got := v.state(t, host); got != "listed" || len(v.OpenStrikes(t, slugOf(host))) != 0 || v.Rest(t, slugOf(host)) > 0 {
			t.Errorf("%s is %s, with strikes %v, resting for %s", host, got, v.OpenStrikes(t, slugOf(host)), v.Rest(t, slugOf(host)))
		}
	}
	if all := v.outages(t); len(all) != 1 || all[0]["ended_at"] != nil || all[0]["cause"] != "services" || all[0]["providers_failed"] != 3.0 {
		t.Errorf("outages %v, want one that holds", all)
	}
	ready := v.Send(t, apptest.Asking{Method: http.MethodGet, URL: v.App.OpsURL() + "/readyz"}, "")
	if told, _ := ready.JSON["outages"].([]any); ready.Status != http.StatusOK || len(told) != 1 {
		t.Errorf("readyz: %d %s, want it ready, with the outage", ready.Status, ready.Body)
	}
	if open, settled := v.notices(t); open != 1 || settled != 0 {
		t.Errorf("%d notices are open, %d settled; want one open", open, settled)
	}
	for _, id := range calls {
		v.AwaitRefund(t, id)
		if r := v.Record(t, id); r.JSON["party"] != "platform" || r.JSON["charged"] != false {
			t.Errorf("call %s is of the %v, charged %v", id, r.JSON["party"], r.JSON["charged"])
		}
	}
	if got := v.Balance(t, payer.Address()); got != 20*apptest.PriceUnits {
		t.Errorf("the payer has %d, want all of it back", got)
	}

	v.names.err.Store(nil)
	v.Shift(t, 2*time.Minute)
	apptest.Eventually(t, "it is over", func() bool { open, settled := v.notices(t); return open == 0 && settled == 1 })
	if a := pay(hosts[0]); a.Outcome() != "served" {
		t.Errorf("after it: %d %s", a.Status, a.Body)
	}
	v.breaks(hosts[0], true)
	expect(t, "a failure after it", pay(hosts[0]), http.StatusBadGateway, "upstream_5xx")
	if open := v.OpenStrikes(t, slugOf(hosts[0])); len(open) != 1 {
		t.Errorf("after it a failure opens %d strikes", len(open))
	}
}

// One that is broken, of three, is no outage: too few fail to tell.
func TestOutage_InAMarketOfThreeTheBrokenOneIsDelisted(t *testing.T) {
	t.Parallel()
	v := newTown(t)
	hosts := []string{"good.one.example", "fine.two.example", "bad.three.example"}
	v.list(t, hosts...)
	v.breaks(hosts[2], true)
	for n := 1; n <= 3; n++ {
		for _, host := range hosts[:2] {
			if a := v.trial(t, v.World, host); a.Outcome() != "served" {
				t.Fatalf("%s: %d %s", host, a.Status, a.Body)
			}
		}
		expect(t, "the broken one", v.trial(t, v.World, hosts[2]), http.StatusBadGateway, "upstream_5xx")
		if n < 3 {
			if open := v.OpenStrikes(t, slugOf(hosts[2])); len(open) != n {
				t.Fatalf("%d strikes after %d failures", len(open), n)
			}
			v.Shift(t, 61*time.Second)
		}
	}
	if got := v.state(t, hosts[2]); got != "delisted" {
		t.Errorf("after three failures it is %s", got)
	}
	if all := v.outages(t); len(all) != 0 {
		t.Errorf("outages %v", all)
	}
}

// Twenty services die at once, and they are one provider's: that is its trouble, and another's failure counts as ever.
func TestOutage_TwentyDeadListingsOfOneProviderExcuseNobody(t *testing.T) {
	t.Parallel()
	v := newTown(t)
	var dead []string
	for n := range 20 {
		dead = append(dead, fmt.Sprintf("dead-%d.one.example", n))
	}
	v.list(t, append(dead, "good.two.example", "bad.three.example")...)
	for _, host := range append(dead, "bad.three.example") {
		v.breaks(host, true)
	}
	var wg sync.WaitGroup
	for _, host := range dead {
		wg.Go(func() {
			if a := v.trial(t, v.World, host); a.Code() != "upstream_5xx" || a.JSON["party"] != "service" {
				t.Errorf("%s: %d %s", host, a.Status, a.Body)
			}
		})
	}
	wg.Wait()
	if a := v.trial(t, v.World, "bad.three.example"); a.JSON["party"] != "service" {
		t.Errorf("the failure of another's is of the %v", a.JSON["party"])
	}
	for _, host := range append(dead, "bad.three.example") {
		if open := v.OpenStrikes(t, slugOf(host)); len(open) != 1 {
			t.Errorf("%s has %d strikes, want one", host, len(open))
		}
	}
	if all := v.outages(t); len(all) != 0 {
		t.Errorf("outages %v", all)
	}
}

// One replica of four cannot look up names, and takes that for the services' doing: it strikes nobody, and the others go on striking who fails.
func TestOutage_OneReplicaOfFourWithoutDNSStrikesNobody(t *testing.T) {
	t.Parallel()
	v := newTown(t)
	hosts := []string{"a1.one.example", "a2.one.example", "b1.two.example", "b2.two.example", "c1.three.example", "c2.three.example"}
	v.list(t, hosts...)
	lost := &names{}
	others := []*apptest.World{v.World, v.Replica(t), v.Replica(t)}
	deaf := v.ReplicaWith(t, []app.Option{app.WithResolver(lost)})
	for _, at := range append(others, deaf) {
		for _, host := range hosts {
			if a := v.trial(t, at, host); a.Outcome() != "served" {
				t.Fatalf("%s at %s: %d %s", host, at.URL, a.Status, a.Body)
			}
		}
	}

	lost.err.Store(errNowhere)
	for _, host := range hosts {
		expect(t, "without names", v.trial(t, deaf, host), http.StatusBadGateway, "upstream_unreachable")
	}
	apptest.Eventually(t, "nobody is struck, and nobody rests", func() bool {
		for _, host := range hosts {
			if len(v.OpenStrikes(t, slugOf(host))) > 0 || v.Rest(t, slugOf(host)) > 0 {
				return false
			}
		}
		return true
	})
	all := v.outages(t)
	if len(all) != 1 || all[0]["replica"] == nil {
		t.Fatalf("outages %v, want one of a replica", all)
	}
	v.breaks(hosts[0], true)
	for n, at := range others {
		for _, host := range hosts[1:] {
			apptest.Eventually(t, "the others serve", func() bool { return v.trial(t, at, host).Outcome() == "served" })
		}
		if n == 0 {
			a := v.trial(t, at, hosts[0])
			if a.JSON["party"] != "service" || len(v.OpenStrikes(t, slugOf(hosts[0]))) != 1 {
				t.Errorf("a failure that another replica met: of the %v, strikes %v", a.JSON["party"], v.OpenStrikes(t, slugOf(hosts[0])))
			}
		}
	}
	for _, host := range hosts[1:] {
		if a := v.trial(t, deaf, host); a.JSON["party"] != "platform" || len(v.OpenStrikes(t, slugOf(host))) != 0 {
			t.Errorf("%s without names: of the %v, strikes %v", host, a.JSON["party"], v.OpenStrikes(t, slugOf(host)))
		}
	}
}
