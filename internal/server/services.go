package server

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"market/internal/call"
	"market/internal/capacity"
	"market/internal/catalog"
	"market/internal/config"
	"market/internal/delivery"
	"market/internal/refusal"
)

// createService serves POST /api/v1/services.
func (s *Server) createService(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	draft, err := catalog.ParseDraft(body, s.rules)
	if err != nil {
		return err
	}
	if err := s.vetHost(c, baseURLMember, draft.BaseURL); err != nil {
		return err
	}
	if err := s.vetWebhook(c, catalog.Notices{}, draft.Notices); err != nil {
		return err
	}
	draft.By, draft.Owner = authorOf(c), ownerFor(c)
	var made catalog.Service
	var secret, noticeSecret config.Secret
	ctx := c.Request().Context()
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		if made, err = s.store.Create(ctx, tx, draft); err != nil {
			return err
		}
		if made.Headers, err = s.secrets.SetHeaders(ctx, tx, made.ID, draft.Headers); err != nil {
			return err
		}
		if secret, made.Secret.Since, err = s.secrets.NewSecret(ctx, tx, made.ID, 0); err != nil || made.Notices.Webhook == "" {
			return err
		}
		noticeSecret, _, err = s.secrets.NewNoticeSecret(ctx, tx, made.ID)
		return err
	})
	if err != nil {
		return err
	}
	s.reload(c)
	c.Response().Header().Set(echo.HeaderLocation, s.publicURL+"/api/v1/services/"+made.Slug)
	setRevision(c, &made)
	view, err := s.ownersView(c, &made)
	if err != nil {
		return err
	}
	view.Secret.Value = secret.Reveal()
	view.Notices = noticesViewOf(made.Notices, noticeSecret)
	view.Checks = []checkView{s.checkProbe(c, s.asSold(&made))}
	for _, e := range view.Endpoints {
		s.logWarnings(made.Slug, e)
	}
	return s.writeJSON(c, http.StatusCreated, typeJSON, view)
}

// asSold is a service with the secrets that its requests carry, which only the catalog has. Where the catalog could not be read, it is the service
// without them.
func (s *Server) asSold(v *catalog.Service) *catalog.Service {
	if sold, ok := s.catalog.Current().Service(v.ID); ok {
		return sold
	}
	return v
}

// serviceBySlug serves GET /api/v1/services/{slug}, and the same service's page to a browser at /services/{slug}.
func (s *Server) serviceBySlug(c echo.Context) error {
	service, err := s.store.Find(c.Request().Context(), s.db, c.Param("slug"))
	if err != nil {
		return err
	}
	view := s.serviceView(&service)
	c.Response().Header().Set("Vary", "Accept, Authorization")
	setRevision(c, &service)
	if seesAll(c) {
		view, err = s.ownersView(c, &service)
	} else {
		view.Events, err = s.eventViews(c, &service, false)
	}
	if err != nil {
		return err
	}
	tallies, at := s.scores.Of(c.Request().Context(), service.ID)
	if strings.HasPrefix(c.Path(), "/services/") && wantsPage(c.Request()) {
		return s.writeServicePage(c, &service, tallies, at)
	}
	trials, err := s.trialsOf(c, &service)
	if err != nil {
		return err
	}
	view.showTrials(trials)
	view.Record = recordViewOf(at, tallies...)
	check, err := delivery.LastCheckOf(c.Request().Context(), s.db, service.ID)
	if err != nil {
		return err
	}
	view.LastCheck = lastCheckViewOf(check)
	return s.writeJSON(c, http.StatusOK, typeJSON, view)
}

