package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"market/internal/call"
	"market/internal/config"
	"market/internal/plan"
	"market/internal/refusal"
)

// An Edit is a change of a listing, as it came.
type Edit struct {
	Patch []byte // a JSON object; see document.patched
	By    Author
	// Revisions are those of the service on which the change may rest; nil: on whichever stands.
	Revisions []int64
	Secrets   Secrets // to seal headers with
}

// Edited is what came of an edit.
type Edited struct {
	Service  Service
	Endpoint *Endpoint // of the service, where one was edited
	Changed  bool      // false: everything was so already
	// NoticeSecret signs what is sent to the webhook that the edit named first. It is shown once; zero where none was made.
	NoticeSecret config.Secret
}

const updateServiceSQL = `
UPDATE services
   SET name = $2, description = $3, tags = $4, base_url = $5, probe_method = $6, probe_path = $7, probe_statuses = $8,
       capacity_tenths_per_second = NULLIF($9, 0), capacity_concurrency = NULLIF($10, 0), probe_body = $11,
       base_url_since = CASE WHEN base_url = $5 THEN base_url_since ELSE market_now() END,
       notice_email = NULLIF($12, ''), notice_webhook = NULLIF($13, '')
 WHERE id = $1`

// EditService changes what a service says of itself. What comes out is checked as a whole, as if it were new, with every problem at once; the same
// edit again changes nothing and makes no revision. It holds for every call that is asked from then on.
func (st Store) EditService(ctx context.Context, tx pgx.Tx, slug string, edit Edit, rules Rules) (Edited, error) {
	s, err := st.open(ctx, tx, slug, edit)
	if err != nil {
		return Edited{}, err
	}
	d, err := s.ParsePatch(edit.Patch, rules)
	if err != nil {
		return Edited{}, err
	}
	then := s
	then.Name, then.Description, then.Tags, then.BaseURL, then.Probe, then.Capacity = d.Name, d.Description, d.Tags, d.BaseURL, d.Probe, d.Capacity
	then.Notices = d.Notices
	if !sameValue(map[string]any(s.document()), map[string]any(then.document())) {
		_, err = tx.Exec(ctx, updateServiceSQL, s.ID, then.Name, then.Description, then.Tags, then.BaseURL, then.Probe.Method, then.Probe.Path,
			then.Probe.Statuses.String(), int(then.Capacity.Rate), then.Capacity.Places, nullable(then.Probe.Body),
			then.Notices.Email, then.Notices.Webhook)
		if err != nil {
			return Edited{}, fmt.Errorf("edit service %s: %w", slug, err)
		}
	}
	made, err := edit.Secrets.noticeSecret(ctx, tx, s.ID, then.Notices)
	if err != nil {
		return Edited{}, err
	}
	edited, err := st.editHeaders(ctx, tx, &s, d.Headers, edit)
	edited.NoticeSecret = made
	return edited, err
}

// EditHeaders changes the headers of a service and nothing else.
func (st Store) EditHeaders(ctx context.Context, tx pgx.Tx, slug string, change HeaderChange, edit Edit) (Edited, error) {
	s, err := st.open(ctx, tx, slug, edit)
	if err != nil {
		return Edited{}, err
	}
	return st.editHeaders(ctx, tx, &s, change, edit)
}

// EditSecret makes another secret for a service: see Secrets.NewSecret. What is kept of it is who asked for it, and from when it is sent.
func (st Store) EditSecret(ctx context.Context, tx pgx.Tx, slug string, after time.Duration, edit Edit) (config.Secret, time.Time, Edited, error) {
	s, err := st.open(ctx, tx, slug, edit)
	if err != nil {
		return config.Secret{}, time.Time{}, Edited{}, err
	}
	value, since, err := edit.Secrets.NewSecret(ctx, tx, s.ID, after)
	if err != nil {
		return config.Secret{}, time.Time{}, Edited{}, err
	}
	sentFrom := func(at time.Time) document {
		if at.IsZero() {
			return document{}
		}
		return document{"secret": map[string]any{"sent_from": at.UTC().Format(instant)}}
	}
	s.Revision, err = revise(ctx, tx, s.ID, revised{by: edit.By, before: sentFrom(s.Secret.Since), after: sentFrom(since)})
	return value, since, Edited{Service: s, Changed: true}, err
}

