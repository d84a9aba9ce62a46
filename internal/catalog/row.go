package catalog

import (
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/shopspring/decimal"
)

// columnsSQL is a service with one of its endpoints and that endpoint's prices, the current one first. $1 is how long an older price
// stays acceptable after it was followed by another. Everything is read by one statement, so no endpoint is ever seen without its
// service or its price. Nulls in lists, which only a bad row has, are left out: they would keep every other service from being read.
// What is sealed comes with the first endpoint alone, which is the one that the service is made of.
const columnsSQL = `
SELECT s.id, coalesce(s.owner_id, '00000000-0000-0000-0000-000000000000'::uuid), s.slug, s.name, s.description, array_remove(s.tags, NULL), s.base_url, s.probe_method, s.probe_path, s.probe_statuses, s.probe_body,
       coalesce(s.capacity_tenths_per_second, 0), coalesce(s.capacity_concurrency, 0),
       s.state, s.state_cause, s.state_actor, s.state_by, s.state_reason, s.state_since, s.created_at, s.revision, s.base_url_since,
       coalesce(s.notice_email, ''), coalesce(s.notice_webhook, ''),
       h.names, CASE WHEN row_number() OVER (PARTITION BY s.id ORDER BY e.id) = 1 THEN h.sealed END, h.set_at,
       CASE WHEN row_number() OVER (PARTITION BY s.id ORDER BY e.id) = 1 THEN x.sealed END, x.since,
       CASE WHEN row_number() OVER (PARTITION BY s.id ORDER BY e.id) = 1 THEN n.sealed END, n.since,
       e.id, e.method, e.path, e.description, e.mime_type, e.input_schema, e.input_example, e.output_schema, e.output_example,
       array_remove(e.served_statuses, NULL), e.timeout_ms, e.max_response_bytes, e.trial_calls_per_day, coalesce(e.trial_calls_per_caller, 0), e.stream, e.idle_timeout_ms, e.retired_at IS NOT NULL,
       p.revisions, p.prices, p.untils`

const pricesSQL = `
  LEFT JOIN LATERAL (
	SELECT array_agg(revision ORDER BY revision DESC) AS revisions,
	       array_agg(price_usd::text ORDER BY revision DESC) AS prices,
	       array_agg(until ORDER BY revision DESC) AS untils
	  FROM (SELECT revision, price_usd, lead(since) OVER (ORDER BY revision) + $1::interval AS until
	          FROM endpoint_prices WHERE endpoint_id = e.id) AS revised
	 WHERE until IS NULL OR until > market_now()
  ) AS p ON true` + secretsSQL

// secretsSQL is what a service wants to see in our requests, sealed, and belongs to the same statement: read apart, the headers of a new host
// could meet the old one.
const secretsSQL = `
  LEFT JOIN LATERAL (
	SELECT array_agg(name ORDER BY name) AS names, array_agg(sealed ORDER BY name) AS sealed, array_agg(set_at ORDER BY name) AS set_at
	  FROM service_headers WHERE service_id = s.id
  ) AS h ON true
  LEFT JOIN LATERAL (
	SELECT sealed, since FROM service_secrets WHERE service_id = s.id AND since <= market_now() ORDER BY since DESC, id DESC LIMIT 1
  ) AS x ON true
  LEFT JOIN LATERAL (
	SELECT sealed, since FROM service_secrets WHERE service_id = s.id AND since > market_now() ORDER BY since, id LIMIT 1
  ) AS n ON true`

// A row is what columnsSQL reads. The endpoint's columns are null for a service without endpoints.
type row struct {
	service     Service
	statuses    string
	headers     headerColumns
	endpointID  *uuid.UUID
	method      *string
	path        *string
	description *string
	mimeType    *string
	endpoint    Endpoint
	timeoutMS   *int
	responseMax *int
	trialCalls  *int
	perCaller   *int
	stream      *bool
	idleMS      *int
	retired     *bool
	revisions   []int64
	prices      []string
	untils      []*time.Time
}

// headerColumns are the service's secrets, as the database keeps them.
type headerColumns struct {
	names  []string
	sealed [][]byte
	setAt  []time.Time
	secret []byte
	waits  []byte
	since  *time.Time
	next   *time.Time
}

func scanRow(rows pgx.Rows) (row, error) {
	var r row
	s, e, h := &r.service, &r.endpoint, &r.headers
	err := rows.Scan(&s.ID, &s.OwnerID, &s.Slug, &s.Name, &s.Description, &s.Tags, &s.BaseURL, &s.Probe.Method, &s.Probe.Path, &r.statuses,
		(*[]byte)(&s.Probe.Body),
		&s.Capacity.Rate, &s.Capacity.Places,
		&s.State, &s.StateCause, &s.StateBy.Actor, &s.StateBy.Name, &s.StateReason, &s.StateSince, &s.CreatedAt, &s.Revision, &s.BaseURLSince,
		&s.Notices.Email, &s.Notices.Webhook,
		&h.names, &h.sealed, &h.setAt, &h.secret, &h.since, &h.waits, &h.next,
		&r.endpointID, &r.method, &r.path, &r.description, &r.mimeType,
		(*[]byte)(&e.InputSchema), (*[]byte)(&e.InputExample), (*[]byte)(&e.OutputSchema), (*[]byte)(&e.OutputExample),
		&e.ServedStatuses, &r.timeoutMS, &r.responseMax, &r.trialCalls, &r.perCaller, &r.stream, &r.idleMS, &r.retired,
		&r.revisions, &r.prices, &r.untils)
	if err != nil {
		return row{}, fmt.Errorf("scan service: %w", err)
	}
	return r, nil
}

