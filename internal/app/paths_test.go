package app_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"market/internal/app/apptest"
	"market/internal/payment"
)

// spellings are ways to write the path of an endpoint, /s/spelled/work, that the listing does not know. {} stands for s or try.
var spellings = map[string]string{
	"a slash at the end":                           "/{}/spelled/work/",
	"two slashes before everything":                "//{}/spelled/work",
	"two slashes before the service":               "/{}//spelled/work",
	"two slashes before the path":                  "/{}/spelled//work",
	"the service alone":                            "/{}/spelled",
	"the service and a slash":                      "/{}/spelled/",
	"no service":                                   "/{}/",
	"neither service nor slash":                    "/{}",
	"another case of the prefix":                   "/S/spelled/work",
	"another case of the service":                  "/{}/Spelled/work",
	"another case of the path":                     "/{}/spelled/WORK",
	"a dot segment":                                "/{}/spelled/./work",
	"a dot segment before the prefix":              "/./{}/spelled/work",
	"two dots within the service":                  "/{}/spelled/x/../work",
	"two dots that come back to the service":       "/{}/other/../spelled/work",
	"two dots over the prefix":                     "/{}/../{}/spelled/work",
	"escaped dots":                                 "/{}/spelled/x/%2e%2e/work",
	"escaped dots in upper case":                   "/{}/spelled/x/%2E%2E/work",
	"one of two dots escaped":                      "/{}/spelled/x/.%2e/work",
	"an escaped dot":                               "/{}/spelled/%2e/work",
	"escaped slashes with dots between":            "/{}/spelled/x%2F..%2Fwork",
	"an escaped slash for the one before the path": "/{}/spelled%2Fwork",
	"an escaped slash at the end":                  "/{}/spelled/work%2f",
	"a backslash":                                  `/{}/spelled\work`,
	"an escaped backslash":                         "/{}/spelled%5Cwork",
	"an escaped backslash at the end":              "/{}/spelled/work%5c",
	"double escapes of dots":                       "/{}/spelled/x/%252e%252e/work",
	"a double escape of a letter":                  "/{}/spelled/%2577ork",
	"an escaped letter of the path":                "/{}/spelled/%77ork",
	"all letters of the path escaped":              "/{}/spelled/%77%6f%72%6b",
	"an escaped letter of the service":             "/{}/s%70elled/work",
	"an escaped letter of the prefix s":            "/%73/spelled/work",
	"a parameter behind a semicolon":               "/{}/spelled/work;x",
	"a parameter behind an escaped semicolon":      "/{}/spelled/work%3bx=1",
	"a semicolon before the path":                  "/{}/spelled/..;/work",
	"an escaped question mark":                     "/{}/spelled/work%3fn=1",
	"a fragment":                                   "/{}/spelled/work#x",
	"an escaped fragment":                          "/{}/spelled/work%23x",
	"an escaped NUL":                               "/{}/spelled/work%00",
	"an escaped space":                             "/{}/spelled/work%20",
	"an escaped line break":                        "/{}/spelled/work%0d%0aX: y",
	"a letter that looks the same":                 "/{}/spelled/w%D0%BErk",
	"an overlong encoding of a slash":              "/{}/spelled%c0%afwork",
	"bytes that are no text":                       "/{}/spelled/work%ff",
}

// B107: a gate and a router that read one path differently are how paywalls are passed.
func TestPaths_NoSpellingOfAPathGetsPastTheGate(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	s := w.List(t, "spelled", apptest.Works, map[string]any{"trial_calls_per_day": 1000})
	paid := w.Sign(t, w.Payer(t, 10*apptest.PriceUnits), w.Challenge(t, apptest.Ask(s.URL)))

	for name, spelling := range spellings {
		s := strings.ReplaceAll(spelling, "{}", "s")
		for what, answer := range map[string]apptest.Answer{
			"unpaid":   w.SendBytes(t, http.MethodPost, s, `{"n":1}`),
			"paid":     w.SendBytes(t, http.MethodPost, s, `{"n":1}`, payment.HeaderSignature+": "+paid),
			"a trial":  w.SendBytes(t, http.MethodPost, strings.ReplaceAll(spelling, "{}", "try"), `{"n":1}`),
			"absolute": w.SendBytes(t, http.MethodPost, "http://spelled.test"+s, `{"n":1}`),
		} {
			// A target with a space is no request at all, which the HTTP library says before we see it.
			if answer.Status == http.StatusBadRequest && strings.Contains(spelling, " ") {
				continue
			}
			if answer.Status != http.StatusNotFound || answer.Code() != "not_found" {
				t.Errorf("%s, %s: %d %s, want 404 not_found", name, what, answer.Status, answer.Body)
			}
		}
	}
	for name, target := range map[string]string{
		"half an escape":               "/s/spelled/work%2",
		"an escape of no digits":       "/s/spelled/%zz/work",
		"a percent sign before a word": "/s/spelled/%work",
	} {
		if answer := w.SendBytes(t, http.MethodPost, target, `{"n":1}`, payment.HeaderSignature+": "+paid); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", name, answer.Status, answer.Body)
		}
	}
	if s.Asked() != 0 || s.Probed() != 0 {
		t.Errorf("the service was asked %d and probed %d times", s.Asked(), s.Probed())
	}
	if rows := w.Rows(t); rows != (apptest.Rows{}) {
		t.Errorf("rows were written: %+v", rows)
	}
	// The payment that opened none of them is good for the one path that it was signed for.
	if answer := w.SendBytes(t, http.MethodPost, "/s/spelled/work?x=/../..", `{"n":1}`, payment.HeaderSignature+": "+paid); answer.Status != http.StatusOK {
		t.Errorf("the path as it is listed: %d %s", answer.Status, answer.Body)
	}
}

