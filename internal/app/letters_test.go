package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"market/internal/app/apptest"
	"market/internal/notify/notifytest"
)

// A received message is what came to a provider's webhook.
type received struct {
	header http.Header
	body   []byte
}

func (r received) id() string { return r.header.Get(standardwebhooks.HeaderWebhookID) }

// json decodes what is in it: type, timestamp and data.
func (r received) json(t *testing.T) (kind string, data map[string]any) {
	t.Helper()
	var m struct {
		Type      string
		Timestamp time.Time
		Data      map[string]any
	}
	if err := json.Unmarshal(r.body, &m); err != nil || m.Timestamp.IsZero() {
		t.Fatalf("%s: %v", r.body, err)
	}
	return m.Type, m.Data
}

// A listener is a provider's webhook. It keeps everything and answers as it is told to.
type listener struct {
	url    string
	mu     sync.Mutex
	answer http.HandlerFunc // nil: 204
	got    []received
}

func newListener(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		l.got = append(l.got, received{r.Header.Clone(), body})
		answer := l.answer
		l.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(server.Close)
	l.url = server.URL + "/hook"
	return l
}

func (l *listener) answers(a http.HandlerFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = a
}

// wait returns everything once so much has come.
func (l *listener) wait(t *testing.T, n int) []received {
	t.Helper()
	var got []received
	apptest.Eventually(t, "the provider is told", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		got = slices.Clone(l.got)
		return len(got) >= n
	})
	return got
}

func kindsOf(t *testing.T, got []received) (kinds []string) {
	t.Helper()
	for _, r := range got {
		kind, _ := r.json(t)
		kinds = append(kinds, kind)
	}
	return kinds
}

// told lists a service whose provider is to be told, and returns the secret that signs.
func told(t *testing.T, w *apptest.World, slug string, notices map[string]any) (*apptest.Service, string) {
	t.Helper()
	s := w.List(t, slug, apptest.Fails, map[string]any{"trial_calls_per_day": 100})
	status, answer := w.Admin(t, http.MethodPatch, "/api/v1/services/"+slug, map[string]any{"notices": notices})
	shown, _ := answer["notices"].(map[string]any)
	secret, _ := shown["secret"].(string)
	if status != http.StatusOK || !strings.HasPrefix(secret, "whsec_") {
		t.Fatalf("name a webhook: %d %v", status, answer)
	}
	return s, secret
}

// failsOnTrial asks a service that fails, which costs its caller nothing, and lets its rest pass.
func failsOnTrial(t *testing.T, w *apptest.World, s *apptest.Service) {
	t.Helper()
	expect(t, "a trial call", w.Send(t, apptest.Ask(s.URL).Trial(), ""), http.StatusBadGateway, "upstream_5xx")
	w.Shift(t, 61*time.Second)
}

// noticesOf returns the log of what a provider was told, the newest first.
func noticesOf(t *testing.T, w *apptest.World, slug string) (all []map[string]any) {
	t.Helper()
	status, page := w.Admin(t, http.MethodGet, "/api/v1/services/"+slug+"/notices", nil)
	if status != http.StatusOK {
		t.Fatalf("notices of %s: %d %v", slug, status, page)
	}
	items, _ := page["items"].([]any)
	for _, item := range items {
		one, _ := item.(map[string]any)
		all = append(all, one)
	}
	return all
}

// channel returns what became of a notice by one channel.
func channel(t *testing.T, notice map[string]any, name string) map[string]any {
	t.Helper()
	channels, _ := notice["channels"].([]any)
	for _, c := range channels {
		if one, _ := c.(map[string]any); one["channel"] == name {
			return one
		}
	}
	t.Fatalf("the notice %v does not go by %s", notice, name)
	return nil
}

