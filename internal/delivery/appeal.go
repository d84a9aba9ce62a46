package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/audit"
	"market/internal/call"
	"market/internal/catalog"
	"market/internal/postgres"
	"market/internal/refusal"
	"market/internal/strikes"
)

// appealsWaitingMax is how many appeals of one service wait for an answer at most: so many about the service itself, and so many against its strikes.
// One kind does not keep the other out.
const appealsWaitingMax = 20

// An Appeal is what the provider of a service says to a strike, or to its service being off the shelf.
type Appeal struct {
	ID     uuid.UUID // in the order of coming
	Strike uuid.UUID // zero: about the service
	At     time.Time
	By     catalog.Author
	Text   string
	Answer *Answered // nil: it waits
}

// Answered is the decision that answers an appeal.
type Answered struct {
	Action audit.Action
	At     time.Time
	By     string
	Reason string
}

const (
	appealsWaitingSQL = `SELECT count(*) FROM appeals WHERE service_id = $1 AND answered_by IS NULL AND (strike_id IS NULL) = $2`

	strikeStateSQL = `SELECT state FROM strikes WHERE id = $1 AND service_id = $2`

	appealSQL = `
INSERT INTO appeals (id, service_id, strike_id, actor, by, text) VALUES ($1, $2, $3, $4, $5, $6) RETURNING at`
)

// Appeal keeps what a provider says. A strike that a review has settled does not count and needs no appeal: that is a refusal with Conflict, and so is
// one appeal more than may wait.
func (r *Review) Appeal(ctx context.Context, slug string, by catalog.Author, draft catalog.AppealDraft) (Appeal, error) {
	a := Appeal{ID: call.NewID(), Strike: draft.Strike, By: by, Text: draft.Text}
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		service, err := r.catalog.At(ctx, tx, slug, nil)
		if err != nil {
			return err
		}
		if err := mayAppeal(ctx, tx, &service, a.Strike); err != nil {
			return err
		}
		err = tx.QueryRow(ctx, appealSQL, a.ID, service.ID, idOrNull(a.Strike), by.Actor, by.Name, a.Text).Scan(&a.At)
		if err != nil {
			return fmt.Errorf("keep an appeal of service %s: %w", slug, err)
		}
		return nil
	})
	if err != nil {
		return Appeal{}, err
	}
	return a, nil
}

func idOrNull(id uuid.UUID) *uuid.UUID {
	if id == (uuid.UUID{}) {
		return nil
	}
	return &id
}

// mayAppeal says why a provider cannot appeal now; nil where it can. The service's row is locked.
func mayAppeal(ctx context.Context, tx pgx.Tx, service *catalog.Service, strike uuid.UUID) error {
	if service.State == catalog.Retired {
		return service.WhyNot(catalog.CauseRelisting)
	}
	if strike != (uuid.UUID{}) {
		var state strikes.State
		switch err := tx.QueryRow(ctx, strikeStateSQL, strike, service.ID).Scan(&state); {
		case errors.Is(err, pgx.ErrNoRows):
			return refusal.New(call.NotFound, "the service has no such strike")
		case err != nil:
			return fmt.Errorf("find strike %s: %w", strike, err)
		case state.Closed():
			return refusal.New(call.Conflict, "the strike is %s already and does not count", state)
		}
	}
	about, kind := strike == (uuid.UUID{}), "against strikes of this service"
	if about {
		kind = "about this service itself"
	}
	waiting, err := countWaiting(ctx, tx, service, about)
	if err != nil {
		return err
	}
	if waiting >= appealsWaitingMax {
		return refusal.New(call.Conflict, "%d appeals %s wait for an answer, and no more are taken before one of them is answered", waiting, kind)
	}
	return nil
}

// countWaiting says how many appeals wait for an answer: of those about the service itself, or of those against its strikes.
func countWaiting(ctx context.Context, tx pgx.Tx, service *catalog.Service, about bool) (n int, err error) {
	if err := tx.QueryRow(ctx, appealsWaitingSQL, service.ID, about).Scan(&n); err != nil {
		return 0, fmt.Errorf("count appeals of service %s: %w", service.Slug, err)
	}
	return n, nil
}

const (
	answerSQL = `
UPDATE appeals SET answered_by = $2
 WHERE service_id = $1 AND answered_by IS NULL AND ($4 OR strike_id = $3 OR ($5 AND strike_id IS NULL))`

	// An appeal about the service is answered, too, when each of the strikes that took it off the shelf has been decided on since: those that counted
	// when it left, and those that came later. Whatever else took it off, or keeps it there, no decision about a strike answers for. A void that left a
	// delisted service held leaves the strikes of that delisting in the place of a hold's.
	upheldSQL = `
WITH departure AS (
	SELECT d.at, d.strike_window
	  FROM delistings d JOIN services s ON s.id = d.service_id
	 WHERE s.id = $1 AND (d.kind = s.state OR s.state_cause = 'void_held' AND d.from_state = 'listed')
	   AND d.at >= (SELECT max(at) FROM service_events WHERE service_id = $1 AND to_state = 'listed')
	 ORDER BY d.at DESC, d.id DESC LIMIT 1
), deciding AS (
	SELECT st.id, (SELECT max(d.at) FROM audit d WHERE d.subject_kind = 'strike' AND d.subject = st.id::text) AS decided_at
	  FROM strikes st, departure
	 WHERE st.service_id = $1 AND st.state = 'open' AND st.opened_at > departure.at - departure.strike_window
)
UPDATE appeals a SET answered_by = $2
 WHERE service_id = $1 AND answered_by IS NULL AND strike_id IS NULL AND EXISTS (SELECT 1 FROM deciding)
   AND NOT EXISTS (SELECT 1 FROM deciding WHERE decided_at IS NULL OR decided_at <= a.at)`
)