// A provider sees the path that its listing names, with the caller's values in it escaped, and never anything above or beside it.
func TestPaths_ParametersReachTheServiceEscapedAndInsideItsPrefix(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	var (
		mu      sync.Mutex
		targets []string
	)
	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/base/v2/healthz" {
			mu.Lock()
			targets = append(targets, r.RequestURI)
			mu.Unlock()
		}
		apptest.Works(rw, r)
	}))
	t.Cleanup(upstream.Close)
	status, made := w.Admin(t, http.MethodPost, "/api/v1/services", map[string]any{
		"slug": "cities", "name": "Cities", "base_url": upstream.URL + "/base/v2",
		"probe": map[string]any{"path": "/healthz", "statuses": []string{"200"}},
		"endpoints": []any{map[string]any{"method": "GET", "path": "/city/{id}/now", "price_usd": "0.002", "trial_calls_per_day": 1000,
			"input_schema": map[string]any{"type": "object", "required": []string{"id"}}}},
	})
	if status != http.StatusCreated {
		t.Fatalf("list: %d %v", status, made)
	}
	for name, tt := range map[string]struct{ segment, reaches string }{
		"a plain word":                         {"lima", "lima"},
		"an escaped letter is that letter":     {"%6cima", "lima"},
		"a space":                              {"san%20jose", "san%20jose"},
		"a plus sign stays one":                {"a+b", "a+b"},
		"an escaped plus sign is one":          {"a%2Bb", "a+b"},
		"a question mark opens no query":       {"a%3Fb=c", "a%3Fb=c"},
		"a number sign opens no fragment":      {"a%23b", "a%23b"},
		"an ampersand":                         {"a%26b", "a&b"},
		"a semicolon opens no parameter":       {"a%3Bb", "a%3Bb"},
		"a bare semicolon neither":             {"a;b", "a%3Bb"},
		"a percent sign":                       {"50%25", "50%25"},
		"an escape of an escape stays one":     {"%252e%252e", "%252e%252e"},
		"an escape of an escaped slash":        {"a%252Fb", "a%252Fb"},
		"letters beyond ASCII":                 {"m%C3%BCnchen", "m%C3%BCnchen"},
		"dots with a word":                     {"..lima", "..lima"},
		"a colon":                              {"a:b", "a:b"},
		"quotation marks and angle brackets":   {"%22%3Ca%3E%27", "%22%3Ca%3E%27"},
		"a scheme and a host are just a value": {"http:%3F%3Fevil.test", "http:%3F%3Fevil.test"},
	} {
		mu.Lock()
		targets = nil
		mu.Unlock()
		answer := w.SendBytes(t, http.MethodGet, "/try/cities/city/"+tt.segment+"/now?q=%2e%2e/x", "")
		mu.Lock()
		got := targets
		mu.Unlock()
		want := "/base/v2/city/" + tt.reaches + "/now?q=%2e%2e/x"
		if answer.Status != http.StatusOK || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %d, the service was asked for %q, want %q", name, answer.Status, got, want)
		}
	}
	mu.Lock()
	targets = nil
	mu.Unlock()
	for name, segment := range map[string]string{
		"no value":             "",
		"a dot":                ".",
		"an escaped dot":       "%2e",
		"two dots":             "..",
		"escaped dots":         "%2e%2E",
		"a slash":              "a%2Fb",
		"a climb":              "%2e%2e%2f%2e%2e%2fadmin",
		"a backslash":          "a%5Cb",
		"a climb by backslash": "..%5c..%5cadmin",
		"a NUL":                "a%00",
		"a line break":         "a%0d%0aX-Evil:%20y",
		"bytes that are none":  "%ff%fe",
		"an overlong slash":    "a%c0%afb",
	} {
		answer := w.SendBytes(t, http.MethodGet, "/try/cities/city/"+segment+"/now", "")
		if answer.Status != http.StatusNotFound {
			t.Errorf("%s: %d %s, want 404", name, answer.Status, answer.Body)
		}
	}
	if len(targets) != 0 {
		t.Errorf("the service was asked for %q", targets)
	}
}
