package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres"
	"market/internal/refusal"
	sources "market/internal/source"
)

// Sources tell how everything outside stands that can refuse us, and can have a source asked before its window ends. *sources.Registry is one.
type Sources interface {
	Standings(ctx context.Context, db postgres.DB) ([]sources.Standing, error)
	TryNow(ctx context.Context, tx pgx.Tx, name string) error
}

// A SourceTried is that somebody had a source tried, and how it stands since.
type SourceTried struct {
	Standing sources.Standing
	Entry    audit.Entry
}

// A sourceCase is how a source stood before and after, as the audit keeps it.
type sourceCase struct {
	ExhaustedAt *time.Time `json:"exhausted_at"`
	RetryAt     *time.Time `json:"retry_at"`
	PacedUntil  *time.Time `json:"next_request_at"`
}

// TrySource has a source asked again before its window ends, because somebody says that it is topped up, and keeps in the same transaction who said so.
// The next request tests it, and what waits for it is due. Doing it twice does no more than doing it once: one request tests it, and where it still
// refuses, its window begins anew. Of a source that refuses nothing it is a refusal with Conflict, also where our own guard stopped it, which no money lifts.
func TrySource(ctx context.Context, db *pgxpool.Pool, of Sources, name string, by catalog.Author, reason string) (tried SourceTried, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		before, err := standingOf(ctx, tx, of, name)
		if err != nil {
			return err
		}
		if before.ExhaustedAt.IsZero() && !before.NextRequestAt.After(before.At) {
			return refusal.New(call.Conflict, "source %s refuses us nothing%s", name, guardedToo(before))
		}
		if err := of.TryNow(ctx, tx, name); err != nil {
			return err
		}
		if tried.Standing, err = standingOf(ctx, tx, of, name); err != nil {
			return err
		}
		entry := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: audit.SourceTried, Subject: audit.Source(name), Reason: reason}
		if err := entry.Changed(sourceCaseOf(before), sourceCaseOf(tried.Standing)); err != nil {
			return err
		}
		tried.Entry, err = audit.Store{}.Add(ctx, tx, entry)
		return err
	})
	if _, no := errors.AsType[*refusal.Error](err); err != nil && !no {
		err = fmt.Errorf("try source %s: %w", name, err)
	}
	if err != nil {
		return SourceTried{}, err
	}
	return tried, nil
}

func standingOf(ctx context.Context, tx pgx.Tx, of Sources, name string) (sources.Standing, error) {
	all, err := of.Standings(ctx, tx)
	if err != nil {
		return sources.Standing{}, err
	}
	for _, s := range all {
		if s.Source.Name == name {
			return s, nil
		}
	}
	return sources.Standing{}, refusal.New(call.NotFound, "there is no source with this name")
}

// guardedToo says what is to be done instead about a source that we ourselves stopped, where anything can be.
func guardedToo(s sources.Standing) string {
	if s.GuardedAt.IsZero() {
		return ""
	}
	if !s.Source.Kind.Adjustable() {
		return ": we stopped. More goes out from 00:00 UTC"
	}
	return ": we stopped. Raise guard.floor of its configuration, or wait until 00:00 UTC"
}

func sourceCaseOf(s sources.Standing) sourceCase {
	orNull := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return sourceCase{ExhaustedAt: orNull(s.ExhaustedAt), RetryAt: orNull(s.RetryAt), PacedUntil: orNull(s.NextRequestAt)}
}
