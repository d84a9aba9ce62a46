package upstream

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"market/internal/call"
	"market/internal/catalog"
	"market/internal/config"
)

// keyed gives a service what its provider entrusted to us.
func keyed(s *catalog.Service, headers ...string) *catalog.Service {
	for i := 0; i < len(headers); i += 2 {
		s.Headers = append(s.Headers, catalog.ServiceHeader{Name: headers[i], Value: config.NewSecret(headers[i+1])})
	}
	s.Secret.Value = config.NewSecret("mks_of-this-service")
	return s
}

func TestClient_CallsAndProbesCarryWhatTheServiceWantsToSee(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 2)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r })
	// A row that is older than our list of reserved names may hold one.
	s := keyed(serviceAt(t, server.URL, nil), "Authorization", "Bearer of-the-provider", "X-Api-Key", "key", "Market-Secret", "forged", "User-Agent", "forged")
	client := development()
	r := requestTo(s)
	r.Header = http.Header{"Authorization": {"Bearer of-the-caller"}, "X-Api-Key": {"of-the-caller"}, "Market-Secret": {"of-the-caller"}}
	if got := client.Ask(t.Context(), r); got.Reason != call.OK {
		t.Fatalf("ask: %q (%v)", got.Reason, got.Err)
	}
	if found := client.look(t.Context(), s); found.reason != "" {
		t.Fatalf("probe: %q", found.reason)
	}
	for range 2 {
		r := <-seen
		for name, want := range map[string]string{
			"Authorization": "Bearer of-the-provider", "X-Api-Key": "key", "Market-Secret": "mks_of-this-service", "User-Agent": userAgent,
		} {
			if got := r.Header.Values(name); !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s = %q, want %q once", r.URL.Path, name, got, want)
			}
		}
	}
}

// B100: not even a redirect takes a provider's key to another host.
func TestClient_AServicesHeadersStayWithItsHost(t *testing.T) {
	t.Parallel()
	stolen := make(chan http.Header, 1)
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header })
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	s := keyed(serviceAt(t, server.URL, nil), "X-Api-Key", "key")
	client := development()
	if got := client.Ask(t.Context(), requestTo(s)); got.Reason != call.UpstreamRedirect {
		t.Errorf("ask: %q (%v)", got.Reason, got.Err)
	}
	if found := client.look(t.Context(), s); found.reason != call.NotLive {
		t.Errorf("probe: %q", found.reason)
	}
	select {
	case header := <-stolen:
		t.Errorf("the other host got %v", header)
	default:
	}
}

func TestClient_Ask_HidesWhatItSentInWhatTheServiceSays(t *testing.T) {
	t.Parallel()
	const token, cookie, quoted = "sk_live_0123456789", "abcdefgh12345678", `quote"and\slash`
	long := strings.Repeat("é", 2<<10) // 4 KB
	for name, tt := range map[string]struct{ said, want string }{
		"a token":                      {"bad key " + token + "!", "bad key [hidden]!"},
		"the whole header":             {"got Bearer " + token, "got [hidden]"},
		"in JSON":                      {`{"sent":{"authorization":"Bearer ` + token + `"}}`, `{"sent":{"authorization":"[hidden]"}}`},
		"with the escapes of JSON":     {`{"q":"quote\"and\\slash"}`, `{"q":"[hidden]"}`},
		"with the escapes of URLs":     {"?q=quote%22and%5Cslash", "?q=[hidden]"},
		"as PHP writes JSON":           {`{"q":"sk\/abc+defgh"}`, `{"q":"[hidden]"}`},
		"as .NET writes JSON":          {`{"q":"sk/abc\u002Bdefgh"}`, `{"q":"[hidden]"}`},
		"in lower-case escapes":        {"?q=sk%2fabc%2bdefgh", "?q=[hidden]"},
		"in HTML":                      {"<p>sk&#x2F;abc&#43;defgh &amp; more</p>", "<p>[hidden] &amp; more</p>"},
		"of a URL in JSON":             {`{"q":"?sk%2Fabc%2Bdefgh\u0026x"}`, `{"q":"?[hidden]\u0026x"}`},
		"JSON in JSON":                 {`{"q":"{\"k\":\"sk\\/abc+defgh\"}"}`, `{"q":"{\"k\":\"[hidden]\"}"}`},
		"the pair in Basic":            {"bad login user:pass-of-the-provider", "bad login [hidden]"},
		"the password of the pair":     {`{"password":"pass-of-the-provider"}`, `{"password":"[hidden]"}`},
		"cut in the middle of escapes": {long[:4094] + `sk\u002fabc\u002bdefgh` + long, long[:4094]},
		"a cookie's value":             {"session " + cookie, "session [hidden]"},
		"our secret":                   {"mks_of-this-service is not mine", "[hidden] is not mine"},
		"twice":                        {token + token, "[hidden][hidden]"},
		"what is too short to be one":  {"v2", "v2"},
		"cut in the middle":            {long[:4090] + token + long, long[:4090]},
		"cut after its first letter":   {long[:4094] + "." + token + long, long[:4094] + "."},
		"hidden before the cut":        {token + long + long, "[hidden]" + long[:4082]},
		"a text that says nothing bad": {"city not found", "city not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(tt.said))
			})
			s := keyed(serviceAt(t, server.URL, nil), "Authorization", "Bearer "+token, "Cookie", "session="+cookie, "X-Quoted", quoted,
				"X-Slashed", "sk/abc+defgh", "Proxy-Auth", "Basic "+base64.StdEncoding.EncodeToString([]byte("user:pass-of-the-provider")), "X-Version", "v2")
			got := development().Ask(t.Context(), requestTo(s))
			if got.Reason != call.RejectedByService || string(got.ServiceAnswer) != tt.want {
				t.Errorf("%q: %q, want %q (%v)", got.Reason, got.ServiceAnswer, tt.want, got.Err)
			}
		})
	}
}

