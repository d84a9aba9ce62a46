package notify_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"market/internal/notify"
	"market/internal/notify/notifytest"
)

func message() notify.Message {
	return notify.Message{ID: "msg_7", Type: "notice.raised", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Subject: "[market] something stopped",
		Text: "It is so.\nLook.\n", Data: []byte(`{"kind":"outage"}`)}
}

func mailerFor(t *testing.T, s *notifytest.SMTP, change func(*notify.MailOptions)) *notify.Mailer {
	t.Helper()
	o := notify.MailOptions{Host: "127.0.0.1", Port: s.Port(), TLS: notify.STARTTLS, User: notifytest.User, Password: notifytest.Password,
		From: "market@example.com", To: []string{"operator@example.com", "second@example.com"}}
	change(&o)
	m, err := notify.NewMailer(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMailer_Send_ArrivesOverTLSWithAStableID(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		offered notifytest.Protection
		used    notify.TLS
	}{
		"TLS after a beginning in the clear": {notifytest.StartTLS, notify.STARTTLS},
		"TLS from the first byte":            {notifytest.ImplicitTLS, notify.Implicit},
	} {
		s := notifytest.NewSMTP(t, tt.offered)
		m := mailerFor(t, s, func(o *notify.MailOptions) { o.TLS, o.Roots = tt.used, s.Roots() })
		for range 2 {
			if err := m.Send(t.Context(), message()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		got := s.Mails()
		if len(got) != 2 {
			t.Fatalf("%s: %d mails, want 2", name, len(got))
		}
		first, id := got[0], got[0].Header.Get("Message-ID")
		if id != "<msg_7@example.com>" || got[1].Header.Get("Message-ID") != id {
			t.Errorf("%s: message ids %q and %q", name, id, got[1].Header.Get("Message-ID"))
		}
		if !first.TLS || first.From != "market@example.com" || strings.Join(first.To, " ") != "operator@example.com second@example.com" {
			t.Errorf("%s: from %s to %v over TLS %v", name, first.From, first.To, first.TLS)
		}
		if first.Body != "It is so.\nLook.\n" || first.Header.Get("Subject") != "[market] something stopped" || !strings.HasPrefix(first.Header.Get("Content-Type"), "text/plain") {
			t.Errorf("%s: %v %q", name, first.Header, first.Body)
		}
	}
}

func TestMailer_Send_ToThoseWhomTheMessageNames(t *testing.T) {
	t.Parallel()
	s := notifytest.NewSMTP(t, notifytest.StartTLS)
	m := mailerFor(t, s, func(o *notify.MailOptions) { o.Roots = s.Roots() })
	to := message()
	to.To = []string{"provider@example.net"}
	if err := m.Send(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if got := s.Mails(); len(got) != 1 || strings.Join(got[0].To, " ") != "provider@example.net" {
		t.Errorf("mails %+v", got)
	}
}

// Words of others are in subjects: none of them begins a header of its own, or ends the mail.
func TestMailer_Send_NoLineOfASubjectOrTextIsAHeaderOrACommand(t *testing.T) {
	t.Parallel()
	s := notifytest.NewSMTP(t, notifytest.StartTLS)
	m := mailerFor(t, s, func(o *notify.MailOptions) { o.Roots = s.Roots() })
	hostile := message()
	hostile.Subject = "stopped\r\nBcc: victim@example.com\r\n\r\nbody" + strings.Repeat("x", 2000)
	hostile.ID = "id\r\nX-Evil: 1"
	hostile.Text = "one\r\n.\r\nMAIL FROM:<evil@example.com>\n.\ntwo\n"
	if err := m.Send(t.Context(), hostile); err != nil {
		t.Fatal(err)
	}
	got := s.Mails()
	if len(got) != 1 || len(got[0].To) != 2 || got[0].Header.Get("Bcc") != "" || got[0].Header.Get("X-Evil") != "" {
		t.Fatalf("mails %+v", got)
	}
	if subject := got[0].Header.Get("Subject"); len(subject) > 400 || strings.ContainsAny(subject, "\r\n") {
		t.Errorf("subject %q", subject)
	}
	if !strings.Contains(got[0].Body, "evil@example.com") || !strings.HasSuffix(got[0].Body, "two\n") {
		t.Errorf("body %q", got[0].Body)
	}
	to := message()
	to.To = []string{"victim@example.com>\r\nRCPT TO:<other@example.com"}
	if err := m.Send(t.Context(), to); err == nil {
		t.Error("an address with a line end was taken")
	}
}

func TestMailer_Send_TellsNobodyThePasswordWhomItDoesNotKnow(t *testing.T) {
	t.Parallel()
	unknown := notifytest.NewSMTP(t, notifytest.StartTLS)
	plain := notifytest.NewSMTP(t, notifytest.NoTLS)
	wrong := notifytest.NewSMTP(t, notifytest.StartTLS)
	echoes := notifytest.NewSMTP(t, notifytest.StartTLS)
	echoes.Answer("AUTH", "535 5.7.8 "+notifytest.Password+" is wrong")
	for name, tt := range map[string]struct {
		server *notifytest.SMTP
		change func(*notify.MailOptions)
		code   int
		says   string
	}{
		"a certificate of somebody unknown":  {unknown, func(*notify.MailOptions) {}, 0, "certificate"},
		"no TLS where it is wanted":          {plain, func(*notify.MailOptions) {}, 0, "STARTTLS"},
		"a wrong password":                   {wrong, func(o *notify.MailOptions) { o.Roots, o.Password = wrong.Roots(), "a-wrong-password" }, 535, "password"},
		"a server that repeats the password": {echoes, func(o *notify.MailOptions) { o.Roots = echoes.Roots() }, 535, ""},
	} {
		err := mailerFor(t, tt.server, tt.change).Send(t.Context(), message())
		f, ok := errors.AsType[*notify.Failure](err)
		if !ok || f.Code != tt.code || !strings.Contains(f.Text, tt.says) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(err.Error(), "a-wrong-password") || strings.Contains(err.Error(), notifytest.Password) {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
		if n := len(tt.server.Mails()); n != 0 {
			t.Errorf("%s: %d mails", name, n)
		}
	}
}

func TestMailer_Send_SaysHowAMailWasRefused(t *testing.T) {
	t.Parallel()
	s := notifytest.NewSMTP(t, notifytest.StartTLS)
	m := mailerFor(t, s, func(o *notify.MailOptions) { o.Roots = s.Roots() })
	for command, line := range map[string]string{"MAIL": "421 too many", "RCPT": "450 4.2.1 later", "DATA": "452 full", ".": "554 5.7.1 quota exceeded"} {
		s.Answer(command, line)
		err := m.Send(t.Context(), message())
		f, ok := errors.AsType[*notify.Failure](err)
		if code := line[:3]; !ok || !strings.HasPrefix(err.Error(), "answered SMTP "+code) || !strings.Contains(f.Text, line[4:]) {
			t.Errorf("%s answered %q: %v", command, line, err)
		}
		s.Answer(command, "")
	}
	// What goes wrong after the mail was taken is no failure: it would be sent again.
	s.Answer("RSET", "BREAK")
	if err := m.Send(t.Context(), message()); err != nil || len(s.Mails()) != 1 {
		t.Errorf("taken, and then broken: %v, %d mails", err, len(s.Mails()))
	}
	s.Answer("MAIL", "BREAK")
	if err := m.Send(t.Context(), message()); err == nil {
		t.Error("a broken connection passed for a success")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Send(ended, message()); err == nil {
		t.Error("a mail was sent for nobody")
	}
}

func TestWebhook_Send_IsSignedWithEverySecret(t *testing.T) {
	t.Parallel()
	const next = "whsec_YW5vdGhlci1zZWNyZXQtb2YtYS10ZXN0LWl0LWlz"
	for _, knows := range []string{notifytest.Secret, next} {
		r := notifytest.NewReceiver(t, knows)
		w, err := notify.NewWebhook(r.URL(), []string{notifytest.Secret, next}, r.Client())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Send(t.Context(), message()); err != nil {
			t.Fatal(err)
		}
		got := r.Deliveries()
		if len(got) != 1 || got[0].ID != "msg_7" || got[0].Type != "notice.raised" || got[0].Timestamp != "2026-01-02T03:04:05Z" || string(got[0].Data) != `{"kind":"outage"}` {
			t.Errorf("deliveries %+v", got)
		}
	}
}

func TestWebhook_Send_OnlyA2xxIsTaken(t *testing.T) {
	t.Parallel()
	elsewhere := notifytest.NewReceiver(t, notifytest.Secret)
	r := notifytest.NewReceiver(t, notifytest.Secret)
	w, err := notify.NewWebhook(r.URL(), []string{notifytest.Secret}, r.Client())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		status int
		header http.Header
		wait   time.Duration
	}{
		{http.StatusFound, http.Header{"Location": {elsewhere.URL()}}, 0},
		{http.StatusTooManyRequests, http.Header{"Retry-After": {"90"}}, 90 * time.Second},
		{http.StatusServiceUnavailable, http.Header{"Retry-After": {"999999999"}}, 24 * time.Hour},
		{http.StatusInternalServerError, http.Header{"Retry-After": {"-5"}}, 0},
	} {
		r.Answer(tt.status, tt.header)
		f, ok := errors.AsType[*notify.Failure](w.Send(t.Context(), message()))
		if !ok || f.Status != tt.status || f.RetryAfter != tt.wait {
			t.Errorf("HTTP %d: %+v, want to wait %v", tt.status, f, tt.wait)
		}
	}
	if elsewhere.Asked() != 0 {
		t.Error("a redirect was followed")
	}
	r.Answer(http.StatusAccepted, nil)
	if err := w.Send(t.Context(), message()); err != nil {
		t.Errorf("HTTP 202: %v", err)
	}
}

func TestWebhook_Send_AnErrorHasNoAddressAndNoMoreThanALine(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	w, err := notify.NewWebhook(gone.URL+"/hidden-path", []string{notifytest.Secret}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Send(t.Context(), message()); err == nil || strings.Contains(err.Error(), "hidden-path") {
		t.Errorf("nobody listens: %v", err)
	}
	loud := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		for range 1 << 12 {
			if _, err := w.Write([]byte("no\x1b[2J\r\n" + strings.Repeat("x", 100))); err != nil {
				return
			}
		}
	}))
	defer loud.Close()
	if w, err = notify.NewWebhook(loud.URL, []string{notifytest.Secret}, loud.Client()); err != nil {
		t.Fatal(err)
	}
	err = w.Send(t.Context(), message())
	if err == nil || len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\r\n\x1b") {
		t.Errorf("a long answer: %d bytes, %q", len(err.Error()), err)
	}
}

func TestOutage_Text_IsOneLineInThreeParts(t *testing.T) {
	t.Parallel()
	o := notify.Outage{What: "mail is out\r\nBcc: x", Effect: "notices go by the webhook", Look: "https://example.com\n/admin/notices\n"}
	if got, want := o.Text(), "mail is out Bcc: x. Notices go by the webhook. Look at https://example.com, and at /admin/notices"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
