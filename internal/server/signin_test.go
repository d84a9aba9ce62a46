package server

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"market/internal/call"
)

const signInToken = "a-token-of-the-tests"

// A deskTest is a server without a database, and a clock that the test moves.
type deskTest struct {
	*Server
	at time.Time
}

func newDeskTest(change func(*Config)) *deskTest {
	d := &deskTest{at: time.Unix(1_800_000_000, 0)}
	c := Config{PublicURL: "https://shop.example", AdminToken: signInToken, Log: zerolog.Nop(), Now: func() time.Time { return d.at }}
	if change != nil {
		change(&c)
	}
	d.Server = New(c)
	return d
}

// ask sends a request as a browser does that looks at our pages; header pairs change that.
func (d *deskTest) ask(method, path string, form url.Values, headers ...string) *http.Response {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Header = http.Header{"Accept": {"text/html"}, "User-Agent": {browser}, "Sec-Fetch-Site": {"same-origin"}}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Del(headers[i])
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
		if headers[i] == "peer" {
			r.RemoteAddr = headers[i+1]
		}
	}
	answer := httptest.NewRecorder()
	d.Public().Handler.ServeHTTP(answer, r)
	return answer.Result()
}

func (d *deskTest) signIn(token string, headers ...string) *http.Response {
	return d.ask(http.MethodPost, "/admin/session", url.Values{"token": {token}, "next": {"/admin/strikes"}}, headers...)
}

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	defer func() { _ = r.Body.Close() }()
	var out strings.Builder
	buffer := make([]byte, 1<<20)
	for {
		n, err := r.Body.Read(buffer)
		out.Write(buffer[:n])
		if err != nil {
			return out.String()
		}
	}
}

func TestSession_IsGoodUntilItEndsAndOnlyAsItWasMade(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	opened := openSession(now)
	value := opened.value(signInToken)
	for after, want := range map[time.Duration]bool{0: true, sessionTime - time.Second: true, sessionTime: false, sessionTime + time.Second: false} {
		if got, ok := readSession(value, signInToken, now.Add(after)); ok != want || want && got.id != opened.id {
			t.Errorf("after %v: good %v, want %v", after, ok, want)
		}
	}
	for i := range value {
		changed := []byte(value)
		changed[i] ^= 1
		if _, ok := readSession(string(changed), signInToken, now); ok {
			t.Errorf("a session with another byte %d is good", i)
		}
	}
	for name, wrong := range map[string]string{"nothing": "", "a form token": opened.formToken(signInToken), "the admin token": signInToken, "more": value + "AAAA", "less": value[:20]} {
		if _, ok := readSession(wrong, signInToken, now); ok {
			t.Errorf("%s is a good session", name)
		}
	}
	if again := openSession(now); again.value(signInToken) == value || again.formToken(signInToken) == opened.formToken(signInToken) {
		t.Error("two sessions are one")
	}
}

// B148: whoever was an admin by a token is none any more once there is another one.
func TestSession_EndsWithItsToken(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	value := openSession(now).value(signInToken)
	for _, other := range []string{"another-token-of-tests", signInToken + " ", ""} {
		if _, ok := readSession(value, other, now); ok {
			t.Errorf("a session of another token is good with %q", other)
		}
	}
}

