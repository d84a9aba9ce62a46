package catalog_test

import (
	"slices"
	"testing"
	"time"

	"market/internal/catalog"
	"market/internal/postgres/pgtest"
	"market/internal/refusal"
	"market/internal/secretbox"
)

// The operator hears of a service that becomes unusable once, and not at each of the many looks at the catalog.
func TestCatalog_Load_TellsOnceWhatBroke(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	gone, here := catalog.NewSecrets(secretbox.RandomBox()), catalog.NewSecrets(secretbox.RandomBox())
	lost, kept := create(t, db, draft(t, "lost", "/", "/more")), create(t, db, draft(t, "kept", "/", "/more"))
	create(t, db, draft(t, "without", "/"))
	newSecret(t, db, gone, lost.ID, 0)
	newSecret(t, db, here, kept.ID, 0)
	var told []string
	c := catalog.New(time.Now, time.Minute).Opening(here).Telling(func(slugs []string) { told = append(told, slugs...) })
	for range 3 {
		load(t, c, db)
	}
	if !slices.Equal(told, []string{"lost"}) {
		t.Errorf("told of %q, want the one service once", told)
	}
	if opened, all := c.Current().Opened(); opened != 1 || all != 2 {
		t.Errorf("opened %d of %d, want 1 of 2", opened, all)
	}
}

func TestParseHeaders_NamesTheRequestAndNotAListing(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"A":"1","B":"2","C":"3","D":"4","E":"5","F":"6","G":"7","H":"8","I":"9","J":"10","K":"11"}`: "must have at most 10 headers",
		`{"Host":"x","Via":"y"}`: "the request has 2 members that can't be accepted",
	} {
		if _, err := catalog.ParseHeaders([]byte(body), false); err == nil || err.(*refusal.Error).Detail != want { //nolint:errorlint,forcetypeassert // what it returns
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}
