package delivery

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/audit"
	"market/internal/catalog"
	"market/internal/letter"
	"market/internal/strikes"
)

const (
	// toldEvidence is how many calls that prove a strike stand in a letter, half of them the oldest and half the newest.
	toldEvidence = 2
	// toldPath bounds what a caller may have us send to a provider, in bytes.
	toldPath = 1 << 10
)

// A telling is what is to be told of a service, in the transaction that does it.
type telling struct {
	service uuid.UUID
	kinds   []letter.Kind // in the order in which they happened
	reason  string
	by      catalog.Author
	strike  *uuid.UUID // that it is about, or that decided; nil: none
}

// tell writes letters to the provider of a service, whose row is locked: together with what they tell of, or not at all. They say how the service
// stands when all of it is done.
func tell(ctx context.Context, tx pgx.Tx, policy strikes.Policy, t telling) error {
	if len(t.kinds) == 0 {
		return nil
	}
	one, err := summaries(ctx, tx, policy, &t.service)
	if err == nil && len(one) != 1 {
		err = fmt.Errorf("there are %d services of that id", len(one))
	}
	if err != nil {
		return fmt.Errorf("read what to tell of service %s: %w", t.service, err)
	}
	s := one[0]
	facts := letter.Facts{Service: s.Slug, Name: s.Name, State: s.State, Reason: t.reason, By: t.by.Name, Next: s.Next,
		Strikes: &letter.Standing{Open: s.Open, Limit: policy.Limit, Window: policy.Window.Seconds(), Needed: max(1, policy.Sources), Words: s.Words}}
	if t.strike != nil {
		if facts.Strike, err = toldStrike(ctx, tx, *t.strike); err != nil {
			return err
		}
	}
	return writeLetters(ctx, tx, t, facts)
}

func writeLetters(ctx context.Context, tx pgx.Tx, t telling, facts letter.Facts) error {
	to, err := catalog.Store{}.Notices(ctx, tx, t.service)
	if err != nil {
		return err
	}
	var by []letter.Channel
	if to.Email != "" {
		by = append(by, letter.Email)
	}
	if to.Webhook != "" {
		by = append(by, letter.Webhook)
	}
	for _, kind := range t.kinds {
		if err := (letter.Store{}).Write(ctx, tx, letter.Letter{Service: t.service, Kind: kind, Facts: facts}, by); err != nil {
			return err
		}
	}
	return nil
}

// toldOf says what a decision tells the provider: what was found of a strike, or answered about the service, and where the service went by it.
func toldOf(action audit.Action, of audit.Kind, before, after catalog.State) []letter.Kind {
	var kinds []letter.Kind
	switch action {
	case audit.Void:
		kinds = append(kinds, letter.StrikeVoided)
	case audit.Uphold:
		if of == audit.KindStrike {
			kinds = append(kinds, letter.StrikeUpheld)
		} else {
			kinds = append(kinds, letter.ServiceUpheld)
		}
	case audit.Relist, audit.Suspend, audit.Recount: // the state says it all
	}
	if before != after {
		kinds = append(kinds, cameTo(after)...)
	}
	return kinds
}

// cameTo is what is told of a service that has come into a state. Who withdraws a listing knows it.
func cameTo(state catalog.State) []letter.Kind {
	switch state {
	case catalog.Listed:
		return []letter.Kind{letter.ServiceRelisted}
	case catalog.Delisted:
		return []letter.Kind{letter.ServiceDelisted}
	case catalog.Suspended:
		return []letter.Kind{letter.ServiceSuspended}
	case catalog.Held:
		return []letter.Kind{letter.ServiceHeld}
	case catalog.Retired:
		return nil
	}
	return nil
}

const toldStrikeSQL = `
SELECT state, opened_at, (SELECT count(*) FROM strike_deliveries WHERE strike_id = strikes.id) FROM strikes WHERE id = $1`

// toldStrike reads a strike as its provider may see it.
func toldStrike(ctx context.Context, tx pgx.Tx, id uuid.UUID) (*letter.Strike, error) {
	s := letter.Strike{ID: id, Evidence: []letter.Evidence{}}
	var opened time.Time
	if err := tx.QueryRow(ctx, toldStrikeSQL, id).Scan(&s.State, &opened, &s.Deliveries); err != nil {
		return nil, fmt.Errorf("read what to tell of strike %s: %w", id, err)
	}
	s.OpenedAt = letter.TimeText(opened)
	rows, err := tx.Query(ctx, evidenceSQL, []uuid.UUID{id}, toldEvidence/2)
	if err != nil {
		return nil, fmt.Errorf("read what to tell of strike %s: %w", id, err)
	}
	evidence, err := pgx.CollectRows(rows, scanEvidence)
	if err != nil {
		return nil, fmt.Errorf("read what to tell of strike %s: %w", id, err)
	}
	for _, e := range evidence {
		s.Evidence = append(s.Evidence, toldOfEvidence(e))
	}
	return &s, nil
}

// begun is the beginning of a text, of so many bytes at most.
func begun(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// toldOfEvidence is what the API shows of a delivery to the provider of its service, with a path of bounded length. A test of the door compares.
func toldOfEvidence(e strikes.Evidence) letter.Evidence {
	out := letter.Evidence{Call: e.Call, Trial: e.Trial, AskedAt: letter.TimeText(e.AskedAt), Recorded: letter.TimeText(e.RecordedAt), Source: e.Network.String(),
		Origin: string(e.Origin), Method: e.Method, Path: begun(e.Path, toldPath), Status: e.Status, Latency: float64(e.Latency.Microseconds()) / 1000,
		Reason: string(e.Reason), Detail: e.Detail, Error: e.Error, Excused: e.Excused}
	if e.Payer != (common.Address{}) {
		out.Payer = e.Payer.Hex()
	}
	if e.Said.Bytes > 0 {
		out.Answer = &letter.Said{ContentType: e.Said.ContentType, Snippet: e.Said.Snippet, Binary: e.Said.Binary(), Bytes: e.Said.Bytes, Cut: e.Said.Cut,
			SHA256: hex.EncodeToString(e.Said.SHA256)}
	}
	if e.Others != nil {
		out.Others = &letter.Others{Asked: e.Others.Asked, Failed: e.Others.Failed}
	}
	return out
}

const heldSQL = `
SELECT slug, name, state FROM services WHERE id = $1`

// tellHeld writes to the provider of a service that is held by what was measured. Strikes have no part in it.
func tellHeld(ctx context.Context, tx pgx.Tx, service uuid.UUID, reason string) error {
	facts := letter.Facts{Reason: reason, By: catalog.System.Name, Next: "it is held and gets no calls"}
	if err := tx.QueryRow(ctx, heldSQL, service).Scan(&facts.Service, &facts.Name, &facts.State); err != nil {
		return fmt.Errorf("read what to tell of service %s: %w", service, err)
	}
	return writeLetters(ctx, tx, telling{service: service, kinds: cameTo(catalog.Held)}, facts)
}