func TestClient_Check_HidesWhatItSentInWhatItShows(t *testing.T) {
	t.Parallel()
	const key = "sk_live_0123456789"
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://elsewhere.example/?key="+r.Header.Get("X-Api-Key"))
		w.Header().Set("Content-Type", "text/"+r.Header.Get("Market-Secret"))
		w.WriteHeader(http.StatusFound)
		_, _ = w.Write([]byte(r.Header.Get("X-Api-Key") + strings.Repeat(".", 150) + r.Header.Get("X-Api-Key") + "..." + r.Header.Get("X-Api-Key")))
	})
	found := development().Check(t.Context(), keyed(serviceAt(t, server.URL, nil), "X-Api-Key", key))
	if shown := found.Received + found.Request + found.Expected; strings.Contains(shown, "sk_live") || strings.Contains(shown, "of-this-service") ||
		strings.Count(shown, "[hidden]") != 4 {
		t.Errorf("shown: %s", shown)
	}
}

// A served body is the service's own, bit for bit: what it gives away is its business.
func TestClient_Ask_LeavesAServedBodyAlone(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Header.Get("X-Api-Key"))) })
	got := development().Ask(t.Context(), requestTo(keyed(serviceAt(t, server.URL, nil), "X-Api-Key", "key-of-the-provider")))
	if got.Reason != call.OK || string(got.Body) != "key-of-the-provider" {
		t.Errorf("%q: %q", got.Reason, got.Body)
	}
}

func TestClient_Ask_KeepsWhatItSentOutOfItsErrors(t *testing.T) {
	t.Parallel()
	const key = "key-of-the-provider"
	for name, url := range map[string]string{
		"no HTTP":           accept(t, says(key+"\r\n\r\n")),
		"a broken header":   accept(t, says("HTTP/1.1 200 OK\r\n"+key+"\r\n\r\n")),
		"an odd status":     accept(t, says("HTTP/1.1 "+key+"\r\n\r\n")),
		"a broken length":   accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: "+key+"\r\n\r\n")),
		"broken JSON":       accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 36\r\n\r\n{\""+key+"\":1,\"a\":2,\"b\":3}")),
		"an odd transfer":   accept(t, says("HTTP/1.1 200 OK\r\nTransfer-Encoding: "+key+"\r\n\r\n")),
		"an odd encoding":   accept(t, says("HTTP/1.1 200 OK\r\nContent-Encoding: "+key+"\r\nContent-Length: 2\r\n\r\n{}")),
		"a member too many": accept(t, says("HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\n{\"member\":\""+key+"\"}")),
	} {
		change := promising(`{"type":"object","properties":{"member":{"enum":["a"]}},"additionalProperties":false}`)
		got := development().Ask(t.Context(), requestTo(keyed(serviceAt(t, url, change), "X-Api-Key", key)))
		if got.Reason != call.UpstreamBadResponse {
			t.Errorf("%s: %q (%v)", name, got.Reason, got.Err)
		}
		if got.Err != nil && strings.Contains(got.Err.Error(), key) || strings.Contains(got.Detail, key) {
			t.Errorf("%s: the log would show the key: %v (%s)", name, got.Err, got.Detail)
		}
	}
}
