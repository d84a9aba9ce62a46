package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/config"
	"market/internal/postgres"
	"market/internal/refusal"
	"market/internal/wire"
)

const (
	// KeysMax is how many keys of an account are good at once.
	KeysMax = 20
	// keyRowsMax is how many are remembered in all, with those that were revoked: the newest.
	keyRowsMax = 100

	keyNameMax      = 80
	draftBytesMax   = 16 << 10
	keyLastsAtLeast = time.Minute
)

// An APIKey is all that is ever shown of a key after it was made.
type APIKey struct {
	ID         uuid.UUID
	Name       string
	Hint       string // the end of the token
	Scopes     []Scope
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: it does not
	LastUsedAt time.Time // zero: never; at most a minute late
	RevokedAt  time.Time // zero: it was not
}

// A KeyDraft is a key that somebody asks for.
type KeyDraft struct {
	Name    string
	Scopes  []Scope
	Expires time.Time // zero: never
}

// ParseKeyDraft reads the body of a request for a key: {"name": "…", "scopes": ["…"], "expires_at": "…"}, the last one optional. The error is a refusal
// with every problem.
func ParseKeyDraft(body []byte) (KeyDraft, error) {
	root, problems, err := openBody(body, "name", "scopes", "expires_at")
	if err != nil {
		return KeyDraft{}, err
	}
	var d KeyDraft
	name := root.Members["name"]
	d.Name = strings.TrimSpace(name.Text)
	if name.Kind != wire.String || !isName(d.Name) {
		problems = append(problems, refusal.Field{Name: "/name", Message: fmt.Sprintf("must be a text of 1 to %d characters without control characters", keyNameMax)})
	}
	scopes := root.Members["scopes"]
	if scopes.Kind != wire.Array || len(scopes.Items) == 0 || len(scopes.Items) > len(Scopes()) {
		problems = append(problems, refusal.Field{Name: "/scopes", Message: "must be a list of one or more of " + scopeNames()})
	} else {
		for i, item := range scopes.Items {
			scope := Scope(item.Text)
			switch at := fmt.Sprintf("/scopes/%d", i); {
			case item.Kind != wire.String || !slices.Contains(Scopes(), scope) && scope != Scanner:
				problems = append(problems, refusal.Field{Name: at, Message: "must be one of " + scopeNames()})
			case slices.Contains(d.Scopes, scope):
				problems = append(problems, refusal.Field{Name: at, Message: "appears twice"})
			default:
				d.Scopes = append(d.Scopes, scope)
			}
		}
		if len(d.Scopes) > 1 && slices.Contains(d.Scopes, Scanner) {
			problems = append(problems, refusal.Field{Name: "/scopes", Message: "must have no other scope beside " + string(Scanner)})
		}
	}
	if root.Given("expires_at") {
		at := root.Members["expires_at"]
		expires, err := time.Parse(time.RFC3339, at.Text)
		if at.Kind != wire.String || err != nil || expires.Year() > 9999 || expires.Year() < 2000 {
			problems = append(problems, refusal.Field{Name: "/expires_at", Message: "must be a time such as 2027-01-31T12:00:00Z"})
		}
		d.Expires = expires.UTC().Truncate(time.Microsecond)
	}
	return d, refused(problems)
}

func isName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= keyNameMax && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