func TestLetters_AProviderIsToldOfEachStrikeOfTheDelistingAndOfWhatIsDecided(t *testing.T) {
	t.Parallel()
	w := apptest.Start(t)
	hook := newListener(t)
	s, secret := told(t, w, "told", map[string]any{"webhook": hook.url})
	for range 3 {
		failsOnTrial(t, w, s)
	}
	_, strikes := strikesOf(t, w, "told")
	if status, answer := decide(t, w, strikes[2], "void"); status != http.StatusOK {
		t.Fatalf("void: %d %v", status, answer)
	}
	for _, action := range []string{"suspend", "relist"} {
		if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/services/told/"+action, why); status != http.StatusOK {
			t.Fatalf("%s: %d %v", action, status, answer)
		}
	}
	got := hook.wait(t, 8)
	want := []string{"strike.opened", "strike.opened", "strike.opened", "service.delisted", "strike.voided", "service.relisted", "service.suspended", "service.relisted"}
	if kinds := kindsOf(t, got); !slices.Equal(kinds, want) {
		t.Errorf("told are %q, want %q", kinds, want)
	}
	verifier, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range got {
		if err := verifier.Verify(r.body, r.header); err != nil {
			t.Errorf("the signature of %s: %v", r.body, err)
		}
	}

	// The evidence is what the provider reads in the API, member by member.
	status, view := w.Admin(t, http.MethodGet, "/api/v1/services/told/strikes", nil)
	if status != http.StatusOK {
		t.Fatal(view)
	}
	strike := first(view["items"])
	_, data := got[0].json(t)
	toldStrike, _ := data["strike"].(map[string]any)
	if !reflect.DeepEqual(first(toldStrike["evidence"]), first(strike["evidence"])) || first(strike["evidence"]) == nil {
		t.Errorf("told is the evidence\n%v, the API shows\n%v", first(toldStrike["evidence"]), first(strike["evidence"]))
	}
	if data["next"] != "the next failure is strike 2 of 3" || data["appeal_url"] != w.App.URL()+"/api/v1/services/told/appeals" || data["reason"] == "" {
		t.Errorf("the first strike is told as %v", data)
	}
	for _, n := range noticesOf(t, w, "told") {
		if one := channel(t, n, "webhook"); one["state"] != "sent" || one["attempts"] != 1.0 || one["status"] != 204.0 {
			t.Errorf("%v is kept as %v", n["kind"], one)
		}
	}

	// Where a provider is told is nobody else's to know, and the secret is shown once.
	public := w.Send(t, apptest.Asking{Method: http.MethodGet, URL: w.URL + "/api/v1/services/told"}, "")
	_, owners := w.Admin(t, http.MethodGet, "/api/v1/services/told", nil)
	shown, _ := owners["notices"].(map[string]any)
	if public.JSON["notices"] != nil || strings.Contains(string(public.Body), hook.url) || shown["webhook"] != hook.url || shown["secret"] != nil {
		t.Errorf("the public sees %v, the owner %v", public.JSON["notices"], shown)
	}
}