func TestSignIn_SetsACookieThatScriptsAndOtherSitesDoNotGet(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"production":          {nil, "__Secure-market-admin=; Path=/admin; Max-Age=28800; HttpOnly; Secure; SameSite=Strict"},
		"http in production":  {func(c *Config) { c.PublicURL = "http://shop.example" }, "__Secure-market-admin=; Path=/admin; Max-Age=28800; HttpOnly; Secure; SameSite=Strict"},
		"https in developing": {func(c *Config) { c.Dev = true }, "__Secure-market-admin=; Path=/admin; Max-Age=28800; HttpOnly; Secure; SameSite=Strict"},
		"http in developing":  {func(c *Config) { c.Dev, c.PublicURL = true, "http://127.0.0.1:4021" }, "market-admin=; Path=/admin; Max-Age=28800; HttpOnly; SameSite=Strict"},
	} {
		answer := newDeskTest(tt.change).signIn(signInToken)
		if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/admin/strikes" || len(answer.Cookies()) != 1 {
			t.Fatalf("%s: %d %v", name, answer.StatusCode, answer.Header)
		}
		line := answer.Header.Get("Set-Cookie")
		if got := strings.Replace(line, answer.Cookies()[0].Value, "", 1); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestSignIn_WhoIsNotSignedInGetsTheFormAtTheSameAddress(t *testing.T) {
	t.Parallel()
	d := newDeskTest(nil)
	for at, next := range map[string]string{"/admin": "/admin", "/admin/services?state=held": "/admin/services?state=held"} {
		answer := d.ask(http.MethodGet, at, nil, "Cookie", "__Secure-market-admin="+openSession(d.at.Add(-sessionTime)).value(signInToken))
		h, page := answer.Header, bodyOf(t, answer)
		if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(page, `name="next" value="`+next+`"`) || !strings.Contains(page, `type="password"`) {
			t.Errorf("%s: %d %s", at, answer.StatusCode, page)
		}
		if h.Get("Cache-Control") != "no-store" || h.Get("X-Robots-Tag") != "noindex" || h.Get("Content-Security-Policy") != pagePolicy ||
			h.Get("Access-Control-Allow-Origin") != "" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: headers %v", at, h)
		}
	}
	// What a form would have done is not done, and its page is where one goes on.
	if page := bodyOf(t, d.ask(http.MethodPost, "/admin/session/end", nil)); !strings.Contains(page, "nothing was changed") || !strings.Contains(page, `value="/admin"`) {
		t.Errorf("a form without a session:\n%s", page)
	}
}

// B152: who somebody is said to be by a header makes nobody an admin.
func TestSignIn_NoHeaderMakesAnAdmin(t *testing.T) {
	t.Parallel()
	d := newDeskTest(nil)
	for _, name := range []string{"X-Forwarded-User", "X-Forwarded-Email", "X-Remote-User", "X-Admin", "Authorization"} {
		if answer := d.ask(http.MethodGet, "/admin/services", nil, name, "admin", "X-Real-Ip", "127.0.0.1"); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
}

func TestSignIn_WhereNoTokenIsConfiguredNobodyCan(t *testing.T) {
	t.Parallel()
	d := newDeskTest(func(c *Config) { c.AdminToken = "" })
	for _, answer := range []*http.Response{d.ask(http.MethodGet, "/admin/services", nil), d.signIn(""), d.signIn("x")} {
		if page := bodyOf(t, answer); answer.StatusCode != http.StatusNotFound || !strings.Contains(page, "MARKET_ADMIN_TOKEN") || len(answer.Cookies()) != 0 {
			t.Errorf("%d\n%s", answer.StatusCode, page)
		}
	}
}

func TestSignIn_IsAskedForSoOftenByOneNetworkAndNoMore(t *testing.T) {
	t.Parallel()
	d := newDeskTest(nil)
	for n := range triesMax {
		if answer := d.signIn("wrong", "peer", "192.0.2.7:1"); answer.StatusCode != http.StatusUnauthorized || len(answer.Cookies()) != 0 {
			t.Fatalf("try %d: %d", n, answer.StatusCode)
		}
	}
	for token, want := range map[string]int{"wrong": http.StatusTooManyRequests, signInToken: http.StatusTooManyRequests} {
		if answer := d.signIn(token, "peer", "192.0.2.200:1"); answer.StatusCode != want || answer.Header.Get("Retry-After") != "900" {
			t.Errorf("%q from the same /24: %d, Retry-After %s", token, answer.StatusCode, answer.Header.Get("Retry-After"))
		}
	}
	if answer := d.signIn(signInToken, "peer", "192.0.3.1:1"); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("another network: %d", answer.StatusCode)
	}
	d.at = d.at.Add(triesWindow - time.Second)
	if answer := d.signIn(signInToken, "peer", "192.0.2.7:1"); answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("a second before the end: %d", answer.StatusCode)
	}
	d.at = d.at.Add(time.Second)
	if answer := d.signIn(signInToken, "peer", "192.0.2.7:1"); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("at the end: %d", answer.StatusCode)
	}
}

