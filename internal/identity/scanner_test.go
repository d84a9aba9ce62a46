package identity_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"market/internal/call"
	"market/internal/identity"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
)

// A key of a scanner makes calls that move nothing, so an admin alone gets one, and it is one as long as its owner has the role.
func TestScanner_IsAnAdminsKeyUntilItEnds(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	now := pgtest.Freeze(t, d.db)
	key, wallet := newKey(t)
	account := d.entered(t, key).Account.ID
	draft := identity.KeyDraft{Name: "monitoring", Scopes: []identity.Scope{identity.Scanner}}
	if _, _, err := d.newKey(t, account, draft); !isRefused(err, call.Forbidden) {
		t.Fatalf("to somebody: %v, want forbidden", err)
	}
	role := func(change func() (bool, error)) {
		t.Helper()
		if changed, err := change(); err != nil || !changed {
			t.Fatalf("changed %v, %v", changed, err)
		}
	}
	grant := func() (bool, error) { return d.store.Grant(t.Context(), d.db, wallet, "a test") }
	role(grant)
	_, other, err := d.newKey(t, account, identity.KeyDraft{Name: "deploy", Scopes: identity.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	made, token, err := d.newKey(t, account, draft)
	if err != nil {
		t.Fatal(err)
	}
	draft.Expires = now.Add(time.Hour)
	_, short, err := d.newKey(t, account, draft)
	if err != nil {
		t.Fatal(err)
	}
	if p, ok, err := d.store.OfKey(t.Context(), d.db, token); err != nil || !ok || slices.ContainsFunc(identity.Scopes(), p.May) {
		t.Errorf("it is known %v and permits something of %v, %v", ok, p.Scopes, err)
	}
	board := identity.NewBoard()
	if board.Scanner(token, now) {
		t.Error("it is one before anything was read")
	}
	good := func(when string, at time.Time, want ...string) {
		t.Helper()
		if err := board.Load(t.Context(), d.db); err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{token, short, other, "", "mkk_", token + "A", token[:len(token)-1], "mkses_" + token[len("mkk_"):]} {
			if got := board.Scanner(token, at); got != slices.Contains(want, token) {
				t.Errorf("%s: %q is a scanner's: %v", when, token, got)
			}
		}
	}
	good("at first", now, token, short)
	good("just before one's time is over", draft.Expires.Add(-time.Microsecond), token, short)
	good("when it is over", draft.Expires, token)
	role(func() (bool, error) { return d.store.Revoke(t.Context(), d.db, wallet, "a test") })
	good("when its owner is no admin any more", now)
	role(grant)
	good("when it is one again", now, token, short)
	if _, err := d.store.RevokeKey(t.Context(), d.db, account, made.ID); err != nil {
		t.Fatal(err)
	}
	good("when it was revoked", now, short)
}

func isRefused(err error, reason call.Reason) bool {
	no, ok := errors.AsType[*refusal.Error](err)
	return ok && no.Reason == reason
}

func TestParseKeyDraft_AScannersKeyHasNoOtherScope(t *testing.T) {
	t.Parallel()
	for body, taken := range map[string]bool{
		`{"name":"m","scopes":["scanner"]}`:                  true,
		`{"name":"m","scopes":["scanner","services:read"]}`:  false,
		`{"name":"m","scopes":["services:write","scanner"]}`: false,
		`{"name":"m","scopes":["scanner","scanner"]}`:        false,
		`{"name":"m","scopes":["Scanner"]}`:                  false,
	} {
		if d, err := identity.ParseKeyDraft([]byte(body)); (err == nil) != taken || err != nil && !isRefused(err, call.InvalidRequest) {
			t.Errorf("%s: %v, %v", body, d, err)
		}
	}
}