// editHeaders ends an edit of a service that stood as was: it changes the headers, and keeps what is different now.
func (st Store) editHeaders(ctx context.Context, tx pgx.Tx, was *Service, change HeaderChange, edit Edit) (Edited, error) {
	if !change.empty() {
		if _, err := edit.Secrets.SetHeaders(ctx, tx, was.ID, change); err != nil {
			return Edited{}, err
		}
	}
	s, err := st.Find(ctx, tx, was.Slug)
	if err != nil {
		return Edited{}, err
	}
	before, after := was.document(), s.document()
	if sameValue(map[string]any(before), map[string]any(after)) {
		return Edited{Service: s}, nil
	}
	s.Revision, err = revise(ctx, tx, s.ID, revised{by: edit.By, before: before.without(after), after: after.without(before)})
	return Edited{Service: s, Changed: true}, err
}

// ParsePatch reads the body of a request that changes a service, and returns what the service is to say of itself then.
func (s *Service) ParsePatch(body []byte, rules Rules) (Draft, error) {
	f, problems, err := openPatch(s.document(), body)
	if err != nil {
		return Draft{}, err
	}
	var d Draft
	f.service(&d, rules, true)
	if f.cleared[headersMember] {
		d.Headers = HeaderChange{Replace: true}
	}
	s.reportLeftHeaders(f, d)
	f.fixed("slug", s.Slug, "cannot be changed: links and payments name it")
	if f.given("endpoints") {
		f.read["endpoints"] = true
		f.wrong("endpoints", "are changed one by one, each at its own address")
	}
	f.end()
	return d, refused(*problems)
}

const updateEndpointSQL = `
UPDATE endpoints
   SET description = $2, mime_type = $3, input_schema = $4, input_example = $5, output_schema = $6, output_example = $7, served_statuses = $8,
       timeout_ms = $9, max_response_bytes = $10, trial_calls_per_day = $11, stream = $12, idle_timeout_ms = $13,
       trial_calls_per_caller = NULLIF($14, 0)
 WHERE id = $1`

// EditEndpoint changes everything of an endpoint but its method and path, as EditService does for its service. The price before stays acceptable
// for the quote validity; everything else holds at once.
func (st Store) EditEndpoint(ctx context.Context, tx pgx.Tx, slug string, id uuid.UUID, edit Edit, rules Rules) (Edited, error) {
	s, err := st.open(ctx, tx, slug, edit)
	if err != nil {
		return Edited{}, err
	}
	e, err := onShelf(ctx, tx, &s, id)
	if err != nil {
		return Edited{}, err
	}
	before := e.document()
	d, err := e.ParsePatch(edit.Patch, rules)
	if err != nil {
		return Edited{}, err
	}
	now := d.endpoint(s.ID)
	now.Prices = []Price{{USD: d.PriceUSD}}
	after := now.document()
	if sameValue(map[string]any(before), map[string]any(after)) {
		return Edited{Service: s, Endpoint: e}, nil
	}
	// What stands may stay, also under a smaller plan; nothing is added to it.
	if now.TrialCallsPerDay > e.TrialCallsPerDay {
		if err := st.allows(ctx, tx, s.ID, plan.KeyTrialCallsPerDay, int64(now.TrialCallsPerDay)); err != nil {
			return Edited{}, at(err, trialsMember)
		}
	}
	_, err = tx.Exec(ctx, updateEndpointSQL, id, now.Description, now.MIMEType, nullable(now.InputSchema), nullable(now.InputExample),
		nullable(now.OutputSchema), nullable(now.OutputExample), now.ServedStatuses, now.Timeout.Milliseconds(), now.MaxResponseBytes, now.TrialCallsPerDay,
		now.Stream, now.IdleTimeout.Milliseconds(), now.TrialCallsPerCaller)
	if err != nil {
		return Edited{}, fmt.Errorf("edit endpoint %s: %w", id, err)
	}
	if before["price_usd"] != after["price_usd"] {
		if _, err := insertPrice(ctx, tx, id, d.PriceUSD); err != nil {
			return Edited{}, err
		}
	}
	if _, err := revise(ctx, tx, s.ID, revised{endpoint: &id, by: edit.By, before: before.without(after), after: after.without(before)}); err != nil {
		return Edited{}, err
	}
	if s, err = st.Find(ctx, tx, slug); err != nil {
		return Edited{}, err
	}
	e, _ = s.endpoint(id)
	return Edited{Service: s, Endpoint: e, Changed: true}, nil
}

// ParsePatch reads the body of a request that changes an endpoint, and returns what it is to become.
func (e *Endpoint) ParsePatch(body []byte, rules Rules) (EndpointDraft, error) {
	before := e.document()
	f, problems, err := openPatch(before, body)
	if err != nil {
		return EndpointDraft{}, err
	}
	const instead = "cannot be changed: callers paid for this one; add another endpoint instead, and retire this one"
	f.fixed("method", e.Method, instead)
	f.fixed("path", e.Path, instead)
	// A floor that was raised, or any other rule of later, is no reason to refuse another change of a price that stands.
	rules.stands, _ = before["price_usd"].(string)
	d := f.endpoint(rules)
	return d, refused(*problems)
}

