package switches_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/postgres/pgtest"
	"market/internal/switches"
)

const network = "eip155:84532"

var stop = switches.Name{Kind: switches.Stop402, Subject: network}

func set(t *testing.T, db *pgxpool.Pool, name switches.Name, on bool) (s switches.Switch, changed bool) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) (err error) {
		s, changed, err = switches.Store{}.Set(t.Context(), tx, switches.Switch{Name: name, On: on, Reason: "the secret of the operator", By: "admin token"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, changed
}

func TestBoard_Stopped_OfTheNetworkThatIsOnAndNoOther(t *testing.T) {
	t.Parallel()
	db, b := pgtest.New(t), switches.NewBoard()
	want := func(when string, stopped bool) {
		t.Helper()
		err := b.Stopped(network)
		if errors.Is(err, switches.ErrStopped) != stopped || !stopped && err != nil {
			t.Errorf("%s: %v", when, err)
		}
		if stopped && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: callers are told why: %v", when, err)
		}
		if err := b.Stopped("eip155:1"); err != nil {
			t.Errorf("%s: another network: %v", when, err)
		}
	}
	load := func() {
		t.Helper()
		if err := b.Load(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	want("before the first load", false)
	load()
	want("when nothing was ever set", false)
	set(t, db, stop, true)
	set(t, db, switches.Name{Kind: switches.SuspendStrikes}, true)
	load()
	want("on", true)
	if on := b.On(); len(on) != 2 {
		t.Errorf("on are %+v, want both", on)
	}
	set(t, db, stop, false)
	want("off, and not read again", true)
	load()
	want("off", false)
	if on := b.On(); len(on) != 1 || on[0].Kind != switches.SuspendStrikes {
		t.Errorf("on are %+v, want the other one", on)
	}
	set(t, db, stop, true)
	load()
	if _, err := db.Exec(t.Context(), `ALTER TABLE switches RENAME TO gone`); err != nil {
		t.Fatal(err)
	}
	if err := b.Load(t.Context(), db); err == nil {
		t.Error("there is no table, and it was read")
	}
	want("after an error", true)
}

func TestStore_Set_OnlyWhatChangesIsWritten(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for i, tt := range []struct{ on, changed bool }{{false, false}, {true, true}, {true, false}, {false, true}, {false, false}} {
		s, changed := set(t, db, stop, tt.on)
		if changed != tt.changed || changed && (s.On != tt.on || s.Name != stop || s.Since.IsZero() || s.By != "admin token") {
			t.Errorf("%d: set to %v: changed = %v, %+v", i, tt.on, changed, s)
		}
	}
}

func TestStore_StrikesSuspended_AsTheirSwitchSays(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	set(t, db, stop, true)
	for _, on := range []bool{true, false} {
		set(t, db, switches.Name{Kind: switches.SuspendStrikes}, on)
		if got, err := (switches.Store{}).StrikesSuspended(t.Context(), db); err != nil || got != on {
			t.Errorf("suspended = %v, %v; want %v", got, err, on)
		}
	}
}

func TestSwitches_TheDatabaseKnowsEveryKindAndItsSubject(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const insertSQL = `INSERT INTO switches (kind, subject, is_on, reason, by) VALUES ($1, $2, true, 'why', 'who')`
	for _, k := range append(slices.Clone(switches.Kinds()), "stop_everything", "") {
		for subject, perNetwork := range map[string]bool{"": false, network: true} {
			_, err := db.Exec(t.Context(), insertSQL, k, subject)
			if taken := err == nil; taken != (slices.Contains(switches.Kinds(), k) && k.PerNetwork() == perNetwork) {
				t.Errorf("%q of %q: %v", k, subject, err)
			}
		}
	}
	for _, column := range []string{"reason", "by"} {
		if _, err := db.Exec(t.Context(), `UPDATE switches SET `+column+` = ''`); err == nil {
			t.Errorf("one without %s is kept", column)
		}
	}
}
