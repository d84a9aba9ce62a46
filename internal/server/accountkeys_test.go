package server

import (
	"net/http"
	"strings"
	"testing"
)

// Who made a key that was stolen, and when, is seen as well as who ended it. The token is seen by nobody.
func TestKeys_OfWhoSellsAreMadeAndRevokedInTheAudit(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	own, idle := h.entered(t, newWallet(t)), h.entered(t, newWallet(t))
	h.sell(t, "weather", own.Account.ID)
	const draft = `{"name": "deploy", "scopes": ["services:write"]}`
	if got := h.ask(http.MethodPost, "/api/v1/provider/keys", idle.Token.Reveal(), "192.0.2.7", draft); got.Code != http.StatusCreated {
		t.Fatalf("%d %s", got.Code, got.Body)
	}
	made := h.ask(http.MethodPost, "/api/v1/provider/keys", own.Token.Reveal(), "192.0.2.7", draft)
	if made.Code != http.StatusCreated {
		t.Fatalf("%d %s", made.Code, made.Body)
	}
	var action, actor, by, subject, after string
	const all = `SELECT action, actor, by, subject, after::text FROM audit` // of whoever sells nothing, nothing is kept: there is one row
	if err := h.db.QueryRow(t.Context(), all).Scan(&action, &actor, &by, &subject, &after); err != nil {
		t.Fatal(err)
	}
	if action != "key_made" || actor != "owner" || by != "wallet "+own.Account.Wallet.Hex() || subject != own.Account.ID.String() || !strings.Contains(after, `"deploy"`) ||
		!strings.Contains(after, `"services:write"`) || strings.Contains(after, "mkk_") {
		t.Errorf("%s by %s %s of %s: %s", action, actor, by, subject, after)
	}
	var rows int
	if err := h.db.QueryRow(t.Context(), `SELECT count(*) FROM audit`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d entries, %v", rows, err)
	}
}