// answerAppeals counts the appeals as answered that a decision answers: those to its strike, and those about the service where its state changed, or where it
// was decided to leave it. A service that is put back with its strikes archived leaves nothing to appeal against.
func answerAppeals(ctx context.Context, tx pgx.Tx, e audit.Entry, strike *uuid.UUID, before, after Case) error {
	all := e.Action == audit.Relist && before.State != catalog.Suspended
	about := before.State != after.State || e.Action == audit.Uphold && e.Subject.Kind == audit.KindService
	if _, err := tx.Exec(ctx, answerSQL, e.Service, e.ID, strike, all, about); err != nil {
		return fmt.Errorf("answer appeals: %w", err)
	}
	if _, err := tx.Exec(ctx, upheldSQL, e.Service, e.ID); err != nil {
		return fmt.Errorf("answer appeals: %w", err)
	}
	return nil
}

const appealedSinceSQL = `
SELECT EXISTS (SELECT 1 FROM appeals WHERE service_id = $1 AND (strike_id = $2 OR strike_id IS NULL) AND at > $3)`

// undecided refuses a decision about a strike on which one stands, with who made it, when and why.
func (r *Review) undecided(ctx context.Context, tx pgx.Tx, c subject, strike uuid.UUID) error {
	made, decided, err := r.audit.LatestOf(ctx, tx, audit.Strike(strike))
	if err != nil {
		return err
	}
	switch state := c.Strikes[strike]; {
	case state == strikes.Archived:
		return refusal.New(call.Conflict, "the strike is archived: its service was put back on the shelf since, and it does not count")
	case state == strikes.Voided:
		return refusal.New(call.Conflict, "the strike is void already, %s", doneBy(made))
	case !decided:
		return nil
	}
	var appealed bool
	if err := tx.QueryRow(ctx, appealedSinceSQL, c.service, strike, made.At).Scan(&appealed); err != nil {
		return fmt.Errorf("look for appeals since: %w", err)
	}
	if !appealed {
		return refusal.New(call.Conflict, "the strike was upheld already, %s. That stands until the provider appeals against it", doneBy(made))
	}
	return nil
}

func doneBy(e audit.Entry) string {
	return "by " + e.By + " at " + e.At.UTC().Format("2006-01-02 15:04:05") + " UTC: " + e.Reason
}

const appealColumnsSQL = `
SELECT a.id, coalesce(a.strike_id, '00000000-0000-0000-0000-000000000000'::uuid), a.at, a.actor, a.by, a.text, d.action, d.at, d.by, d.reason
  FROM appeals a LEFT JOIN audit d ON d.id = a.answered_by`

func scanAppeal(row pgx.CollectableRow) (a Appeal, err error) {
	var (
		action, by, reason *string
		at                 *time.Time
	)
	err = row.Scan(&a.ID, &a.Strike, &a.At, &a.By.Actor, &a.By.Name, &a.Text, &action, &at, &by, &reason)
	if err == nil && action != nil {
		a.Answer = &Answered{Action: audit.Action(*action), At: *at, By: *by, Reason: *reason}
	}
	return a, err
}

const appealsSQL = appealColumnsSQL + `
 WHERE a.service_id = $1 AND ($2::uuid IS NULL OR a.id < $2) ORDER BY a.id DESC LIMIT $3`

// Appeals returns appeals of a service, the newest first: those before one, where it is given, at most limit.
func Appeals(ctx context.Context, db postgres.DB, service uuid.UUID, before uuid.UUID, limit int) ([]Appeal, error) {
	return readAppeals(db.Query(ctx, appealsSQL, service, idOrNull(before), limit))
}

const appealsAboutSQL = appealColumnsSQL + `
 WHERE a.service_id = $1 AND a.strike_id IS NULL ORDER BY a.id DESC LIMIT $2`

// AppealsAbout returns the appeals about a service that are against none of its strikes, the newest first, at most limit.
func AppealsAbout(ctx context.Context, db postgres.DB, service uuid.UUID, limit int) ([]Appeal, error) {
	return readAppeals(db.Query(ctx, appealsAboutSQL, service, limit))
}

const appealsOfSQL = appealColumnsSQL + `
 WHERE a.strike_id = ANY($1) ORDER BY a.id DESC LIMIT 1000`

// AppealsOf returns the appeals to some strikes by strike, the newest first, to be shown beside their evidence.
func AppealsOf(ctx context.Context, db postgres.DB, of []uuid.UUID) (map[uuid.UUID][]Appeal, error) {
	all, err := readAppeals(db.Query(ctx, appealsOfSQL, of))
	if err != nil {
		return nil, err
	}
	byStrike := map[uuid.UUID][]Appeal{}
	for _, a := range all {
		byStrike[a.Strike] = append(byStrike[a.Strike], a)
	}
	return byStrike, nil
}

func readAppeals(rows pgx.Rows, err error) ([]Appeal, error) {
	if err != nil {
		return nil, fmt.Errorf("read appeals: %w", err)
	}
	all, err := pgx.CollectRows(rows, scanAppeal)
	if err != nil {
		return nil, fmt.Errorf("read appeals: %w", err)
	}
	return all, nil
}
