package app

import (
	"context"

	"market/internal/ledger"
	"market/internal/letter"
	"market/internal/metrics"
	"market/internal/notify"
	"market/internal/postgres"
	"market/internal/reconcile"
	"market/internal/refund"
)

// readMetrics reads what the gauges show. Each part is one statement that returns a few rows; together they have the time of one scrape.
func (a *App) readMetrics(ctx context.Context) (read metrics.Reading, err error) {
	standings, err := a.sources.Standings(ctx, a.db)
	if err != nil {
		return read, err
	}
	for _, s := range standings {
		read.Sources = append(read.Sources, metrics.Source{Name: s.Source.Name, Out: !s.ExhaustedAt.IsZero(), Used: s.Used, Cap: s.Cap, Wait: s.NextRequestAt.Sub(s.At)})
	}
	waiting, err := refund.Store{}.Deferred(ctx, a.db)
	if err != nil {
		return read, err
	}
	refunds := metrics.Deferred{What: "refunds"}
	for _, w := range waiting {
		refunds.N += int64(w.N)
		refunds.Oldest = max(refunds.Oldest, w.Oldest)
	}
	read.Deferred = append(read.Deferred, refunds)
	notices := metrics.Deferred{What: "notices"}
	if notices.N, notices.Oldest, err = (notify.Store{}).Unsent(ctx, a.db); err != nil {
		return read, err
	}
	letters := metrics.Deferred{What: "provider_notices"}
	if letters.N, letters.Oldest, err = (letter.Store{}).Unsent(ctx, a.db); err != nil {
		return read, err
	}
	read.Deferred = append(read.Deferred, notices, letters)
	counts, err := reconcile.Store{}.Counts(ctx, a.db)
	if err != nil {
		return read, err
	}
	for _, c := range counts {
		read.Money = append(read.Money, metrics.Money{Network: c.Network, Differences: c.Differ, Unexplained: c.Inflows, Closed: c.Closed})
	}
	// Promise 1 from the books, because what is folded is added up already: adding up all calls is for a person who asks, not for every scrape.
	books, err := ledger.Store{}.TrialBalance(ctx, a.db)
	if err != nil {
		return read, err
	}
	read.Books = booksOf(books)
	return read, nil
}

// refundsWaiting counts the refunds that wait for each source.
func refundsWaiting(ctx context.Context, db postgres.DB) (map[string]int, error) {
	waiting, err := refund.Store{}.Deferred(ctx, db)
	counts := make(map[string]int, len(waiting))
	for _, w := range waiting {
		counts[w.Source] = w.N
	}
	return counts, err
}

// booksOf adds up balances over the treasuries of a network, in the order in which they come.
func booksOf(all []ledger.Balance) []metrics.Balance {
	var books []metrics.Balance
	at := map[metrics.Balance]int{}
	for _, b := range all {
		key := metrics.Balance{Network: b.Network, Asset: b.Asset.Hex(), Account: string(b.Account)}
		i, there := at[key]
		if !there {
			i = len(books)
			at[key], books = i, append(books, key)
		}
		units, _ := b.Amount.Big().Float64()
		books[i].Units += units
	}
	return books
}