const lockSlugSQL = `
SELECT 1 FROM services WHERE slug = $1 FOR NO KEY UPDATE`

// At locks a service for a change that rests on one of these revisions, nil for any, and returns it as it stands.
func (st Store) At(ctx context.Context, tx pgx.Tx, slug string, revisions []int64) (Service, error) {
	s, err := st.lockNamed(ctx, tx, slug)
	if err != nil {
		return Service{}, err
	}
	return s, s.restsOn(revisions)
}

// open is At for an edit, which what is retired does not get any more.
func (st Store) open(ctx context.Context, tx pgx.Tx, slug string, edit Edit) (Service, error) {
	s, err := st.lockNamed(ctx, tx, slug)
	switch {
	case err != nil:
		return Service{}, err
	case s.State == Retired:
		return Service{}, refusal.New(call.Conflict, "the service is retired, which is for good")
	}
	return s, s.restsOn(edit.Revisions)
}

// lockNamed locks a service in a statement of its own, so that what is read then is the newest.
func (st Store) lockNamed(ctx context.Context, tx pgx.Tx, slug string) (Service, error) {
	if !slugForm.MatchString(slug) {
		return Service{}, refusal.New(call.NotFound, "no such service")
	}
	var one int
	if err := tx.QueryRow(ctx, lockSlugSQL, slug).Scan(&one); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return Service{}, fmt.Errorf("lock service %s: %w", slug, err)
	}
	return st.Find(ctx, tx, slug)
}

func (s *Service) restsOn(revisions []int64) error {
	if revisions != nil && !slices.Contains(revisions, s.Revision) {
		return refusal.New(call.RevisionChanged, "somebody changed the service meanwhile: it stands at revision %d; read it again", s.Revision)
	}
	return nil
}

const retiredEndpointSQL = `
SELECT count(*) FROM endpoints WHERE id = $1 AND service_id = $2`

// onShelf returns an endpoint that is on the shelf of its service.
func onShelf(ctx context.Context, tx pgx.Tx, s *Service, id uuid.UUID) (*Endpoint, error) {
	if e, ok := s.endpoint(id); ok {
		return e, nil
	}
	var retired int
	if err := tx.QueryRow(ctx, retiredEndpointSQL, id, s.ID).Scan(&retired); err != nil {
		return nil, fmt.Errorf("find endpoint %s: %w", id, err)
	}
	if retired > 0 {
		return nil, refusal.New(call.Conflict, "the endpoint is retired, which is for good; add another one")
	}
	return nil, refusal.New(call.NotFound, "the service has no such endpoint")
}

func (s *Service) endpoint(id uuid.UUID) (*Endpoint, bool) {
	at := slices.IndexFunc(s.Endpoints, func(e *Endpoint) bool { return e.ID == id })
	if at < 0 {
		return nil, false
	}
	return s.Endpoints[at], true
}

// openPatch returns a form over what a listing is to become.
func openPatch(before document, body []byte) (*form, *[]refusal.Field, error) {
	problems := new([]refusal.Field)
	f, err := openForm(body, problems)
	if err != nil {
		return nil, nil, err
	}
	f.cleared = map[string]bool{}
	for name, v := range f.members {
		f.cleared[name] = v == nil
	}
	delete(before, headersMember) // nothing is laid over a header but another one
	f.members = before.patched(f.members)
	return f, problems, nil
}

// reportLeftHeaders refuses to leave headers behind that were set for another host: they are never sent anywhere else, and a service without them
// would refuse our requests.
func (s *Service) reportLeftHeaders(f *form, d Draft) {
	if origin(d.BaseURL) == origin(s.BaseURL) || d.BaseURL == "" || d.Headers.Replace {
		return
	}
	for _, h := range s.Headers {
		if _, set := d.Headers.Set[h.Name]; !set && !slices.Contains(d.Headers.Remove, h.Name) {
			f.wrong(headersMember, "must set %s again, or remove it with null: it is for the host of the base URL alone", h.Name)
		}
	}
}

// fixed reads a member that may be repeated and not changed.
func (f *form) fixed(name, stands, why string) {
	f.read[name] = true
	if f.given(name) && f.members[name] != stands {
		f.wrong(name, "%s", why)
		f.members[name] = stands // and nothing else is wrong because of it
	}
}
