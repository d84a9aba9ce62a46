package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/secretbox"
)

// signing returns the secrets that sign for a service now.
func signing(t *testing.T, db *pgxpool.Pool, secrets catalog.Secrets, service uuid.UUID) (out []string) {
	t.Helper()
	all, err := secrets.NoticeSecrets(t.Context(), db, service)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		out = append(out, s.Reveal())
	}
	return out
}

func rotate(t *testing.T, db *pgxpool.Pool, secrets catalog.Secrets) (string, error) {
	t.Helper()
	var made string
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		secret, _, _, err := store.EditNoticeSecret(t.Context(), tx, "weather", catalog.Edit{By: owner, Secrets: secrets})
		made = secret.Reveal()
		return err
	})
	return made, err
}

// The secret is made with the first webhook, shown then alone, and one that replaces it signs beside it for a day.
func TestStore_NoticeSecret_IsMadeOnceAndSignsForADayAfterItWasReplaced(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pgtest.Freeze(t, db)
	s, secrets := create(t, db, draft(t, "weather", "/")), catalog.NewSecrets(secretbox.RandomBox())
	edit := func(text string) string {
		t.Helper()
		e := patch(text)
		e.Secrets = secrets
		out, err := editService(t, db, "weather", e)
		if err != nil {
			t.Fatal(err)
		}
		return out.NoticeSecret.Reveal()
	}
	if _, err := rotate(t, db, secrets); err == nil || !strings.Contains(err.Error(), "names no webhook") {
		t.Errorf("a secret for no webhook: %v", err)
	}
	if made := edit(`{"notices":{"email":"ops@weather.example"}}`); made != "" {
		t.Error("a mail address has a secret")
	}
	first := edit(`{"notices":{"webhook":"https://weather.example/hook"}}`)
	if !strings.HasPrefix(first, "whsec_") || len(signing(t, db, secrets, s.ID)) != 1 {
		t.Fatalf("the first webhook gets %q", first)
	}
	if made := edit(`{"notices":{"webhook":"https://weather.example/other"}}`); made != "" {
		t.Error("another address of the webhook shows a secret")
	}
	second, err := rotate(t, db, secrets)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Shift(t, db, catalog.NoticeSecretBeside-time.Microsecond)
	if got := signing(t, db, secrets, s.ID); len(got) != 2 || got[0] != second || got[1] != first {
		t.Errorf("a microsecond before the day is over %d sign", len(got))
	}
	pgtest.Shift(t, db, time.Microsecond)
	if got := signing(t, db, secrets, s.ID); len(got) != 1 || got[0] != second {
		t.Errorf("after a day %d sign", len(got))
	}
	revisions, _, err := store.Revisions(t.Context(), db, s.ID, 10, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range revisions {
		for _, secret := range []string{first, second} {
			if strings.Contains(string(r.Before)+string(r.After), secret) {
				t.Errorf("revision %d keeps a secret", r.Number)
			}
		}
	}
}

func TestStore_NoticeSecret_SoManySignAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s, secrets := create(t, db, draft(t, "weather", "/")), catalog.NewSecrets(secretbox.RandomBox())
	e := patch(`{"notices":{"webhook":"https://weather.example/hook"}}`)
	e.Secrets = secrets
	if _, err := editService(t, db, "weather", e); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := rotate(t, db, secrets); err != nil {
			t.Fatal(err)
		}
	}
	before := signing(t, db, secrets, s.ID)
	if _, err := rotate(t, db, secrets); err == nil || !strings.Contains(err.Error(), "5 secrets sign already") {
		t.Errorf("a sixth secret: %v", err)
	}
	if after := signing(t, db, secrets, s.ID); len(after) != 5 || after[0] != before[0] {
		t.Error("what was refused changed what signs")
	}
}

// A secret that no key opens is as good as none: whoever names the webhook again gets another one. Nothing else of the service suffers.
func TestSecrets_Reseal_AWebhookWhoseSecretIsLostGetsAnother(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s := create(t, db, draft(t, "weather", "/"))
	lost, here := catalog.NewSecrets(secretbox.RandomBox()), catalog.NewSecrets(secretbox.RandomBox())
	name := func(secrets catalog.Secrets, path string) string {
		t.Helper()
		e := patch(`{"notices":{"webhook":"https://weather.example/` + path + `"}}`)
		e.Secrets = secrets
		out, err := editService(t, db, "weather", e)
		if err != nil {
			t.Fatal(err)
		}
		return out.NoticeSecret.Reveal()
	}
	name(lost, "hook")
	all, err := here.Reseal(t.Context(), db)
	if err != nil || len(all.Unsigned) != 1 || all.Unsigned[0] != "weather" || len(all.Lost) != 0 {
		t.Errorf("resealed %+v, %v", all, err)
	}
	if made := name(here, "again"); !strings.HasPrefix(made, "whsec_") || len(signing(t, db, here, s.ID)) != 1 {
		t.Errorf("the webhook gets %q", made)
	}
}
