package identity_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/identity"
	"market/internal/postgres/pgtest"
)

func (d *door) newKey(t *testing.T, of uuid.UUID, draft identity.KeyDraft) (key identity.APIKey, token string, err error) {
	t.Helper()
	err = pgx.BeginFunc(t.Context(), d.db, func(tx pgx.Tx) error {
		made, secret, err := d.store.NewKey(t.Context(), tx, of, draft)
		key, token = made, secret.Reveal()
		return err
	})
	return key, token, err
}

var anyKey = identity.KeyDraft{Name: "deploy", Scopes: []identity.Scope{identity.ServicesWrite}}

func TestSession_EndsAtItsTimeAndWhenItIsEnded(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	pgtest.Freeze(t, d.db)
	key, _ := newKey(t)
	ended, lasting := d.entered(t, key).Token.Reveal(), d.entered(t, key).Token.Reveal()
	good := func(token string) bool {
		t.Helper()
		_, ok, err := d.store.OfSession(t.Context(), d.db, token)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	for _, want := range []bool{true, false} {
		if was, err := d.store.EndSession(t.Context(), d.db, ended); was != want || err != nil {
			t.Errorf("it was one: %v, %v, want %v", was, err, want)
		}
	}
	if good(ended) || !good(lasting) {
		t.Error("the wrong session ended")
	}
	pgtest.Shift(t, d.db, identity.SessionTime-time.Microsecond)
	if !good(lasting) {
		t.Error("it ended before its time")
	}
	pgtest.Shift(t, d.db, time.Microsecond)
	if good(lasting) {
		t.Error("it is good after its time")
	}
	for _, none := range []string{"", "mkses_", lasting + "A", "mkk_" + lasting[len("mkses_"):], "mkses_" + lasting[len("mkses_"):len(lasting)-1]} {
		if good(none) {
			t.Errorf("%q is a session", none)
		}
	}
}

func TestKey_IsGoodUntilItIsRevokedOrItsTimeIsOver(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	now := pgtest.Freeze(t, d.db)
	wallet, _ := newKey(t)
	stranger, _ := newKey(t)
	own, other := d.entered(t, wallet).Account, d.entered(t, stranger).Account
	lasting, token, err := d.newKey(t, own.ID, anyKey)
	if err != nil {
		t.Fatal(err)
	}
	short := anyKey
	short.Expires = now.Add(time.Hour)
	_, passing, err := d.newKey(t, own.ID, short)
	if err != nil {
		t.Fatal(err)
	}
	good := func(token string) bool {
		t.Helper()
		p, ok, err := d.store.OfKey(t.Context(), d.db, token)
		if err != nil {
			t.Fatal(err)
		}
		if ok && (p.Account != own.ID || p.Admin || !p.May(identity.ServicesWrite) || p.May(identity.ServicesRead) || p.May("")) {
			t.Errorf("%+v", p)
		}
		return ok
	}
	if !good(token) || !good(passing) {
		t.Error("a new key is not good")
	}
	pgtest.Shift(t, d.db, time.Hour)
	if good(passing) || !good(token) {
		t.Error("the wrong key ran out")
	}
	if _, err := d.store.RevokeKey(t.Context(), d.db, other.ID, lasting.ID); reasonOf(err) != call.NotFound || !good(token) {
		t.Errorf("another account revoked it: %v", err)
	}
	if _, err := d.store.RevokeKey(t.Context(), d.db, own.ID, lasting.ID); err != nil || good(token) {
		t.Errorf("it is good after it was revoked, %v", err)
	}
	keys, err := d.store.Keys(t.Context(), d.db, own.ID)
	if err != nil || len(keys) != 2 || keys[1].RevokedAt.IsZero() || keys[1].LastUsedAt.IsZero() || token[len(token)-4:] != keys[1].Hint {
		t.Errorf("%+v, %v", keys, err)
	}
	if keys, err := d.store.Keys(t.Context(), d.db, other.ID); err != nil || len(keys) != 0 {
		t.Errorf("another account sees %+v, %v", keys, err)
	}
	short.Expires = now
	if _, _, err := d.newKey(t, own.ID, short); reasonOf(err) != call.InvalidRequest {
		t.Errorf("a key that is over when it is made: %v", err)
	}
}

func TestNewKey_OfManyAtOnceTwentyAreGoodAndOldOnesAreForgotten(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	wallet, _ := newKey(t)
	own := d.entered(t, wallet).Account
	var wg sync.WaitGroup
	made := make([]error, identity.KeysMax+10)
	for i := range made {
		wg.Go(func() { _, _, made[i] = d.newKey(t, own.ID, anyKey) })
	}
	wg.Wait()
	refused := 0
	for _, err := range made {
		if reasonOf(err) == call.Conflict {
			refused++
		} else if err != nil {
			t.Error(err)
		}
	}
	if refused != 10 {
		t.Errorf("%d were refused, want 10", refused)
	}
	for range 120 {
		keys, err := d.store.Keys(t.Context(), d.db, own.ID)
		if err != nil {
			t.Fatal(err)
		}
		live := slices.IndexFunc(keys, func(k identity.APIKey) bool { return k.RevokedAt.IsZero() })
		if _, err := d.store.RevokeKey(t.Context(), d.db, own.ID, keys[live].ID); err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.newKey(t, own.ID, anyKey); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.count(t, "api_keys"); n > 101 {
		t.Errorf("%d keys are remembered", n)
	}
}

// B148: the role is read with each request, so it is gone with the next one, and nothing that was handed out before keeps it.
func TestAdmin_IsOneWhileItsRowSaysSo(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	key, wallet := newKey(t)
	token := d.entered(t, key).Token.Reveal()
	is := func() bool {
		t.Helper()
		p, ok, err := d.store.OfSession(t.Context(), d.db, token)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if row := d.hasRole(t, wallet); row != p.Admin {
			t.Fatalf("%v by the session, %v by the row", p.Admin, row)
		}
		return p.Admin
	}
	if is() {
		t.Error("everybody is an admin")
	}
	for _, step := range []struct {
		do   func() (bool, error)
		did  bool
		then bool
	}{
		{func() (bool, error) { return d.store.Grant(t.Context(), d.db, wallet, "admin token") }, true, true},
		{func() (bool, error) { return d.store.Grant(t.Context(), d.db, wallet, "admin token") }, false, true},
		{func() (bool, error) { return d.store.Revoke(t.Context(), d.db, wallet, "admin token") }, true, false},
		{func() (bool, error) { return d.store.Revoke(t.Context(), d.db, wallet, "admin token") }, false, false},
		{func() (bool, error) { return d.store.Grant(t.Context(), d.db, wallet, "wallet 0x1") }, true, true},
	} {
		if did, err := step.do(); err != nil || did != step.did || is() != step.then {
			t.Errorf("did %v, %v, and it is an admin: %v; want %+v", did, err, is(), step)
		}
	}
	admins, err := d.store.Admins(t.Context(), d.db)
	if err != nil || len(admins) != 1 || admins[0].Wallet != wallet || admins[0].GrantedBy != "wallet 0x1" || !admins[0].RevokedAt.IsZero() {
		t.Errorf("%+v, %v", admins, err)
	}
}

func TestApply_TheConfigurationGrantsWhatNobodyHasTakenAway(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	_, a := newKey(t)
	_, b := newKey(t)
	_, c := newKey(t)
	apply := func(listed ...common.Address) (out identity.Applied) {
		t.Helper()
		if err := pgx.BeginFunc(t.Context(), d.db, func(tx pgx.Tx) (err error) {
			out, err = d.store.Apply(t.Context(), tx, listed)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	check := func(when string, out identity.Applied, granted, revoked, withheld []common.Address, admins ...common.Address) {
		t.Helper()
		byAddress := func(x, y common.Address) int { return x.Cmp(y) }
		for _, pair := range [][2][]common.Address{{out.Granted, granted}, {out.Revoked, revoked}, {out.Withheld, withheld}} {
			slices.SortFunc(pair[0], byAddress)
			slices.SortFunc(pair[1], byAddress)
			if !slices.Equal(pair[0], pair[1]) {
				t.Errorf("%s: %+v", when, out)
			}
		}
		for _, w := range []common.Address{a, b, c} {
			if is := d.hasRole(t, w); is != slices.Contains(admins, w) {
				t.Errorf("%s: %s is an admin: %v", when, w, is)
			}
		}
	}
	of := func(w ...common.Address) []common.Address { return w }
	check("at first", apply(a, b), of(a, b), nil, nil, a, b)
	check("again", apply(a, b), nil, nil, nil, a, b)
	check("one is not listed any more", apply(a), nil, of(b), nil, a)
	check("it is listed again", apply(a, b), of(b), nil, nil, a, b)
	if _, err := d.store.Revoke(t.Context(), d.db, b, "admin token"); err != nil {
		t.Fatal(err)
	}
	check("an admin has demoted it", apply(a, b), nil, nil, of(b), a)
	if _, err := d.store.Grant(t.Context(), d.db, c, "admin token"); err != nil {
		t.Fatal(err)
	}
	check("one that an admin has made needs no listing", apply(a), nil, nil, nil, a, c)
	check("nobody is listed", apply(), nil, of(a), nil, c)
}

func TestSaw_RemembersTheLatestAddressesAndWritesOnceAnHour(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	pgtest.Freeze(t, d.db)
	key, _ := newKey(t)
	own := d.entered(t, key).Account
	for i := range identity.AddressesMax + 20 {
		pgtest.Shift(t, d.db, time.Second)
		if err := d.store.Saw(t.Context(), d.db, own.ID, netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.count(t, "account_addresses"); n != identity.AddressesMax {
		t.Errorf("%d addresses, want %d", n, identity.AddressesMax)
	}
	seen := func() (at time.Time) {
		t.Helper()
		if err := d.db.QueryRow(t.Context(), `SELECT max(seen_at) FROM account_addresses`).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	last, before := netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", identity.AddressesMax+20)), seen()
	for after, moved := range map[time.Duration]bool{59 * time.Minute: false} {
		pgtest.Shift(t, d.db, after)
		if err := d.store.Saw(t.Context(), d.db, own.ID, last); err != nil || !seen().Equal(before) != moved {
			t.Errorf("after %v it was written: %v, %v", after, !moved, err)
		}
	}
	pgtest.Shift(t, d.db, time.Minute)
	if err := d.store.Saw(t.Context(), d.db, own.ID, last); err != nil || seen().Equal(before) {
		t.Errorf("after an hour it was not written, %v", err)
	}
	if err := d.store.Saw(t.Context(), d.db, own.ID, netip.Addr{}); err != nil {
		t.Error(err)
	}
}

func TestBoard_HoldsWhoOwnsServicesAndNobodyElse(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	pgtest.Freeze(t, d.db)
	key, wallet := newKey(t)
	idle, _ := newKey(t)
	own, other := d.entered(t, key).Account, d.entered(t, idle).Account
	if _, err := d.db.Exec(t.Context(), `INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses, owner_id, state_cause, state_actor, state_by)
		VALUES ($1, 'weather', 'Weather', 'https://api.example', 'GET', '/', '200', $2, 'created', 'owner', 'wallet')`, call.NewID(), own.ID); err != nil {
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), d.db, func(tx pgx.Tx) error {
		before, err := d.store.SetPlan(t.Context(), tx, own.ID, "pro")
		if before != "" {
			t.Errorf("the plan before was %q", before)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	board := identity.NewBoard()
	load := func() {
		t.Helper()
		if err := board.Load(t.Context(), d.db); err != nil {
			t.Fatal(err)
		}
	}
	load()
	got, ok := board.Owner(own.ID)
	if !ok || got.Wallet != wallet || got.Plan != "pro" || !slices.Equal(got.Addresses, []netip.Addr{home}) {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, none := range []uuid.UUID{{}, other.ID, call.NewID()} {
		if got, ok := board.Owner(none); ok {
			t.Errorf("%s owns: %+v", none, got)
		}
	}
	pgtest.Shift(t, d.db, identity.AddressesKept)
	load()
	if got, _ := board.Owner(own.ID); len(got.Addresses) != 0 {
		t.Errorf("after 30 days it remembers %v", got.Addresses)
	}
}

func TestDeleteExpired_ForgetsWhatIsOfNoUseAndKeepsWhoHasSomething(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	pgtest.Freeze(t, d.db)
	visitor, _ := newKey(t)
	holder, _ := newKey(t)
	d.entered(t, visitor)
	own := d.entered(t, holder).Account
	if _, _, err := d.newKey(t, own.ID, anyKey); err != nil {
		t.Fatal(err)
	}
	tidy := func() {
		t.Helper()
		if _, err := d.store.DeleteExpired(t.Context(), d.db, 100); err != nil {
			t.Fatal(err)
		}
	}
	tidy()
	if a, s, n := d.count(t, "accounts"), d.count(t, "sessions"), d.count(t, "sign_ins"); a != 2 || s != 2 || n != 2 {
		t.Errorf("at once %d accounts, %d sessions, %d sign-ins are left", a, s, n)
	}
	pgtest.Shift(t, d.db, time.Hour)
	tidy()
	if s, n := d.count(t, "sessions"), d.count(t, "sign_ins"); s != 2 || n != 0 {
		t.Errorf("after an hour %d sessions, %d sign-ins are left", s, n)
	}
	pgtest.Shift(t, d.db, 40*24*time.Hour)
	tidy()
	if a, s, x, k := d.count(t, "accounts"), d.count(t, "sessions"), d.count(t, "account_addresses"), d.count(t, "api_keys"); a != 1 || s != 0 || x != 0 || k != 1 {
		t.Errorf("after 40 days %d accounts, %d sessions, %d addresses, %d keys are left", a, s, x, k)
	}
	if _, err := d.store.ByID(t.Context(), d.db, own.ID); err != nil {
		t.Error(err)
	}
}

// Every process hears of what the board holds, and of nothing else: most requests change nothing.
func TestChannel_TellsOfAnOwnerItsPlanAndItsNewAddress(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	key, _ := newKey(t)
	own := d.entered(t, key).Account
	conn, err := d.db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "LISTEN "+identity.Channel+"; LISTEN done"); err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) func() error {
		return func() error {
			_, err := d.db.Exec(t.Context(), sql, args...)
			return err
		}
	}
	const service = `INSERT INTO services (id, slug, name, base_url, probe_method, probe_path, probe_statuses, owner_id, state_cause, state_actor, state_by)
		VALUES ($1, $2, 'Weather', 'https://api.example', 'GET', '/', '200', $3, 'created', 'owner', 'wallet')`
	saw := func(address string) func() error {
		return func() error { return d.store.Saw(t.Context(), d.db, own.ID, netip.MustParseAddr(address)) }
	}
	for _, tt := range []struct {
		name string
		do   func() error
		told bool
	}{
		{"an address of who owns nothing", saw("203.0.113.8"), false},
		{"a service of the operator", exec(service, call.NewID(), "ours", nil), false},
		{"a service of an account", exec(service, call.NewID(), "mine", own.ID), true},
		{"another plan", exec(`UPDATE accounts SET plan = 'pro'`), true},
		{"a moment", exec(`UPDATE accounts SET last_seen_at = market_now()`), false},
		{"an address", saw("203.0.113.9"), true},
		{"an address that was seen", saw(home.String()), false},
		{"an address that was seen long ago", func() error {
			return errors.Join(exec(`UPDATE account_addresses SET seen_at = market_now() - interval '1 day'`)(), saw(home.String())())
		}, false},
		{"a session that is looked at", func() error { _, _, err := d.store.OfSession(t.Context(), d.db, "mkses_"); return err }, false},
		{"the end of the service", exec(`UPDATE services SET state = 'retired', state_cause = 'withdrawn', state_actor = 'owner', state_by = 'wallet' WHERE slug = 'mine'`), false},
		{"an address of who has nothing but what is retired", saw("203.0.113.10"), false},
	} {
		name := tt.name
		if err := errors.Join(tt.do(), exec("NOTIFY done")()); err != nil {
			t.Fatal(name, err)
		}
		told := false
		for {
			n, err := conn.Conn().WaitForNotification(t.Context())
			if err != nil {
				t.Fatal(name, err)
			}
			if n.Channel == "done" {
				break
			}
			told = true
		}
		if told != tt.told {
			t.Errorf("%s: told %v", name, told)
		}
	}
}

// hasRole says whether the list of admins has a wallet that is one now.
func (d *door) hasRole(t *testing.T, w common.Address) bool {
	t.Helper()
	all, err := d.store.Admins(t.Context(), d.db)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(a identity.Admin) bool { return a.Wallet == w && a.RevokedAt.IsZero() })
}
