package remote

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// faultIn is the fault of an error, 0 for none.
func faultIn(err error) Fault {
	if trouble, ok := errors.AsType[*Trouble](err); ok {
		return trouble.Fault
	}
	return 0
}

// What could not be sent is known to be unseen, and nothing else is.
func TestClient_Settle_OnlyWhatNeverLeftIsUnsent(t *testing.T) {
	t.Parallel()
	closed := func(t *testing.T) string {
		t.Helper()
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		return "http://" + l.Addr().String()
	}
	for name, where := range map[string]func(t *testing.T) string{
		"nobody listens":       closed,
		"the name is nobody's": func(*testing.T) string { return "http://facilitator.invalid" },
		"the certificate is not good": func(t *testing.T) string {
			s := httptest.NewTLSServer(says(200, settled(nil)))
			t.Cleanup(s.Close)
			return s.URL
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, says(200, settled(nil)))
			c := d.client(t, nil)
			gone, err := New(Options{Name: "gone", URL: where(t)})
			if err != nil {
				t.Fatal(err)
			}
			c.base = gone.base // it was there when it was asked what it supports
			got := settle(t.Context(), c)
			if got.Kind != Unsent || faultIn(got.Err) != Unreached {
				t.Errorf("answer %+v, want that nothing was sent", got)
			}
			if err := c.Ready(network); faultIn(err) != Unreached {
				t.Errorf("ready says %v, want that it cannot be reached", err)
			}
		})
	}
}

func TestClient_Settle_WhoHasNotSaidThatItSupportsUsIsShownNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, says(200, settled(nil)))
	d.supports(says(200, `{"kinds":[{"x402Version":2,"scheme":"exact","network":"eip155:8453"},{"x402Version":2,"scheme":"upto","network":"eip155:84532"}]}`))
	for what, c := range map[string]*Client{"was not asked": d.stranger(t, nil), "supports others": d.client(t, nil)} {
		if got := settle(t.Context(), c); got.Kind != Unsent || faultIn(got.Err) != Unsupported {
			t.Errorf("%s: %+v, want that nothing was sent", what, got)
		}
		if err := c.Ready(network); err == nil {
			t.Errorf("%s: ready", what)
		}
	}
	if n := d.asked.Load(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
}

