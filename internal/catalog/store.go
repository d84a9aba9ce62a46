package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"

	"market/internal/call"
	"market/internal/plan"
	"market/internal/refusal"
)

// Store keeps services. What is one change to people and several rows here takes a transaction.
type Store struct {
	// Plans are what the accounts that own services may have; nil: what is listed here has no limit but our own.
	Plans plan.Table
}

// A slug is never given out again, so a link to a retired service can't lead to somebody else's.
const createSQL = `
INSERT INTO services (id, slug, name, description, tags, base_url, probe_method, probe_path, probe_statuses, probe_body,
	capacity_tenths_per_second, capacity_concurrency, state_actor, state_by, notice_email, notice_webhook, owner_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULLIF($11, 0), NULLIF($12, 0), $13, $14, NULLIF($15, ''), NULLIF($16, ''), $17)
ON CONFLICT (slug) DO NOTHING
RETURNING state, state_cause, state_actor, state_by, state_reason, state_since, created_at, revision, base_url_since`

// Create stores a checked draft and lists it. A taken slug is a refusal with Conflict. A draft of nobody is the program's own.
func (st Store) Create(ctx context.Context, tx pgx.Tx, d Draft) (Service, error) {
	if err := st.mayList(ctx, tx, d); err != nil {
		return Service{}, err
	}
	by := cmp.Or(d.By, System)
	s := Service{
		ID: call.NewID(), OwnerID: d.Owner, Slug: d.Slug, Name: d.Name, Description: d.Description, Tags: d.Tags, BaseURL: d.BaseURL, Probe: d.Probe,
		Capacity: d.Capacity, Notices: d.Notices,
	}
	err := tx.QueryRow(ctx, createSQL, s.ID, s.Slug, s.Name, s.Description, s.Tags, s.BaseURL,
		s.Probe.Method, s.Probe.Path, s.Probe.Statuses.String(), nullable(s.Probe.Body), int(s.Capacity.Rate), s.Capacity.Places, by.Actor, by.Name, s.Notices.Email, s.Notices.Webhook,
		idOrNull(s.OwnerID)).
		Scan(&s.State, &s.StateCause, &s.StateBy.Actor, &s.StateBy.Name, &s.StateReason, &s.StateSince, &s.CreatedAt, &s.Revision, &s.BaseURLSince)
	if errors.Is(err, pgx.ErrNoRows) {
		no := refusal.New(call.Conflict, "the slug %s is taken", d.Slug)
		no.Fields = []refusal.Field{{Name: "/slug", Message: "is taken"}}
		return Service{}, no
	}
	if err != nil {
		return Service{}, fmt.Errorf("create service %s: %w", d.Slug, err)
	}
	for _, draft := range d.Endpoints {
		e, err := insertEndpoint(ctx, tx, s.ID, draft)
		if err != nil {
			return Service{}, err
		}
		s.Endpoints = append(s.Endpoints, e)
	}
	if err := s.Prepare(); err != nil {
		return Service{}, fmt.Errorf("prepare service %s: %w", d.Slug, err)
	}
	return s, nil
}

const routesSQL = `
SELECT method, path FROM endpoints WHERE service_id = $1 AND retired_at IS NULL LIMIT 1000`

// AddEndpoint puts one more endpoint on the shelf of a service. One that would answer the same requests as another is a refusal with
// Conflict.
func (st Store) AddEndpoint(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID, d EndpointDraft, by Author) (*Endpoint, error) {
	// Two additions at once must see each other, so they wait here.
	state, err := st.Lock(ctx, tx, serviceID)
	if err != nil {
		return nil, err
	}
	if state == Retired {
		return nil, refusal.New(call.Conflict, "the service is retired, which is for good")
	}
	rows, err := tx.Query(ctx, routesSQL, serviceID)
	if err != nil {
		return nil, fmt.Errorf("read routes of service %s: %w", serviceID, err)
	}
	type route struct{ Method, Path string }
	routes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[route])
	if err != nil {
		return nil, fmt.Errorf("read routes of service %s: %w", serviceID, err)
	}
	if len(routes) >= endpointsMax {
		return nil, refusal.New(call.Conflict, "a service must not have more than %d endpoints", endpointsMax)
	}
	if err := st.mayAdd(ctx, tx, serviceID, int64(len(routes)+1), by); err != nil {
		return nil, err
	}
	if err := st.allows(ctx, tx, serviceID, plan.KeyTrialCallsPerDay, int64(d.TrialCallsPerDay)); err != nil {
		return nil, at(err, trialsMember)
	}
	same := func(r route) bool {
		t, err := ParseTemplate(r.Path)
		return err == nil && r.Method == d.Method && t.Shape() == d.template.Shape()
	}
	if slices.ContainsFunc(routes, same) {
		return nil, refusal.New(call.Conflict, "another endpoint answers %s %s", d.Method, d.Path)
	}
	e, err := insertEndpoint(ctx, tx, serviceID, d)
	if err != nil {
		return nil, err
	}
	if _, err := revise(ctx, tx, serviceID, revised{endpoint: &e.ID, by: by, after: e.document()}); err != nil {
		return nil, err
	}
	return e, e.prepare(nil)
}