// endpointOf returns the row's endpoint, nil where the service has none.
func (r *row) endpointOf() *Endpoint {
	if r.endpointID == nil {
		return nil
	}
	e := r.endpoint
	e.ID, e.ServiceID = *r.endpointID, r.service.ID
	e.Method, e.Path, e.Description, e.MIMEType = *r.method, *r.path, *r.description, *r.mimeType
	e.Timeout, e.IdleTimeout, e.Stream = milliseconds(*r.timeoutMS), milliseconds(*r.idleMS), *r.stream
	e.MaxResponseBytes, e.TrialCallsPerDay, e.TrialCallsPerCaller, e.Retired = *r.responseMax, *r.trialCalls, *r.perCaller, *r.retired
	for i, text := range r.prices {
		usd, err := decimal.NewFromString(text)
		if err != nil {
			e.Broken = "its price can't be read"
			continue
		}
		p := Price{Revision: r.revisions[i], USD: usd}
		if r.untils[i] != nil {
			p.Until = *r.untils[i]
		}
		e.Prices = append(e.Prices, p)
	}
	return &e
}

// serviceOf returns the row's service, without its endpoints. Its secrets are opened where somebody has the keys.
func (r *row) serviceOf(secrets *Secrets) *Service {
	s := r.service
	var err error
	if s.Probe.Statuses, err = ParseStatuses(r.statuses); err != nil {
		s.Broken = "its probe statuses are malformed"
	}
	for i, name := range r.headers.names {
		s.Headers = append(s.Headers, ServiceHeader{Name: name, SetAt: r.headers.setAt[i]})
	}
	if r.headers.since != nil {
		s.Secret.Since = *r.headers.since
	}
	if r.headers.next != nil {
		s.Secret.Next = *r.headers.next
	}
	if secrets != nil {
		secrets.open(&s, r.headers.sealed, r.headers.secret, r.headers.waits)
	}
	return &s
}

// gather makes services out of rows that come ordered by service. What is wrong with one row stays with that row. before holds
// endpoints that were prepared earlier; secrets is nil where nobody asks the services anything.
func gather(rows pgx.Rows, before map[uuid.UUID]*Endpoint, secrets *Secrets) ([]*Service, error) {
	defer rows.Close()
	var services []*Service
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return nil, err
		}
		if len(services) == 0 || services[len(services)-1].ID != r.service.ID {
			services = append(services, r.serviceOf(secrets))
		}
		if e := r.endpointOf(); e != nil {
			s := services[len(services)-1]
			s.Endpoints = append(s.Endpoints, e)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read services: %w", err)
	}
	for _, s := range services {
		// The problem is in Broken of the service or the endpoint; the others go on selling.
		_ = s.prepare(before)
	}
	return services, nil
}

// Prepare makes a service that was put together by hand ready to be routed to and asked, as one from the database is; the error is the
// first problem, and Broken of the service and its endpoints says the same.
func (s *Service) Prepare() error { return s.prepare(nil) }

// prepare parses and compiles what the request path needs, and marks what can't be. It returns the first problem.
func (s *Service) prepare(before map[uuid.UUID]*Endpoint) error {
	var first error
	base, err := url.Parse(s.BaseURL)
	if err == nil && (base.Host == "" || (base.Scheme != "http" && base.Scheme != "https")) {
		err = fmt.Errorf("base URL of service %s is not absolute", s.Slug)
	}
	if err == nil {
		err = checkProbePath(s.Probe.Path)
	}
	if err != nil {
		s.Broken, first = "its base URL or its probe is malformed", err
	} else {
		s.base = base
	}
	for _, e := range s.Endpoints {
		if err := e.prepare(before[e.ID]); err != nil {
			e.Broken = "its path or a schema is malformed"
			first = err
		}
		if _, ok := e.Price(); !ok {
			e.Broken = "it has no price"
		}
	}
	return first
}

// URL returns where a request for an escaped path of the service goes. The path is appended to the base URL's own, and what comes out
// has the base URL's scheme and host.
func (s *Service) URL(escapedPath, rawQuery string) (*url.URL, error) {
	if s.base == nil {
		return nil, fmt.Errorf("service %s has no usable base URL", s.Slug)
	}
	u := *s.base
	path := s.base.EscapedPath() + escapedPath
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return nil, fmt.Errorf("build URL of service %s: %w", s.Slug, err)
	}
	u.Path, u.RawPath, u.RawQuery = decoded, path, rawQuery
	if u.EscapedPath() != path {
		return nil, fmt.Errorf("build URL of service %s: the path would be sent in another spelling", s.Slug)
	}
	return &u, nil
}