// retireService serves DELETE /api/v1/services/{slug}.
func (s *Server) retireService(c echo.Context) error {
	_, err := s.change(c, func(tx pgx.Tx, service *catalog.Service) error {
		by, reason := authorOf(c), "retired by an admin"
		if by.Actor == catalog.ActorOwner {
			reason = "retired by its owner"
		}
		_, err := s.store.Retire(c.Request().Context(), tx, service.ID, by, reason)
		return err
	})
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// addEndpoint serves POST /api/v1/services/{slug}/endpoints.
func (s *Server) addEndpoint(c echo.Context) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	draft, err := catalog.ParseEndpointDraft(body, s.rules)
	if err != nil {
		return err
	}
	var made *catalog.Endpoint
	service, err := s.change(c, func(tx pgx.Tx, service *catalog.Service) (err error) {
		made, err = s.store.AddEndpoint(c.Request().Context(), tx, service.ID, draft, authorOf(c))
		return err
	})
	if err != nil {
		return err
	}
	return s.writeChanged(c, http.StatusCreated, &service, made)
}

// retireEndpoint serves DELETE /api/v1/services/{slug}/endpoints/{id}.
func (s *Server) retireEndpoint(c echo.Context) error {
	endpoint, _, err := s.endpointOf(c)
	if err != nil {
		return err
	}
	_, err = s.change(c, func(tx pgx.Tx, service *catalog.Service) error {
		_, err := s.store.RetireEndpoint(c.Request().Context(), tx, service, endpoint.ID, authorOf(c))
		return err
	})
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// reload lets whoever changed the catalog see the change here with the next request. Other replicas hear of it by a notification.
func (s *Server) reload(c echo.Context) {
	if err := s.catalog.Load(c.Request().Context(), s.db); err != nil {
		logOf(c).err = err // the change stands, and the notification brings it
	}
}

// endpointOf finds the endpoint of a route in the service of the same route.
func (s *Server) endpointOf(c echo.Context) (*catalog.Endpoint, catalog.Service, error) {
	id, err := idParam(c)
	if err != nil {
		return nil, catalog.Service{}, err
	}
	service, err := s.store.Find(c.Request().Context(), s.db, c.Param("slug"))
	if err != nil {
		return nil, catalog.Service{}, err
	}
	for _, e := range service.Endpoints {
		if e.ID == id {
			return e, service, nil
		}
	}
	return nil, catalog.Service{}, refusal.New(call.NotFound, "the service has no such endpoint")
}

// A serviceView is a listing as anyone may see it.
type serviceView struct {
	Slug        string        `json:"slug"`
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Tags        []string      `json:"tags"`
	BaseURL     string        `json:"base_url"`
	Probe       probeView     `json:"probe"`
	Capacity    *capacityView `json:"capacity,omitempty"` // nil: none is declared
	State       catalog.State `json:"state"`
	StateCause  catalog.Cause `json:"state_cause"`
	StateReason string        `json:"state_reason"`
	StateBy     string        `json:"state_by,omitempty"` // for the owner of the listing alone
	StateSince  string        `json:"state_since"`
	CreatedAt   string        `json:"created_at"`
	// BaseURLSince is when requests began to go to this base URL.
	BaseURLSince string         `json:"base_url_since"`
	Revision     int64          `json:"revision"`
	Broken       string         `json:"broken,omitempty"` // what is wrong with what is stored; it cannot be called
	Endpoints    []endpointView `json:"endpoints"`
	// Headers, Secret and Notices are for the owner of the listing alone.
	Headers []headerView `json:"headers,omitempty"`
	Secret  *secretView  `json:"secret,omitempty"`
	Notices *noticesView `json:"notices,omitempty"` // nil: nobody is told
	// Events are the last changes of the state. They stand where one service is shown, not in lists.
	Events []eventView `json:"events,omitempty"`
	// Checked is the last probe, as this process saw it. It is for the owner of the listing alone.
	Checked *checkedView `json:"checked,omitempty"`
	// LastCheck is when the service was last asked whether it lives though nobody wanted it. It stands where one service is shown, not in lists.
	LastCheck *lastCheckView `json:"last_check,omitempty"`
	// Record is there where a service is read, and not where one is made or where the record could not be read.
	Record *recordView `json:"record,omitempty"`
	// Checks are for whoever has just made the listing.
	Checks []checkView `json:"checks,omitempty"`
}

type probeView struct {
	Method   string   `json:"method"`
	Path     string   `json:"path"`
	Statuses []string `json:"statuses"`
	// Body is for the owner of the listing alone.
	Body json.RawMessage `json:"body,omitempty"`
}

// A capacityView has the members of the draft, those that are declared.
type capacityView struct {
	RequestsPerSecond json.Number `json:"requests_per_second,omitempty"`
	Concurrency       int         `json:"concurrency,omitempty"`
}

func capacityOf(l capacity.Limit) *capacityView {
	if l == (capacity.Limit{}) {
		return nil
	}
	view := &capacityView{Concurrency: l.Places}
	if l.Rate > 0 {
		view.RequestsPerSecond = json.Number(l.Rate.String())
	}
	return view
}

type endpointView struct {
	ID               string          `json:"id"`
	URL              string          `json:"url"`
	Method           string          `json:"method"`
	Path             string          `json:"path"`
	PriceUSD         string          `json:"price_usd"`
	PriceRevision    int64           `json:"price_revision"`
	Description      string          `json:"description"`
	MIMEType         string          `json:"mime_type"`
	InputSchema      json.RawMessage `json:"input_schema,omitempty"`
	InputExample     json.RawMessage `json:"input_example,omitempty"`
	OutputSchema     json.RawMessage `json:"output_schema,omitempty"`
	OutputExample    json.RawMessage `json:"output_example,omitempty"`
	ServedStatuses   []int           `json:"served_statuses"`
	TimeoutMS        int64           `json:"timeout_ms"`
	IdleTimeoutMS    int64           `json:"idle_timeout_ms,omitempty"` // of a stream
	MaxResponseBytes int             `json:"max_response_bytes"`
	TrialCallsPerDay int             `json:"trial_calls_per_day"`
	// TrialCallsPerCaller is left out where one caller gets as many as there are.
	TrialCallsPerCaller int    `json:"trial_calls_per_caller,omitempty"`
	Stream              bool   `json:"stream"`
	Broken              string `json:"broken,omitempty"`
	// Trial is what there is to try today. It stands where one service is shown that is on the shelf, and its endpoint offers trial calls.
	Trial *trialView `json:"trial,omitempty"`
	// Warnings are for the owner of the listing alone.
	Warnings []string `json:"warnings,omitempty"`
}

func (s *Server) serviceView(v *catalog.Service) serviceView {
	view := serviceView{
		Slug: v.Slug, Name: v.Name, Description: v.Description, Tags: append([]string{}, v.Tags...), BaseURL: v.BaseURL,
		Probe: probeView{Method: v.Probe.Method, Path: v.Probe.Path, Statuses: []string{v.Probe.Statuses.String()}},
		State: v.State, StateCause: v.StateCause, StateReason: v.PublicReason(), StateSince: timeJSON(v.StateSince), CreatedAt: timeJSON(v.CreatedAt),
		Capacity: capacityOf(v.Capacity), BaseURLSince: timeJSON(v.BaseURLSince), Revision: v.Revision, Broken: v.Broken, Endpoints: []endpointView{},
	}
	for _, e := range v.Endpoints {
		if !e.Retired {
			view.Endpoints = append(view.Endpoints, s.endpointView(v.Slug, e))
		}
	}
	return view
}

func (s *Server) endpointView(slug string, e *catalog.Endpoint) endpointView {
	view := endpointView{
		ID: e.ID.String(), URL: s.publicURL + "/s/" + slug + e.Path, Method: e.Method, Path: e.Path, Description: e.Description,
		MIMEType: e.MIMEType, InputSchema: e.InputSchema, InputExample: e.InputExample, OutputSchema: e.OutputSchema,
		OutputExample: e.OutputExample, ServedStatuses: append([]int{}, e.ServedStatuses...), TimeoutMS: e.Timeout.Milliseconds(),
		MaxResponseBytes: e.MaxResponseBytes, TrialCallsPerDay: e.TrialCallsPerDay, TrialCallsPerCaller: e.TrialCallsPerCaller, Stream: e.Stream, Broken: e.Broken,
	}
	if e.Stream {
		view.IdleTimeoutMS = e.IdleTimeout.Milliseconds()
	}
	if price, ok := e.Price(); ok {
		view.PriceUSD, view.PriceRevision = price.USD.String(), price.Revision
	}
	return view
}