// B155: the mail arrived and the webhook did not; sent again is the webhook's alone, under the same id, and signed by the new secret and the old one.
func TestLetters_SentAgainIsWhatFailedAlone(t *testing.T) {
	t.Parallel()
	relay := notifytest.NewSMTP(t, notifytest.StartTLS)
	w := apptest.Start(t, "MARKET_OPERATOR_EMAIL=operator@market.example",
		"MARKET_SMTP_URL=smtp://"+notifytest.User+":"+notifytest.Password+"@"+relay.Address()+"?ca_file="+relay.CAFile(t))
	hook := newListener(t)
	hook.answers(func(rw http.ResponseWriter, r *http.Request) { // and never ends
		rw.WriteHeader(http.StatusInternalServerError)
		for line := []byte(strings.Repeat("x", 1<<12)); r.Context().Err() == nil; {
			if _, err := rw.Write(line); err != nil {
				return
			}
		}
	})
	s, old := told(t, w, "half", map[string]any{"webhook": hook.url, "email": "ops@half.example"})
	failsOnTrial(t, w, s)
	first := hook.wait(t, 1)[0]
	var notice map[string]any
	apptest.Eventually(t, "the mail is sent and the webhook has failed", func() bool {
		notice = noticesOf(t, w, "half")[0]
		return channel(t, notice, "email")["state"] == "sent" && channel(t, notice, "webhook")["error"] != nil
	})
	if one := channel(t, notice, "webhook"); one["state"] != "waiting" || one["status"] != 500.0 || one["next_at"] == nil {
		t.Errorf("the webhook is kept as %v", one)
	}
	mails := relay.Mails()
	if len(mails) != 1 || !slices.Equal(mails[0].To, []string{"ops@half.example"}) || mails[0].Header.Get("Subject") != "[market] half: a strike (1 of 3)" ||
		!strings.Contains(mails[0].Body, "the next failure is strike 2 of 3") || !strings.Contains(mails[0].Header.Get("Message-Id"), first.id()) {
		t.Errorf("mails %+v", mails)
	}

	hook.answers(nil)
	status, made := w.Admin(t, http.MethodPost, "/api/v1/services/half/notices/secret", nil)
	fresh, _ := made["secret"].(string)
	if status != http.StatusCreated || fresh == "" || fresh == old {
		t.Fatalf("another secret: %d %v", status, made)
	}
	resend := "/api/v1/services/half/notices/" + notice["id"].(string) + "/resend" //nolint:forcetypeassert // of our own API
	if status, answer := w.Admin(t, http.MethodPost, resend, nil); status != http.StatusAccepted {
		t.Fatalf("resend: %d %v", status, answer)
	}
	second := hook.wait(t, 2)[1]
	if second.id() != first.id() || second.id() != notice["id"] {
		t.Errorf("sent again as %s, the first was %s", second.id(), first.id())
	}
	for _, secret := range []string{fresh, old} {
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(second.body, second.header); err != nil {
			t.Errorf("the signature: %v", err)
		}
	}
	apptest.Eventually(t, "nothing is left to send", func() bool {
		status, answer := w.Admin(t, http.MethodPost, resend, nil)
		return status == http.StatusConflict && answer["code"] == "conflict"
	})
	if n := len(relay.Mails()); n != 1 {
		t.Errorf("%d mails, want the one", n)
	}
	if status, _ := w.Admin(t, http.MethodPost, "/api/v1/services/half/notices/"+s.Slug+"/resend", nil); status != http.StatusNotFound {
		t.Errorf("a notice that there is not: %d", status)
	}
}

// The relay has no quota left: it is asked once, mails wait with their attempts, and go out as soon as somebody has it tried again.
func TestLetters_MailsWaitForARelayThatIsOut(t *testing.T) {
	t.Parallel()
	relay := notifytest.NewSMTP(t, notifytest.StartTLS)
	w := apptest.Start(t, "MARKET_OPERATOR_EMAIL=operator@market.example",
		"MARKET_SMTP_URL=smtp://"+notifytest.User+":"+notifytest.Password+"@"+relay.Address()+"?ca_file="+relay.CAFile(t))
	relay.Answer("MAIL", "452 4.3.1 daily sending quota exceeded")
	hook := newListener(t)
	s, _ := told(t, w, "quota", map[string]any{"webhook": hook.url, "email": "ops@quota.example"})
	for range 2 {
		failsOnTrial(t, w, s)
	}
	apptest.Eventually(t, "both mails wait for the relay", func() bool {
		notices := noticesOf(t, w, "quota")
		return len(notices) == 2 && !slices.ContainsFunc(notices, func(n map[string]any) bool {
			one := channel(t, n, "email")
			next, _ := time.Parse(time.RFC3339, fmt.Sprint(one["next_at"]))
			at, _ := time.Parse(time.RFC3339, fmt.Sprint(n["at"]))
			return one["state"] != "waiting" || next.Sub(at) < 30*time.Minute
		})
	})
	hook.wait(t, 2) // the webhook has nothing to do with it
	relay.Answer("MAIL", "")
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/sources/mail/try", nil); status >= 300 {
		t.Fatalf("try now: %d %v", status, answer)
	}
	apptest.Eventually(t, "the mails are sent", func() bool {
		sent := 0
		for _, m := range relay.Mails() {
			if slices.Equal(m.To, []string{"ops@quota.example"}) {
				sent++
			}
		}
		return sent == 2
	})
}
