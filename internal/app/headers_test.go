package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"market/internal/app/apptest"
	"market/internal/payment"
)

// B96, B98, B102, B104: a provider learns nothing of who the caller is or pays with, and what we tell it can't be forged.
func TestHeaders_AProviderGetsWhatItNeedsAndNothingOfTheCaller(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	seen := make(chan *http.Request, 1)
	s := w.List(t, "curious", func(rw http.ResponseWriter, r *http.Request) {
		seen <- r
		apptest.Works(rw, r)
	}, nil)
	paid := w.Sign(t, w.Payer(t, apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))
	kept := map[string]string{"Accept": "application/json", "Accept-Language": "de", "Content-Type": "application/json"}
	secret := []string{
		"Authorization", "Cookie", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded", "Via",
		"Proxy-Authorization", "X-Api-Key", "Origin", "Referer", "Sec-Fetch-Site", "Sign-In-With-X", "X-Market-Payer", "X_market_payer",
		"Market_call", "Idempotency_key", "Payment_signature", "X_payment", "If-None-Match", "Range", "Te", "Upgrade", "Keep-Alive",
		"X-Unheard-Of", "Market-Secret", "MARKET_SECRET", "market.secret", "X-Market-Secret", "Market-Outcome", "Payment.Signature", "x.payment",
		"Payment-Required", "PAYMENT-RESPONSE", "X-Payment-Response", "Sign_in_with_x", "Set-Cookie", "Cookie2", "X-Forwarded-Port", "X-Forwarded-Prefix",
		"X-Forwarded-Server", "X-Forwarded-Ssl", "X-Forwarded-Scheme", "X_forwarded_for", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip",
		"X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "X-Original-Host", "Max-Forwards", "If-Match", "If-Modified-Since", "If-Range",
		"If-Unmodified-Since", "Proxy-Connection", "Http2-Settings", "Trailer", "Early-Data", "Sec-Websocket-Key", "Access-Control-Request-Method",
		"Traceparent", "Baggage", "X-Request-Id", "Cache-Control", "Pragma", "Date", "Content-Location", "Content-Disposition", "Accept-Charset",
	}
	headers := []string{
		payment.HeaderSignature + ": " + paid, "User-Agent: caller/1", "Market_Call: 00000000-0000-0000-0000-000000000000",
		"Idempotency-Key: of-the-caller", "Connection: ", "Connection: Market-Call, Idempotency-Key, Market-Secret, Content-Type, Accept",
		"Connection: keep-alive, x-unheard-of",
	}
	for _, name := range secret {
		headers = append(headers, name+": forged-by-the-caller")
	}
	for name, value := range kept {
		if name != "Content-Type" { // which SendBytes writes
			headers = append(headers, name+": "+value)
		}
	}
	a := w.SendBytes(t, http.MethodPost, "/s/curious/work", `{"n":1}`, headers...)
	if a.Status != http.StatusOK {
		t.Fatalf("the call: %d %s", a.Status, a.Body)
	}
	r := <-seen
	if got := r.Header.Values("Market-Secret"); len(got) != 1 || !strings.HasPrefix(got[0], "mks_") {
		t.Errorf("the provider got Market-Secret %q, want ours alone", got)
	}
	for _, name := range []string{"Market-Call", "Idempotency-Key"} {
		if got := r.Header.Values(name); !slices.Equal(got, []string{a.Call()}) {
			t.Errorf("the provider got %s %q, want the call's id %s alone", name, got, a.Call())
		}
	}
	for name, want := range kept {
		if got := r.Header.Values(name); !slices.Equal(got, []string{want}) {
			t.Errorf("the provider got %s %q, want %q", name, got, want)
		}
	}
	allowed := []string{"Market-Call", "Idempotency-Key", "Market-Secret", "User-Agent", "Content-Length", "Accept-Encoding"}
	for name, values := range r.Header {
		_, expected := kept[name]
		if !expected && !slices.Contains(allowed, name) || strings.Contains(strings.Join(values, " "), "caller") {
			t.Errorf("the provider got %s: %q", name, values)
		}
	}
	if strings.HasPrefix(r.Host, "market") || "http://"+r.Host == w.URL {
		t.Errorf("the provider was asked for the host %s, want its own", r.Host)
	}
}

