package catalog

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/postgres"
	"market/internal/refusal"
)

const emailLenMax = 254

// What is left out of the local part is what mail programs read in more than one way.
var localForm = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*$`)

// Notices are where the provider of a service wants to be told what becomes of it. They are for the owner of the listing and for admins.
type Notices struct {
	Email   string // one address without a name; empty: none
	Webhook string // empty: none
}

// noticesMember is where they stand in a listing.
const noticesMember = "notices"

// notices reads where a provider wants to be told. In a patch, null takes one of them away.
func (f *form) notices(name string, rules Rules) (n Notices) {
	v, ok := f.member(name)
	if !ok {
		return Notices{}
	}
	g, ok := newForm(f.pointer(name), v, f.problems)
	if !ok {
		return Notices{}
	}
	if text := g.text("email", 0, emailLenMax); text != "" {
		if n.Email, ok = parseEmail(text, rules); !ok {
			g.wrong("email", "must be one mail address without a name, such as ops@weather.example")
		}
	}
	if text := g.text("webhook", 0, baseURLLenMax); text != "" {
		stored, err := ParseBaseURL(text, rules)
		if err != nil {
			g.wrong("webhook", "%s", err)
		}
		if strings.HasSuffix(text, "/") { // it may be what makes the path
			stored += "/"
		}
		n.Webhook = stored
	}
	g.end()
	return n
}

// parseEmail returns an address as it is stored, with its host in lower case. Whether somebody reads what is sent there only they know.
func parseEmail(text string, rules Rules) (string, bool) {
	at := strings.LastIndexByte(text, '@')
	if at < 1 || at > 64 || !localForm.MatchString(text[:at]) {
		return "", false
	}
	host := strings.ToLower(text[at+1:])
	labels := strings.Split(host, ".")
	if !hostForm.MatchString(host) || numericForm.MatchString(labels[len(labels)-1]) || (len(labels) < 2 && !rules.AllowPrivate) {
		return "", false
	}
	stored := text[:at+1] + host
	parsed, err := mail.ParseAddress(stored)
	return stored, err == nil && parsed.Name == "" && parsed.Address == stored
}

func noticesDocument(n Notices) map[string]any {
	d := map[string]any{}
	if n.Email != "" {
		d["email"] = n.Email
	}
	if n.Webhook != "" {
		d["webhook"] = n.Webhook
	}
	return d
}

const noticesSQL = `
SELECT coalesce(notice_email, ''), coalesce(notice_webhook, '') FROM services WHERE id = $1`

// Notices returns where the provider of a service wants to be told.
func (Store) Notices(ctx context.Context, db postgres.DB, serviceID uuid.UUID) (n Notices, err error) {
	err = db.QueryRow(ctx, noticesSQL, serviceID).Scan(&n.Email, &n.Webhook)
	if errors.Is(err, pgx.ErrNoRows) {
		return Notices{}, refusal.New(call.NotFound, "no such service")
	}
	if err != nil {
		return Notices{}, fmt.Errorf("read notices of service %s: %w", serviceID, err)
	}
	return n, nil
}
