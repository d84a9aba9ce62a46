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
	"market/internal/refusal"
	"market/internal/switches"
)

// A SwitchSet is that somebody set a switch.
type SwitchSet struct {
	Switch switches.Switch
	Entry  audit.Entry
}

// A switchCase is how a switch stood before and after, as the audit keeps it.
type switchCase struct {
	On    bool       `json:"on"`
	By    *string    `json:"set_by"`
	Since *time.Time `json:"since"`
}

func switchCaseOf(s switches.Switch) switchCase {
	if s.Since.IsZero() {
		return switchCase{On: s.On}
	}
	return switchCase{On: s.On, By: &s.By, Since: &s.Since}
}

// SetSwitch sets a switch, and keeps in the same transaction who did and why. One that stands so already is a refusal with Conflict, which says who was
// there first: of two at once one sets it. The caller has checked that there is such a switch.
func SetSwitch(ctx context.Context, db *pgxpool.Pool, name switches.Name, on bool, by catalog.Author, reason string) (set SwitchSet, err error) {
	var store switches.Store
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		before, err := store.Lock(ctx, tx, name)
		if err != nil {
			return err
		}
		var changed bool
		if set.Switch, changed, err = store.Set(ctx, tx, switches.Switch{Name: name, On: on, Reason: reason, By: by.Name}); err != nil {
			return err
		}
		if !changed {
			if before, err = store.Lock(ctx, tx, name); err != nil { // as whoever was first has left it
				return err
			}
			return refusal.New(call.Conflict, "the switch %s is %s already%s", name, onOff(on), setBy(before))
		}
		entry := audit.Entry{Actor: string(by.Actor), By: by.Name, Action: audit.SwitchedOff, Subject: audit.Switch(name.String()), Reason: reason}
		if on {
			entry.Action = audit.SwitchedOn
		}
		if err := entry.Changed(switchCaseOf(before), switchCaseOf(set.Switch)); err != nil {
			return err
		}
		set.Entry, err = audit.Store{}.Add(ctx, tx, entry)
		return err
	})
	if _, no := errors.AsType[*refusal.Error](err); err != nil && !no {
		err = fmt.Errorf("set switch %s: %w", name, err)
	}
	if err != nil {
		return SwitchSet{}, err
	}
	return set, nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// setBy says who set a switch last, and when and why.
func setBy(s switches.Switch) string {
	if s.Since.IsZero() {
		return ": nobody has ever set it"
	}
	return ", by " + s.By + " at " + timeText(s.Since) + ": " + s.Reason
}
