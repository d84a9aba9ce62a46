package ledger_test

import (
	"strings"
	"testing"

	"market/internal/ledger"
)

func TestAccounts_AreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	var accounts, kinds string
	for constraint, to := range map[string]*string{"ledger_postings_account_known": &accounts, "ledger_entries_kind_known": &kinds} {
		if err := s.db.QueryRow(t.Context(), `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1`, constraint).Scan(to); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range ledger.Accounts() {
		if !a.Valid() || !strings.Contains(accounts, "'"+string(a)+"'") {
			t.Errorf("the database does not know the account %s", a)
		}
	}
	for _, k := range ledger.EntryKinds() {
		if !strings.Contains(kinds, "'"+string(k)+"'") {
			t.Errorf("the database does not know the entry %s", k)
		}
	}
	if known := strings.Count(accounts, "::text"); known < len(ledger.Accounts()) || ledger.Account("").Valid() {
		t.Errorf("%d accounts in %s", known, accounts)
	}
}
