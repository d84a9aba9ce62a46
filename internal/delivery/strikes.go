package delivery

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/strikes"
)

const (
	// evidenceMax is how much evidence of a strike is shown, half of it the oldest and half the newest; evidenceFew is that of a strike in the queue.
	evidenceMax = 100
	evidenceFew = 10
	// strikesMax is how many strikes of a service are shown, the newest, and queueMax how many are looked at to order the queue.
	strikesMax    = 50
	queueMax      = 10_000
	delistingsMax = 10
)

// A StrikeQueue is one page of the services that carry strikes, in the order in which they are to be looked at.
type StrikeQueue struct {
	Services []strikes.Summary
	Total    int              // on all pages
	Strikes  []strikes.Strike // those of Services that count, in the same order, with a little of their evidence
}

// StrikesOfAll returns a page of the queue: so many services after the first so many. It moves while it is read page by page.
func (r *Recorder) StrikesOfAll(ctx context.Context, offset, limit int) (q StrikeQueue, err error) {
	err = r.reading(ctx, func(tx pgx.Tx) error {
		all, err := summaries(ctx, tx, r.strikes.Policy(), nil)
		if err != nil {
			return err
		}
		slices.SortFunc(all, strikes.Summary.Before)
		q.Total = len(all)
		q.Services = all[min(offset, len(all)):] // cut before limit is added: offset may be anybody's number
		q.Services = q.Services[:min(limit, len(q.Services))]
		services := make([]uuid.UUID, len(q.Services))
		for i, s := range q.Services {
			services[i] = s.Service
		}
		q.Strikes, err = r.strikesOf(ctx, tx, services, true, evidenceFew)
		return err
	})
	if err != nil {
		return StrikeQueue{}, fmt.Errorf("read the queue of strikes: %w", err)
	}
	return q, nil
}

// ServiceStrikes are the strikes of one service, whatever became of them, and what they came to.
type ServiceStrikes struct {
	Summary    strikes.Summary
	Strikes    []strikes.Strike    // the newest strikesMax, the oldest of them first
	Delistings []strikes.Delisting // the newest first
}

// StrikesOf returns the strikes of a service that exists.
func (r *Recorder) StrikesOf(ctx context.Context, service uuid.UUID) (s ServiceStrikes, err error) {
	err = r.reading(ctx, func(tx pgx.Tx) error {
		one, err := summaries(ctx, tx, r.strikes.Policy(), &service)
		if err != nil {
			return err
		}
		if len(one) != 1 {
			return fmt.Errorf("there are %d services of that id", len(one))
		}
		s.Summary = one[0]
		if s.Strikes, err = r.strikesOf(ctx, tx, []uuid.UUID{service}, false, evidenceMax); err != nil {
			return err
		}
		s.Delistings, err = delistingsOf(ctx, tx, service)
		return err
	})
	if err != nil {
		return ServiceStrikes{}, fmt.Errorf("read the strikes of service %s: %w", service, err)
	}
	return s, nil
}

// reading gives all statements of a reading one snapshot: counts and what is counted belong together.
func (r *Recorder) reading(ctx context.Context, read func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, r.db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, read)
}

// summaries sums up the strikes that count of one service, or, where it is nil, of all that have any.
func summaries(ctx context.Context, tx pgx.Tx, policy strikes.Policy, service *uuid.UUID) ([]strikes.Summary, error) {
	rows, err := tx.Query(ctx, summariesSQL, policy.Window, queueMax, service)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (strikes.Summary, error) {
		f, err := scanFacts(row)
		return policy.Summarize(f), err
	})
}

// strikesOf reads strikes with so much of their evidence each, service by service in the given order, the oldest first.
func (r *Recorder) strikesOf(ctx context.Context, tx pgx.Tx, services []uuid.UUID, counting bool, evidence int) ([]strikes.Strike, error) {
	rows, err := tx.Query(ctx, strikesSQL, services, r.strikes.Policy().Window, counting, strikesMax)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, scanStrike)
	if err != nil {
		return nil, err
	}
	at := make(map[uuid.UUID]int, len(found))
	ids := make([]uuid.UUID, len(found))
	for i, s := range found {
		at[s.ID], ids[i] = i, s.ID
	}
	rows, err = tx.Query(ctx, evidenceSQL, ids, evidence/2)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, scanEvidence)
	for _, e := range all {
		of := &found[at[e.Strike]]
		of.Evidence = append(of.Evidence, e)
	}
	return found, err
}

// Policy is how strikes count.
func (r *Recorder) Policy() strikes.Policy { return r.strikes.Policy() }
