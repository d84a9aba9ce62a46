package ledger_test

import (
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/ledger"
	"market/internal/money"
)

func TestBooks_AreOnlyAddedTo(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.served(t)
	s.post(t, entry(ledger.TopUp, 5))
	for _, table := range []string{"ledger_entries", "ledger_transactions", "ledger_postings"} {
		s.wantRefused(t, s.db, table+"_only_added", `DELETE FROM `+table)
		s.wantRefused(t, s.db, table+"_only_added", `TRUNCATE `+table+` CASCADE`)
		s.wantRefused(t, s.db, table+"_only_added", `UPDATE `+table+` SET `+map[string]string{
			"ledger_entries": "reason = 'another'", "ledger_transactions": "at = market_now()", "ledger_postings": "amount = 1"}[table])
	}
	s.sound(t)
}

const (
	writeSQL = `
INSERT INTO ledger_transactions (network, asset, treasury, kind, call_id)
VALUES ('eip155:84532', decode(repeat('a5', 20), 'hex'), decode(repeat('1e', 20), 'hex'), 'call', gen_random_uuid())
RETURNING id`
	pairSQL = `INSERT INTO ledger_postings (transaction_id, line, account, amount) VALUES ($1, $2, 'treasury', $3), ($1, $2 + 1, 'suspense', $4)`
)

func TestTransactions_SumToZeroAndHavePostings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		postings   [][2]int // each written by one statement
		constraint string
	}{
		"two that make up for each other":   {[][2]int{{5, -5}}, ""},
		"none":                              {nil, "ledger_transactions_posted"},
		"two that do not":                   {[][2]int{{5, -4}}, "ledger_postings_balanced"},
		"a second statement that does not":  {[][2]int{{5, -5}, {1, -2}}, "ledger_postings_balanced"},
		"one unbalanced and its correction": {[][2]int{{5, -4}, {-5, 4}}, "ledger_postings_balanced"},
		"a posting of nothing":              {[][2]int{{0, 0}}, "ledger_postings_amount_some"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
				var id int64
				if err := tx.QueryRow(t.Context(), writeSQL).Scan(&id); err != nil {
					return err
				}
				for line, two := range tt.postings {
					if _, err := tx.Exec(t.Context(), pairSQL, id, 2*line+1, two[0], two[1]); err != nil {
						return err
					}
				}
				return nil
			})
			var got string
			if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
				got = refused.ConstraintName
			}
			if got != tt.constraint || (err != nil) != (tt.constraint != "") {
				t.Errorf("%v, want it refused by %q", err, tt.constraint)
			}
		})
	}
}

// Without this a posting could come to stand below the watermark of the balances, where nobody adds it up.
func TestTransactions_NobodyAddsToThemLater(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.served(t)
	s.wantRefused(t, s.db, "ledger_postings_of_now", pairSQL, 1, 100, 5, -5)
	s.wantRefused(t, s.db, "ledger_postings_of_now", pairSQL, 1_000_000, 100, 5, -5) // one that is not there
}

func TestStore_Post_BooksBothSides(t *testing.T) {
	t.Parallel()
	for kind, want := range map[ledger.EntryKind]map[ledger.Account]string{
		ledger.TopUp:         {ledger.Treasury: "10101", ledger.Operator: "-100", ledger.Fees: fee, ledger.Provider: share},
		ledger.Unexplained:   {ledger.Treasury: "10101", ledger.Suspense: "-100", ledger.Fees: fee, ledger.Provider: share},
		ledger.FeeWithdrawal: {ledger.Treasury: "9901", ledger.Fees: "-150", ledger.Provider: share},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			s.served(t)
			s.post(t, entry(kind, 100))
			got := s.trial(t)
			delete(got, ledger.Pending) // it was there, and went
			if len(got) != len(want) {
				t.Errorf("accounts %v, want %v", got, want)
			}
			for account, amount := range want {
				if got[account] != amount {
					t.Errorf("%s holds %s, want %s", account, got[account], amount)
				}
			}
			s.sound(t)
		})
	}
}