// The words are those of protocol/x402.md; members that are not there are not sent.
func TestClient_Settle_SendsOurOwnTermsInTheNewestVersionThatBothKnow(t *testing.T) {
	t.Parallel()
	const transfer = `"payload":{"signature":"` + signature + `","authorization":{"from":"0x70997970C51812dc3A010C7d01b50e0d17dc79C8",` +
		`"to":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC","value":"12345","validAfter":"0","validBefore":"1800000000",` +
		`"nonce":"0xabababababababababababababababababababababababababababababababab"}}`
	const terms2 = `{"scheme":"exact","network":"eip155:84532","amount":"12345","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e",` +
		`"payTo":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC","maxTimeoutSeconds":120,"extra":{"name":"USDC","version":"2"}}`
	const terms1 = `{"scheme":"exact","network":"base-sepolia","maxAmountRequired":"12345","resource":"https://market.example","description":"",` +
		`"mimeType":"application/json","payTo":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC","maxTimeoutSeconds":120,` +
		`"asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","extra":{"name":"USDC","version":"2"}}`
	for name, tt := range map[string]struct{ supports, want string }{
		"v2 where both are there": {supportsBoth, `{"x402Version":2,"paymentPayload":{"x402Version":2,"accepted":` + terms2 + `,` + transfer + `},"paymentRequirements":` + terms2 + `}`},
		"v1 where nothing else is": {supportsV1, `{"x402Version":1,"paymentPayload":{"x402Version":1,"scheme":"exact","network":"base-sepolia",` + transfer +
			`},"paymentRequirements":` + terms1 + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			d := newDesk(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = strings.TrimSpace(string(body))
				if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "" || r.Header.Get("Accept-Encoding") != "" {
					t.Errorf("headers %v", r.Header)
				}
				says(200, settled(nil))(w, r)
			})
			d.supports(says(200, tt.supports))
			if a := settle(t.Context(), d.client(t, nil)); a.Kind != Paid {
				t.Fatalf("answer %+v", a)
			}
			if got != tt.want {
				t.Errorf("sent\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

func TestClient_Ready_AnAnswerCountsForHalfAMinute(t *testing.T) {
	t.Parallel()
	d, at := newDesk(t, says(200, settled(nil))), newClock()
	var reports []error
	c := d.client(t, func(o *Options) { at.option(o); o.Report = func(err error) { reports = append(reports, err) } })
	for offset, want := range map[time.Duration]bool{0: true, freshFor: true, freshFor + time.Nanosecond: false} {
		at.move(offset)
		if err := c.Ready(network); (err == nil) != want {
			t.Errorf("%s after the answer: %v", offset, err)
		}
		at.move(-offset)
	}
	// Trouble of its own closes nothing at once, and an answer that leaves us out does.
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		fault  Fault
		ready  bool
	}{
		{"trouble", says(500, html), Failing, true},
		{"HTML", says(200, html), NotJSON, true},
		{"no kinds", says(200, `{}`), BadShape, true},
		{"a redirect", redirects(308), Redirected, true}, // #1692
		{"good again", says(200, supportsBoth), 0, true},
		{"no kind of ours", says(200, `{"kinds":[{"x402Version":3,"scheme":"exact","network":"eip155:84532"},7,{"scheme":"exact"}]}`), 0, false},
	} {
		d.supports(tt.answer)
		if err := c.Ask(t.Context()); faultIn(err) != tt.fault {
			t.Errorf("%s: %v, want fault %q", tt.name, err, tt.fault)
		}
		if err := c.Ready(network); (err == nil) != tt.ready {
			t.Errorf("%s: ready says %v", tt.name, err)
		}
	}
	if len(reports) != 2 || reports[0] == nil || reports[1] != nil {
		t.Errorf("reports %v, want one of trouble and one of its end", reports)
	}
	if says := c.Says(); !strings.Contains(says, "hosted supports no network") {
		t.Errorf("it says %q", says)
	}
}

// B71, B75: a verdict is read as strictly.
func TestClient_Verify_EveryAnswerIsClassified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   Verdict
		fault  Fault
	}{
		"yes":                {says(200, `{"isValid":true,"payer":"`+payer+`"}`), Verdict{Valid: true, Payer: signed.From}, 0},
		"no":                 {says(200, `{"isValid":false,"invalidReason":"insufficient_funds","payer":""}`), Verdict{Code: "insufficient_funds", Payer: signed.From}, 0},
		"yes for another":    {says(200, `{"isValid":true,"payer":"0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"}`), Verdict{}, OtherPayer},
		"yes with a reason":  {says(200, `{"isValid":true,"invalidReason":"insufficient_funds"}`), Verdict{}, Contradiction},
		"yes as a word":      {says(200, `{"isValid":"true"}`), Verdict{}, BadShape},
		"an empty object":    {says(200, `{}`), Verdict{}, BadShape},
		"HTML":               {says(200, html), Verdict{}, NotJSON},
		"HTML with 502":      {says(502, html), Verdict{}, Failing},
		"half":               {says(200, `{"isValid":tr`), Verdict{}, NotJSON},
		"204":                {says(204, ""), Verdict{}, NotJSON},
		"a redirect":         {redirects(308), Verdict{}, Redirected},
		"yes with 400":       {says(400, `{"isValid":true}`), Verdict{}, Turned},
		"too many requests":  {says(429, ""), Verdict{}, Throttled},
		"a credential is no": {says(401, ""), Verdict{}, Unauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, says(200, settled(nil)))
			d.verify.Store(&tt.answer)
			got, err := d.client(t, nil).Verify(t.Context(), network, signed)
			if got != tt.want || faultIn(err) != tt.fault {
				t.Errorf("%+v, %v, want %+v and fault %q", got, err, tt.want, tt.fault)
			}
		})
	}
}

func TestNew_RefusesAnAddressThatIsNone(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "facilitator.example", "ftp://facilitator.example", "https://user@facilitator.example",
		"https://facilitator.example?key=1", "https://facilitator.example/#x", "https:///x402"} {
		if _, err := New(Options{Name: "hosted", URL: address}); err == nil || strings.Contains(err.Error(), "key=1") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestFaults_EveryOneHasWords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range Faults() {
		if words := f.String(); seen[words] || words == Fault(0).String() {
			t.Errorf("fault %d says %q", f, words)
		}
		seen[f.String()] = true
	}
	for code, b := range codes {
		if b <= 0 || b >= blameEnd || codeOf(code) != code {
			t.Errorf("code %q has blame %d and is read as %q", code, b, codeOf(code))
		}
	}
}

// The answer to a request that is cut short by its caller is not a no.
func TestClient_Settle_ATimeoutIsNeverAFailure(t *testing.T) {
	t.Parallel()
	d := newDesk(t, waits)
	c := d.client(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan Answer, 1)
	go func() { done <- settle(ctx, c) }()
	for d.asked.Load() == 0 {
		select {
		case got := <-done:
			t.Fatalf("it ended before it was asked: %+v", got)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if got := <-done; got.Kind != Unclear || faultIn(got.Err) != TimedOut {
		t.Errorf("answer %+v, want unclear", got)
	}
}

func TestRequestOf_AnAssetThatIsNotConfiguredIsNotSent(t *testing.T) {
	t.Parallel()
	other := signed
	other.Asset[0]++
	if body, err := requestOf(v2, network, other, "https://market.example"); err == nil {
		t.Errorf("sent %s", body)
	}
	body, err := requestOf(v1, network, signed, "https://market.example")
	if err != nil || !json.Valid(body) {
		t.Errorf("%s, %v", body, err)
	}
}
