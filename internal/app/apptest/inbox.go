package apptest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"market/internal/notify/notifytest"
)

// An Inbox is an operator who is told by mail, and by a webhook where mail takes nothing.
type Inbox struct {
	Mail *notifytest.SMTP
	Hook *notifytest.Receiver
	Env  []string // of a marketplace that tells this operator
}

// NewInbox starts the servers of one.
func NewInbox(t testing.TB) *Inbox {
	t.Helper()
	in := &Inbox{Mail: notifytest.NewSMTP(t, notifytest.StartTLS), Hook: notifytest.NewReceiver(t, notifytest.Secret)}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(notifytest.Secret), 0o600); err != nil {
		t.Fatal(err)
	}
	in.Env = []string{
		fmt.Sprintf("MARKET_SMTP_URL=smtp://%s:%s@%s?ca_file=%s", notifytest.User, notifytest.Password, in.Mail.Address(), url.QueryEscape(in.Mail.CAFile(t))),
		"MARKET_OPERATOR_EMAIL=operator@example.com", "MARKET_OPERATOR_WEBHOOK=" + in.Hook.URL(), "MARKET_OPERATOR_WEBHOOK_SECRET_FILE=" + secret,
	}
	return in
}