func scopeNames() string {
	var names []string
	for _, s := range append(Scopes(), Scanner) {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// openBody reads the one object of a body and reports members that it does not take.
func openBody(body []byte, takes ...string) (wire.Value, []refusal.Field, error) {
	if len(body) > draftBytesMax {
		return wire.Value{}, nil, refusal.New(call.InvalidRequest, "the body must not be longer than %d bytes", draftBytesMax)
	}
	root, err := wire.ParseObject(body)
	if err != nil {
		return wire.Value{}, nil, refusal.New(call.InvalidRequest, "the body must be one JSON object in which no member occurs twice")
	}
	var problems []refusal.Field
	for name := range root.Members {
		if !slices.Contains(takes, name) {
			problems = append(problems, refusal.Field{Name: "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name[:min(len(name), 60)]), Message: "is not known"})
		}
	}
	slices.SortFunc(problems, func(a, b refusal.Field) int { return strings.Compare(a.Name, b.Name) })
	return root, problems, nil
}

func refused(problems []refusal.Field) error {
	if len(problems) == 0 {
		return nil
	}
	no := refusal.New(call.InvalidRequest, "%s %s", problems[0].Name, problems[0].Message)
	if len(problems) > 1 {
		no.Detail = fmt.Sprintf("the request has %d members that can't be accepted", len(problems))
	}
	no.Fields = problems
	return no
}

const liveKeysSQL = `
SELECT count(*), coalesce($2::timestamptz > market_now() + $3::interval, true) FROM api_keys
 WHERE account_id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > market_now())`

const dropKeysSQL = `
DELETE FROM api_keys WHERE id IN
	(SELECT id FROM api_keys WHERE account_id = $1 AND (revoked_at IS NOT NULL OR expires_at <= market_now()) ORDER BY created_at DESC, id OFFSET $2)`

const newKeySQL = `
INSERT INTO api_keys (id, account_id, name, token_hash, hint, scopes, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING created_at`

// NewKey makes a key of an account. Its token is in this answer and in no other. More than KeysMax are a refusal with Conflict,
// and one for scanners is with Forbidden where the account is no admin's.
func (s Store) NewKey(ctx context.Context, tx pgx.Tx, account uuid.UUID, d KeyDraft) (APIKey, config.Secret, error) {
	if _, err := s.Lock(ctx, tx, account); err != nil {
		return APIKey{}, config.Secret{}, err
	}
	if err := forScanners(ctx, tx, account, d); err != nil {
		return APIKey{}, config.Secret{}, err
	}
	var live int
	var lasts bool
	if err := tx.QueryRow(ctx, liveKeysSQL, account, orNull(d.Expires), keyLastsAtLeast).Scan(&live, &lasts); err != nil {
		return APIKey{}, config.Secret{}, fmt.Errorf("count keys of account %s: %w", account, err)
	}
	switch {
	case !lasts:
		return APIKey{}, config.Secret{}, refused([]refusal.Field{{Name: "/expires_at", Message: "must be a minute from now or later"}})
	case live >= KeysMax:
		return APIKey{}, config.Secret{}, refusal.New(call.Conflict, "the account has %d keys, which is as many as it may have: revoke one first", live)
	}
	if _, err := tx.Exec(ctx, dropKeysSQL, account, keyRowsMax-KeysMax); err != nil {
		return APIKey{}, config.Secret{}, fmt.Errorf("forget keys of account %s: %w", account, err)
	}
	token := newToken(keyPrefix)
	text := token.Reveal()
	k := APIKey{ID: call.NewID(), Name: d.Name, Hint: text[len(text)-hintLength:], Scopes: d.Scopes, ExpiresAt: d.Expires}
	err := tx.QueryRow(ctx, newKeySQL, k.ID, account, k.Name, digestOf(text), k.Hint, k.Scopes, orNull(d.Expires)).Scan(&k.CreatedAt)
	if err != nil {
		return APIKey{}, config.Secret{}, fmt.Errorf("keep key of account %s: %w", account, err)
	}
	return k, token, nil
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

const keysSQL = `
SELECT id, name, hint, scopes, created_at, expires_at, last_used_at, revoked_at FROM api_keys
 WHERE account_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2`

// Keys returns the keys of an account, the newest first, with those that were revoked.
func (Store) Keys(ctx context.Context, db postgres.DB, account uuid.UUID) ([]APIKey, error) {
	rows, err := db.Query(ctx, keysSQL, account, keyRowsMax)
	if err != nil {
		return nil, fmt.Errorf("list keys of account %s: %w", account, err)
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k APIKey, err error) {
		var expires, used, revoked *time.Time
		err = row.Scan(&k.ID, &k.Name, &k.Hint, &k.Scopes, &k.CreatedAt, &expires, &used, &revoked)
		k.ExpiresAt, k.LastUsedAt, k.RevokedAt = orZero(expires), orZero(used), orZero(revoked)
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("list keys of account %s: %w", account, err)
	}
	return keys, nil
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// Of another account's keys it knows nothing.
const revokeKeySQL = `
UPDATE api_keys SET revoked_at = market_now() WHERE id = $1 AND account_id = $2 AND revoked_at IS NULL RETURNING name, hint`

// RevokeKey ends a key of an account for good, and returns what it was; a refusal with NotFound where the account has no such key that was not revoked.
func (Store) RevokeKey(ctx context.Context, db postgres.DB, account, id uuid.UUID) (APIKey, error) {
	k := APIKey{ID: id}
	err := db.QueryRow(ctx, revokeKeySQL, id, account).Scan(&k.Name, &k.Hint)
	if errors.Is(err, pgx.ErrNoRows) {
		return APIKey{}, refusal.New(call.NotFound, "the account has no such key, or it was revoked")
	}
	if err != nil {
		return APIKey{}, fmt.Errorf("revoke key %s: %w", id, err)
	}
	return k, nil
}

// usedEvery is how old the moment of a key's last use may get before it is written again.
const usedEvery = time.Minute

const ofKeySQL = `
WITH it AS (
	SELECT k.id, k.account_id, a.wallet, k.scopes, k.last_used_at FROM api_keys k JOIN accounts a ON a.id = k.account_id
	 WHERE k.token_hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > market_now())
), used AS (
	UPDATE api_keys k SET last_used_at = market_now() FROM it
	 WHERE k.id = it.id AND (it.last_used_at IS NULL OR it.last_used_at <= market_now() - $2::interval)
)
SELECT id, account_id, wallet, scopes FROM it`

// OfKey returns whose key a token is; false where it is none, was revoked or has run out.
func (Store) OfKey(ctx context.Context, db postgres.DB, token string) (Principal, bool, error) {
	if KindOf(token) != Key {
		return Principal{}, false, nil
	}
	p := Principal{Kind: Key}
	err := db.QueryRow(ctx, ofKeySQL, digestOf(token), usedEvery).Scan(&p.KeyID, &p.Account, walletOf(&p.Wallet), &p.Scopes)
	return found(p, err, "key")
}
