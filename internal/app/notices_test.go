package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"market/internal/app/apptest"
	"market/internal/notify"
	"market/internal/notify/notifytest"
)

// raise tells of a trouble as whoever sees it does.
func raise(t *testing.T, w *apptest.World, subject string) {
	t.Helper()
	o := notify.Outage{What: "the thing " + subject + " stopped", Effect: "nobody can buy it", Look: "/admin/services"}
	if _, err := (notify.Store{}).Raise(t.Context(), w.DB, notify.ServiceHeld, subject, o); err != nil {
		t.Fatal(err)
	}
}

func TestNotices_ReachTheOperatorOnceHoweverManyReplicasThereAre(t *testing.T) {
	t.Parallel()
	in := apptest.NewInbox(t)
	w := apptest.Start(t, in.Env...)
	w.Replica(t)
	raise(t, w, "first")
	apptest.Eventually(t, "the mail is there", func() bool { return len(in.Mail.Mails()) > 0 })
	if m := in.Mail.Mails()[0]; !m.TLS || m.To[0] != "operator@example.com" || m.Header.Get("Subject") != "[market] The thing first stopped" || !strings.Contains(m.Body, w.URL+"/admin/services") {
		t.Errorf("mail %+v", m)
	}

	// Mail takes nothing: the webhook does.
	in.Mail.Answer("MAIL", "451 4.3.0 not now")
	raise(t, w, "second")
	apptest.Eventually(t, "the webhook is called", func() bool { return len(in.Hook.Deliveries()) > 0 })
	in.Mail.Answer("MAIL", "")

	if _, err := (notify.Store{}).Settle(t.Context(), w.DB, notify.ServiceHeld, "first"); err != nil {
		t.Fatal(err)
	}
	w.Shift(t, notify.CalmFor)
	apptest.Eventually(t, "the recovery is there", func() bool { return len(in.Mail.Mails()) > 1 })
	if m := in.Mail.Mails(); len(m) != 2 || m[1].Header.Get("Subject") != "[market] over: The thing first stopped" {
		t.Errorf("%d mails, the last %v", len(m), m[len(m)-1].Header)
	}
	if n := len(in.Hook.Deliveries()); n != 1 {
		t.Errorf("%d webhooks, want 1", n)
	}

	var items []any
	apptest.Eventually(t, "what was sent is kept", func() bool {
		_, answer := w.Admin(t, http.MethodGet, "/api/v1/admin/notices", nil)
		items, _ = answer["items"].([]any)
		first := fmt.Sprint(items[len(items)-1])
		return strings.Contains(first, "state:settled") && strings.Count(first, "channel:mail") == 2
	})
	second := fmt.Sprint(items[0])
	if !strings.Contains(second, "channel:webhook") || !strings.Contains(second, "state:open") {
		t.Errorf("the second notice: %s", second)
	}
}

func TestNotices_ATestSaysWhichChannelTookIt(t *testing.T) {
	t.Parallel()
	in := apptest.NewInbox(t)
	w := apptest.Start(t, in.Env...)
	for _, tt := range []struct {
		body any
		want string
	}{{nil, "channel:mail failed:[]"}, {map[string]any{"channel": "webhook"}, "channel:webhook failed:[]"}} {
		if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/notices/test", tt.body); status != http.StatusOK || !strings.Contains(fmt.Sprint(answer), tt.want) {
			t.Errorf("test %v: %d %v", tt.body, status, answer)
		}
	}
	if status, answer := w.Admin(t, http.MethodPost, "/api/v1/admin/notices/test", map[string]any{"channel": "pigeon"}); status != http.StatusConflict {
		t.Errorf("a channel that there is not: %d %v", status, answer)
	}
	p := signInAtDesk(t, w)
	answer, _ := p.post(t, "/admin/notices", url.Values{})
	if answer.StatusCode != http.StatusSeeOther || !strings.HasPrefix(answer.Header.Get("Location"), "/admin/notices#notice-") {
		t.Errorf("the button: %d to %q", answer.StatusCode, answer.Header.Get("Location"))
	}
	_, page := p.get(t, "/admin/notices?limit=2")
	for _, want := range []string{"You are told by mail, and where that does not take a notice by the webhook.", "This is a test of the notices to the operator", "by mail at ", "by the webhook at ", "Next page"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "hidden-path") || strings.Contains(page, notifytest.Password) {
		t.Error("the page has a secret")
	}
	if n, m := len(in.Mail.Mails()), len(in.Hook.Deliveries()); n != 2 || m != 1 {
		t.Errorf("%d mails and %d webhooks, want 2 and 1", n, m)
	}
}

// A mail relay whose quota is used up is a source that is out: the webhook tells of it, and mail is asked again when its window has ended.
func TestNotices_MailThatIsOutIsToldByTheWebhook(t *testing.T) {
	t.Parallel()
	in := apptest.NewInbox(t)
	w := apptest.Start(t, in.Env...)
	in.Mail.Answer("MAIL", "452 4.5.3 daily quota exceeded")
	raise(t, w, "first")
	apptest.Eventually(t, "both are told by the webhook", func() bool { return len(in.Hook.Deliveries()) == 2 })
	told := fmt.Sprintf("%s %s", in.Hook.Deliveries()[0].Data, in.Hook.Deliveries()[1].Data)
	if !strings.Contains(told, `"kind":"source_out","subject":"mail"`) || !strings.Contains(told, `"subject":"first"`) {
		t.Errorf("the webhook was told %s", told)
	}
	sessions := in.Mail.Sessions()
	raise(t, w, "second")
	apptest.Eventually(t, "the next one goes by the webhook", func() bool { return len(in.Hook.Deliveries()) == 3 })
	if in.Mail.Sessions() != sessions {
		t.Error("mail was asked again within its window")
	}
	in.Mail.Answer("MAIL", "")
	w.Shift(t, time.Hour)
	raise(t, w, "third")
	apptest.Eventually(t, "mail is asked after its window", func() bool { return len(in.Mail.Mails()) == 1 })
}
