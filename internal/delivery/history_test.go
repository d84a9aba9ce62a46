package delivery

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"market/internal/postgres/pgtest"
)

// rewrite changes history, as no program can: the triggers that keep a table are off for it.
func (s shelf) rewrite(t *testing.T, table, sql string, arguments ...any) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), s.db, func(tx pgx.Tx) error {
		of := pgx.Identifier{table}.Sanitize()
		if _, err := tx.Exec(t.Context(), `ALTER TABLE `+of+` DISABLE TRIGGER USER`); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), sql, arguments...); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `ALTER TABLE `+of+` ENABLE TRIGGER USER`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantKept says whether the database refuses to change history.
func (s shelf) wantKept(t *testing.T, sql, trigger string) {
	t.Helper()
	_, err := s.db.Exec(t.Context(), sql)
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.ConstraintName != trigger {
		t.Errorf("%s: %v, want it refused by %s", sql, err, trigger)
	}
}

func TestHistory_WhatStrikesRestOnIsOnlyAddedTo(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, policy.Limit)
	for table, trigger := range map[string]string{
		"deliveries": "deliveries_kept", "strike_deliveries": "strike_deliveries_only_added", "delistings": "delistings_only_added",
	} {
		s.wantKept(t, `DELETE FROM `+table, trigger)
		s.wantKept(t, `TRUNCATE `+table+` CASCADE`, trigger)
		rows, err := s.db.Query(t.Context(), `SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1`, table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(columns) == 0 {
			t.Fatalf("columns of %s: %v, %v", table, columns, err)
		}
		for _, column := range columns {
			if table == "deliveries" && slices.Contains([]string{"party", "excused_by", "detail"}, column) {
				continue // an outage is found later
			}
			s.wantKept(t, fmt.Sprintf(`UPDATE %s SET %s = %[2]s`, table, column), trigger)
		}
	}
}

func TestHistory_AnAppealIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.incidents(t, 1)
	strike := s.rows(t)[0].ID
	s.appeal(t, strike)
	pgtest.Shift(t, s.db, rest)
	s.void(t, strike)
	s.appeal(t, uuid.UUID{}) // waits, and is not meant
	for _, sql := range []string{`UPDATE appeals SET answered_by = NULL`, `UPDATE appeals SET answered_by = answered_by`} {
		s.wantKept(t, sql, "appeals_answered_once")
	}
}
