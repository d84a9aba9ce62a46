package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres"
	"market/internal/refusal"
	"market/internal/source"
)

// Sources tell how everything outside stands that can refuse us, and can have a source asked before its window ends. *source.Registry are some.
type Sources interface {
	Standings(ctx context.Context, db postgres.DB) ([]source.Standing, error)
	TryNow(ctx context.Context, db postgres.DB, name string) error
}

// A SourceCase is how a source stood before somebody had it tried, and stands after: what the audit keeps.
type SourceCase struct {
	ExhaustedAt *time.Time `json:"exhausted_at"`
	RetryAt     *time.Time `json:"retry_at"`
	PacedUntil  *time.Time `json:"next_request_at"`
}

func caseOfSource(s source.Standing) SourceCase {
	return SourceCase{ExhaustedAt: timeOrNull(s.ExhaustedAt), RetryAt: timeOrNull(s.RetryAt), PacedUntil: timeOrNull(s.NextRequestAt)}
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// TrySource has a source asked again before its window ends, because somebody says that it is topped up, and keeps who said so in the same transaction.
// The next request tests it, and what waits for it is due. Done twice it is done again: the window of a source that still refuses begins with that refusal.
// Of a source that refuses nothing it is a refusal with Conflict, also where our own guard stopped it, which no money lifts.
func TrySource(ctx context.Context, db *pgxpool.Pool, sources Sources, name string, by catalog.Author, reason string) (source.Standing, audit.Entry, error) {
	var (
		after source.Standing
		entry audit.Entry
	)
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		before, err := standingOf(ctx, tx, sources, name)
		if err != nil {
			return err
		}
		if before.ExhaustedAt.IsZero() && before.NextRequestAt.IsZero() {
			return notOut(before)
		}
		if err := sources.TryNow(ctx, tx, name); err != nil {
			return err
		}
		if after, err = standingOf(ctx, tx, sources, name); err != nil {
			return err
		}
		e := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: audit.SourceTried, Subject: audit.Source(name), Reason: reason}
		if e.Before, err = json.Marshal(caseOfSource(before)); err != nil {
			return err
		}
		if e.After, err = json.Marshal(caseOfSource(after)); err != nil {
			return err
		}
		entry, err = audit.Store{}.Add(ctx, tx, e)
		return err
	})
	if err != nil {
		return source.Standing{}, audit.Entry{}, wrapTry(name, err)
	}
	return after, entry, nil
}