const insertEndpointSQL = `
INSERT INTO endpoints (id, service_id, method, path, description, mime_type, input_schema, input_example, output_schema, output_example,
	served_statuses, timeout_ms, max_response_bytes, trial_calls_per_day, stream, idle_timeout_ms, trial_calls_per_caller)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, NULLIF($17, 0))`

// endpoint is what a draft becomes; its id and its price come with its rows.
func (d EndpointDraft) endpoint(serviceID uuid.UUID) *Endpoint {
	return &Endpoint{
		ServiceID: serviceID, Method: d.Method, Path: d.Path, Description: d.Description, MIMEType: d.MIMEType,
		InputSchema: d.InputSchema, InputExample: d.InputExample, OutputSchema: d.OutputSchema, OutputExample: d.OutputExample,
		ServedStatuses: d.ServedStatuses, Timeout: d.Timeout, MaxResponseBytes: d.MaxResponseBytes, TrialCallsPerDay: d.TrialCallsPerDay,
		TrialCallsPerCaller: d.TrialCallsPerCaller,
		Stream:              d.Stream, IdleTimeout: d.IdleTimeout,
	}
}

func insertEndpoint(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID, d EndpointDraft) (*Endpoint, error) {
	e := d.endpoint(serviceID)
	e.ID = call.NewID()
	_, err := tx.Exec(ctx, insertEndpointSQL, e.ID, e.ServiceID, e.Method, e.Path, e.Description, e.MIMEType,
		nullable(e.InputSchema), nullable(e.InputExample), nullable(e.OutputSchema), nullable(e.OutputExample),
		e.ServedStatuses, e.Timeout.Milliseconds(), e.MaxResponseBytes, e.TrialCallsPerDay, e.Stream, e.IdleTimeout.Milliseconds(), e.TrialCallsPerCaller)
	if err != nil {
		return nil, fmt.Errorf("insert endpoint %s %s: %w", e.Method, e.Path, err)
	}
	p, err := insertPrice(ctx, tx, e.ID, d.PriceUSD)
	if err != nil {
		return nil, err
	}
	e.Prices = []Price{p}
	return e, nil
}

func idOrNull(id uuid.UUID) *uuid.UUID {
	if id == (uuid.UUID{}) {
		return nil
	}
	return &id
}

// nullable keeps an absent JSON value apart from the JSON null.
func nullable(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return []byte(raw)
}

const insertPriceSQL = `
INSERT INTO endpoint_prices (endpoint_id, price_usd) VALUES ($1, $2) RETURNING revision`

func insertPrice(ctx context.Context, tx pgx.Tx, endpointID uuid.UUID, usd decimal.Decimal) (Price, error) {
	p := Price{USD: usd}
	if err := tx.QueryRow(ctx, insertPriceSQL, endpointID, usd).Scan(&p.Revision); err != nil {
		return Price{}, fmt.Errorf("insert price of endpoint %s: %w", endpointID, err)
	}
	return p, nil
}

const retireEndpointSQL = `
UPDATE endpoints SET retired_at = market_now() WHERE id = $1 AND retired_at IS NULL`

// RetireEndpoint takes an endpoint of a service off the shelf for good, and says whether it was on it.
func (st Store) RetireEndpoint(ctx context.Context, tx pgx.Tx, s *Service, endpointID uuid.UUID, by Author) (bool, error) {
	if _, err := st.Lock(ctx, tx, s.ID); err != nil {
		return false, err
	}
	now, err := st.Find(ctx, tx, s.Slug) // s was read before the lock, and the history says what stood last
	if err != nil {
		return false, err
	}
	gone, onShelf := now.endpoint(endpointID)
	if !onShelf {
		return false, nil
	}
	tag, err := tx.Exec(ctx, retireEndpointSQL, endpointID)
	if err != nil {
		return false, fmt.Errorf("retire endpoint %s: %w", endpointID, err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	_, err = revise(ctx, tx, s.ID, revised{endpoint: &endpointID, by: by, before: gone.document()})
	return err == nil, err
}

// The lock is alone in its statement: what follows in the transaction then sees everything that was committed before it was had. NO KEY,
// because every insert of a call or a delivery takes a share of its service's key: a success that had cleared a strike would wait for
// whoever holds the row, and that one for the strike.
const lockSQL = `
SELECT state FROM services WHERE id = $1 FOR NO KEY UPDATE`

// Lock makes the transaction the only one that changes a service, its strikes or its endpoints, and returns the service's state.
func (Store) Lock(ctx context.Context, tx pgx.Tx, serviceID uuid.UUID) (State, error) {
	var state State
	err := tx.QueryRow(ctx, lockSQL, serviceID).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", refusal.New(call.NotFound, "no such service")
	}
	if err != nil {
		return "", fmt.Errorf("lock service %s: %w", serviceID, err)
	}
	return state, nil
}
