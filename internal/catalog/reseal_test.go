package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/secretbox"
)

// keyFile is a box of the keys of an operator's file.
func keyFile(t *testing.T, keys ...string) catalog.Secrets {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(strings.Join(keys, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	box, err := secretbox.OpenKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	return catalog.NewSecrets(box)
}

// The three steps of a change of key: nothing is unreadable at any of them, and in the end the old key is needed for nothing.
func TestSecrets_Reseal_MovesEverythingToTheCurrentKey(t *testing.T) {
	t.Parallel()
	const oldKey, newKey = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f"
	db := pgtest.New(t)
	old, both, alone := keyFile(t, oldKey), keyFile(t, newKey, oldKey), keyFile(t, newKey)
	waits := keyFile(t, oldKey, newKey) // the new key is there, and does not seal yet
	var ids []string
	for i := range 3 {
		s := create(t, db, draft(t, fmt.Sprintf("weather-%d", i), "/"))
		if _, err := setHeaders(t, db, old, s.ID, headers(t, false, `{"A":"one","B":"two"}`)); err != nil {
			t.Fatal(err)
		}
		newSecret(t, db, old, s.ID, 0)
		newSecret(t, db, old, s.ID, time.Hour)
		ids = append(ids, s.Slug)
	}
	readable := func(what string, secrets catalog.Secrets) {
		t.Helper()
		snapshot := load(t, catalog.New(time.Now, time.Minute).Opening(secrets), db)
		for _, slug := range ids {
			target, no := snapshot.Route(slug, "POST", "/")
			if no != nil || target.Service.Broken != "" || plain(target.Service)["B"] != "two" || target.Service.Secret.Value.Reveal() == "" {
				t.Errorf("%s: %s is not readable: %v", what, slug, target.Service)
			}
		}
	}
	readable("with the new key behind", waits)
	if all, err := waits.Reseal(t.Context(), db); err != nil || all.Done != 0 || len(all.Lost) != 0 {
		t.Errorf("with the new key behind, resealed %+v, %v, want nothing", all, err)
	}

	var wg sync.WaitGroup
	for range 4 { // replicas that start together
		wg.Go(func() {
			if all, err := both.Reseal(t.Context(), db); err != nil || len(all.Lost) != 0 {
				t.Errorf("resealed %+v, %v", all, err)
			}
		})
	}
	wg.Wait()
	readable("with the new key in front", both)
	readable("by a replica that has not changed the order yet", waits)
	readable("without the old key", alone)
	if all, err := both.Reseal(t.Context(), db); err != nil || all.Done != 0 {
		t.Errorf("a second time: %+v, %v, want nothing to do", all, err)
	}
}

func TestSecrets_Reseal_NamesWhatNoKeyOpensAndLeavesIt(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	gone, here := catalog.NewSecrets(secretbox.RandomBox()), catalog.NewSecrets(secretbox.RandomBox())
	s := create(t, db, draft(t, "weather", "/"))
	if _, err := setHeaders(t, db, gone, s.ID, headers(t, false, `{"A":"one","B":"two"}`)); err != nil {
		t.Fatal(err)
	}
	newSecret(t, db, gone, s.ID, 0)
	all, err := here.Reseal(t.Context(), db)
	if err != nil || all.Done != 0 || !slices.Equal(all.Lost, []string{"weather"}) {
		t.Errorf("resealed %+v, %v, want the service named once", all, err)
	}
	if got := loaded(t, db, here, s.ID); got.Broken == "" {
		t.Error("a service whose headers nobody can read would be asked without them")
	}
	if got := loaded(t, db, gone, s.ID); got.Broken != "" {
		t.Errorf("the key is back, and the service is broken: %s", got.Broken)
	}

	// Without the key its provider can set everything again, and need not wait for what is lost.
	if _, err := setHeaders(t, db, here, s.ID, headers(t, false, `{"A":"one"}`)); err != nil {
		t.Fatal(err)
	}
	secret, _ := newSecret(t, db, here, s.ID, time.Hour)
	if got := loaded(t, db, here, s.ID); got.Broken != "" || got.Secret.Value.Reveal() != secret.Reveal() || plain(got)["A"] != "one" {
		t.Errorf("set again, the service has %v, %v (%s)", plain(got), got.Secret, got.Broken)
	}
	if all, err := here.Reseal(t.Context(), db); err != nil || all.Done != 0 || len(all.Lost) != 0 {
		t.Errorf("set again, and a start still says %+v, %v", all, err)
	}
}