// What moves between two treasuries is in the books of both, and each of them sums to zero.
func TestStore_Post_BooksInBothTreasuriesWhatMovesBetweenThem(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.served(t)
	e := entry(ledger.Moved, 100)
	e.To = common.Address{19: 9}
	s.post(t, e)
	all, err := books.TrialBalance(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	got := map[common.Address]map[ledger.Account]string{e.Treasury: {}, e.To: {}}
	for _, b := range all {
		if b.Amount.Sign() != 0 {
			got[b.Treasury][b.Account] = b.Amount.String()
		}
	}
	want := map[common.Address]map[ledger.Account]string{
		e.Treasury: {ledger.Treasury: "9901", ledger.Operator: "100", ledger.Fees: fee, ledger.Provider: share},
		e.To:       {ledger.Treasury: "100", ledger.Operator: "-100"},
	}
	for treasury, accounts := range want {
		if !maps.Equal(got[treasury], accounts) {
			t.Errorf("the books of %s: %v, want %v", treasury, got[treasury], accounts)
		}
	}
	s.sound(t)
}

func TestStore_Post_RefusesWhatIsNoEntry(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	booked := entry(ledger.TopUp, 100)
	s.post(t, booked)
	for name, tt := range map[string]struct {
		change func(*ledger.Entry)
		want   error
	}{
		"the same transfer again":   {func(e *ledger.Entry) { e.Transfer = booked.Transfer }, ledger.ErrBooked},
		"no reason":                 {func(e *ledger.Entry) { e.Reason = "" }, ledger.ErrEntry},
		"nobody":                    {func(e *ledger.Entry) { e.By = "" }, ledger.ErrEntry},
		"no kind":                   {func(e *ledger.Entry) { e.Kind = "" }, ledger.ErrEntry},
		"no transfer":               {func(e *ledger.Entry) { e.Transfer = ledger.Transfer{} }, ledger.ErrEntry},
		"nothing":                   {func(e *ledger.Entry) { e.Amount = money.Amount{} }, ledger.ErrEntry},
		"moved, and nowhere":        {func(e *ledger.Entry) { e.Kind = ledger.Moved }, ledger.ErrEntry},
		"moved to where it was":     {func(e *ledger.Entry) { e.Kind, e.To = ledger.Moved, e.Treasury }, ledger.ErrEntry},
		"put in, and elsewhere too": {func(e *ledger.Entry) { e.To = common.Address{19: 9} }, ledger.ErrEntry},
		"a withdrawal without fees": {func(e *ledger.Entry) { e.Kind = ledger.FeeWithdrawal }, ledger.ErrAboveFees},
	} {
		e := entry(ledger.TopUp, 100)
		tt.change(&e)
		if _, err := books.Post(t.Context(), s.db, e); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if n := s.count(t, `SELECT count(*) FROM ledger_entries`); n != 1 {
		t.Errorf("%d entries, want one", n)
	}
}

func TestStore_Post_WithdrawsUpToTheFees(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.served(t)
	if _, err := books.Post(t.Context(), s.db, entry(ledger.FeeWithdrawal, 251)); !errors.Is(err, ledger.ErrAboveFees) {
		t.Errorf("one above the fees: %v", err)
	}
	other := entry(ledger.FeeWithdrawal, 1)
	other.Treasury[1] = 1
	if _, err := books.Post(t.Context(), s.db, other); !errors.Is(err, ledger.ErrAboveFees) {
		t.Errorf("the fees of another treasury: %v", err)
	}
	s.post(t, entry(ledger.FeeWithdrawal, 250))
	if _, err := books.Post(t.Context(), s.db, entry(ledger.FeeWithdrawal, 1)); !errors.Is(err, ledger.ErrAboveFees) {
		t.Errorf("one more, when all is withdrawn: %v", err)
	}
}

// Of many that each would fit, and calls that are served and folds that are made meanwhile, as many withdraw as fit together.
func TestStore_Post_WithdrawalsRaceForTheFees(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for range 4 {
		s.served(t) // 1,000 of fees
	}
	var (
		wg   sync.WaitGroup
		went atomic.Int32
	)
	for range 6 {
		wg.Go(func() {
			_, err := books.Post(t.Context(), s.db, entry(ledger.FeeWithdrawal, 300))
			switch {
			case err == nil:
				went.Add(1)
			case !errors.Is(err, ledger.ErrAboveFees):
				t.Error(err)
			}
		})
	}
	wg.Go(func() { s.fold(t) })
	wg.Wait()
	if went.Load() != 3 || s.trial(t)[ledger.Fees] != "-100" {
		t.Errorf("%d withdrew, and %s of the fees are left; want 3 of 300, and 100", went.Load(), s.trial(t)[ledger.Fees])
	}
	s.sound(t)
}