func TestTries_RememberSoManyNetworksAndTheRightTokenIsForgotten(t *testing.T) {
	t.Parallel()
	var made tries
	now := time.Unix(1_800_000_000, 0)
	for n := range triesKept + 10 {
		made.take(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 0}), 24), now)
	}
	if len(made.by) > triesKept {
		t.Errorf("%d networks are kept", len(made.by))
	}
	home := netip.MustParsePrefix("192.0.2.0/24")
	for n := range 3 * triesMax {
		if wait := made.take(home, now); wait != 0 {
			t.Fatalf("try %d: %v", n, wait)
		}
		made.right(home)
	}
}

// What a browser sends for another site does nothing, whatever cookie comes with it.
func TestAdminForms_OfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	d := newDeskTest(nil)
	current := openSession(d.at)
	cookie := "__Secure-market-admin=" + current.value(signInToken)
	good := url.Values{"form": {current.formToken(signInToken)}}
	for name, tt := range map[string]struct {
		form    url.Values
		headers []string
		want    int
	}{
		"a form of ours":                              {good, nil, http.StatusSeeOther},
		"an older browser, a form of ours":            {good, []string{"Sec-Fetch-Site", "", "Origin", "https://shop.example"}, http.StatusSeeOther},
		"an older browser, the host that was asked":   {good, []string{"Sec-Fetch-Site", "", "Origin", "https://example.com"}, http.StatusSeeOther}, // httptest asks example.com
		"another site":                                {good, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"another site of our domain":                  {good, []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		"another site, an older browser":              {good, []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, http.StatusForbidden},
		"a sandbox, an older browser":                 {good, []string{"Sec-Fetch-Site", "", "Origin", "null"}, http.StatusForbidden},
		"no form token":                               {nil, nil, http.StatusForbidden},
		"the form token of another session":           {url.Values{"form": {openSession(d.at).formToken(signInToken)}}, nil, http.StatusForbidden},
		"the session for a form token":                {url.Values{"form": {current.value(signInToken)}}, nil, http.StatusForbidden},
		"a body of another kind":                      {good, []string{"Content-Type", "text/plain"}, http.StatusForbidden},
		"more than a form of ours has":                {url.Values{"form": {strings.Repeat("x", adminFormBytesMax)}}, nil, http.StatusBadRequest},
		"no session, with the form token of somebody": {good, []string{"Cookie", ""}, http.StatusUnauthorized},
	} {
		answer := d.ask(http.MethodPost, "/admin/session/end", tt.form, append([]string{"Cookie", cookie}, tt.headers...)...)
		if page := bodyOf(t, answer); answer.StatusCode != tt.want || (len(answer.Cookies()) == 1) != (tt.want == http.StatusSeeOther) {
			t.Errorf("%s: %d, want %d\n%s", name, answer.StatusCode, tt.want, page)
		} else if strings.Contains(page, "..") {
			t.Errorf("%s: a sentence ends twice\n%s", name, page)
		}
	}
	if answer := d.signIn(signInToken, "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusForbidden || len(answer.Cookies()) != 0 {
		t.Errorf("another site signs somebody in: %d", answer.StatusCode)
	}
}

func TestSafeNext_LeadsToAdminsPagesOnly(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{
		"/admin": "/admin", "/admin/strikes?cursor=x": "/admin/strikes?cursor=x", "/admin/strikes/weather": "/admin/strikes/weather",
		"": "/admin", "https://evil.example/admin": "/admin", "//evil.example/admin": "/admin", "/admin/../s/evil/v1": "/admin", "/admin/%2e%2e/s/evil": "/admin",
		"/administrator": "/admin", "/": "/admin", "/admin/session": "/admin", "/admin/session/end": "/admin", "/admin//evil": "/admin", "javascript:alert(1)": "/admin",
		"/admin/x\r\nSet-Cookie: a=b": "/admin", `/\evil.example`: "/admin",
	} {
		if got := safeNext(next); got != want {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
}

// Whoever sends a form sees why it failed, as a page.
func TestAdminForms_TroubleIsAPage(t *testing.T) {
	t.Parallel()
	d := newDeskTest(nil)
	answer := d.ask(http.MethodPost, "/admin/nothing", nil)
	if page := bodyOf(t, answer); answer.StatusCode != http.StatusNotFound || !strings.Contains(page, string(call.NotFound)) || !strings.Contains(page, "<h1>") {
		t.Errorf("%d\n%s", answer.StatusCode, page)
	}
}