// B146, B109: a provider does not speak for us: not about payments, caching, cookies, scripts or calls.
func TestHeaders_AProviderDoesNotSpeakForUs(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	forged := http.Header{
		"Payment-Required": {"eyJ4NDAyVmVyc2lvbiI6Mn0="}, "Payment-Response": {"eyJzdWNjZXNzIjp0cnVlfQ=="}, "X-Payment-Response": {"x"},
		"Set-Cookie": {"session=evil"}, "Access-Control-Allow-Origin": {"https://evil.test"}, "Access-Control-Allow-Credentials": {"true"},
		"Access-Control-Expose-Headers": {"X-Evil"}, "Strict-Transport-Security": {"max-age=1"}, "Market-Call": {"forged"},
		"Market-Outcome": {"perfect"}, "Cache-Control": {"public, max-age=3600"}, "Expires": {"Thu, 01 Jan 2099 00:00:00 GMT"},
		"Www-Authenticate": {"Basic"}, "Refresh": {"0; url=https://evil.test"}, "Link": {"<https://evil.test>; rel=preload"}, "Server": {"evil"},
		"Location": {"https://evil.test"}, "Alt-Svc": {`h3="evil.test:443"`}, "Clear-Site-Data": {`"*"`}, "Content-Security-Policy": {"x"},
		"Retry-After": {"1"}, "Service-Worker-Allowed": {"/"}, "X_market_call": {"forged"},
	}
	for _, name := range []string{
		"Market-Secret", "Market-Anything", "market_outcome", "payment_response", "X_PAYMENT_RESPONSE", "Payment-Signature", "X-Payment", "Extension-Responses",
		"Settlement-Overrides", "Report-To", "Reporting-Endpoints", "Nel", "Server-Timing", "Timing-Allow-Origin", "Permissions-Policy", "X-Frame-Options",
		"Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy", "Cross-Origin-Resource-Policy", "Origin-Agent-Cluster", "SourceMap", "X-Sourcemap",
		"X-Accel-Redirect", "X-Accel-Buffering", "X-Sendfile", "Content-Location", "Content-Range", "Accept-Ranges", "Age", "Warning", "Pragma", "Via",
		"X-Cache", "Public-Key-Pins", "Expect-Ct", "Content-Security-Policy-Report-Only", "Access-Control-Max-Age", "Access-Control-Allow-Methods",
		"Access-Control-Allow-Headers", "Access-Control-Allow-Private-Network", "Proxy-Authenticate", "Authentication-Info", "Set-Cookie2", "Sunset",
		"Deprecation", "Speculation-Rules", "Accept-Ch", "Critical-Ch", "No-Vary-Search", "X-Content-Type-Options", "X-Robots-Tag", "X-Powered-By",
		"Proxy-Status", "X-Forwarded-For", "Idempotency-Key", "Priority", "Referrer-Policy", "X-Unheard-Of",
	} {
		forged[name] = []string{"forged-by-the-service"}
	}
	content := http.Header{"Content-Type": {"text/csv; charset=utf-8"}, "Etag": {`"v1"`}, "Content-Language": {"de"},
		"Content-Disposition": {`attachment; filename="a.csv"`}}
	status := http.StatusOK
	work := func(rw http.ResponseWriter, _ *http.Request) {
		for _, set := range []http.Header{forged, content} {
			for name, values := range set {
				rw.Header()[name] = values
			}
		}
		rw.WriteHeader(status)
		_, _ = rw.Write([]byte("a,b\n"))
	}
	s := w.List(t, "loud", work, map[string]any{"served_statuses": []int{404}})
	payer := w.Payer(t, 100*apptest.PriceUnits)
	terms := w.Challenge(t, apptest.Ask(s.URL))

	check := func(name string, a apptest.Answer) {
		t.Helper()
		for header, values := range forged {
			for _, got := range a.Header.Values(header) {
				if slices.Contains(values, got) {
					t.Errorf("%s: the provider's %s %q reached the caller", name, header, got)
				}
			}
		}
		if len(a.Header.Values("Market-Call")) != 1 || len(a.Header.Values("Market-Outcome")) != 1 || len(a.Header.Values("Cache-Control")) != 1 {
			t.Errorf("%s: calls %q, outcomes %q, caching %q", name, a.Header.Values("Market-Call"), a.Header.Values("Market-Outcome"), a.Header.Values("Cache-Control"))
		}
	}
	for name, served := range map[string]int{"a good answer": http.StatusOK, "a declared 404": http.StatusNotFound, "created": http.StatusCreated} {
		status = served
		a := w.Pay(t, payer, terms, apptest.Ask(s.URL))
		if a.Status != served || string(a.Body) != "a,b\n" || a.Outcome() != "served" {
			t.Errorf("%s: %d %q, outcome %s", name, a.Status, a.Body, a.Outcome())
		}
		check(name, a)
		for header, values := range content {
			if !slices.Equal(a.Header.Values(header), values) {
				t.Errorf("%s: %s is %q, want %q", name, header, a.Header.Values(header), values)
			}
		}
		if got := a.Header.Get("Cache-Control"); got != "private, no-store" {
			t.Errorf("%s: Cache-Control is %q", name, got)
		}
		if receipt := apptest.Decode(t, a.Header.Get(payment.HeaderResponse)); receipt["success"] != true || receipt["payer"] != payer.Address().Hex() {
			t.Errorf("%s: the receipt is %v", name, receipt)
		}
	}
	for name, refused := range map[string]int{"a refusal": http.StatusForbidden, "a payment of its own": http.StatusPaymentRequired} {
		status = refused
		a := w.Pay(t, payer, terms, apptest.Ask(s.URL))
		check(name, a)
		if a.Header.Get(payment.HeaderRequired) != "" || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") ||
			a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: terms %q, type %q, caching %q", name, a.Header.Get(payment.HeaderRequired), a.Header.Get("Content-Type"), a.Header.Get("Cache-Control"))
		}
	}
}
