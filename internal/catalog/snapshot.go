package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"market/internal/postgres"
)

// A Snapshot is the whole catalog at one moment. It never changes, so a request that took one sees one catalog to its end.
type Snapshot struct {
	bySlug    map[string]*Service
	byID      map[uuid.UUID]*Service
	endpoints map[uuid.UUID]*Endpoint
	routes    map[uuid.UUID]routes
	skew      time.Duration // market time minus this process's time

	index      sync.Once
	searchable []indexedService // see indexed
}

// Catalog holds the newest snapshot. The zero value is of no use; see New.
type Catalog struct {
	now      func() time.Time
	validity time.Duration
	secrets  Secrets
	broken   func(slugs []string)
	current  atomic.Pointer[Snapshot]
	loading  sync.Mutex
}

// New returns a catalog without services. validity is how long an older price stays acceptable (the quote validity).
func New(now func() time.Time, validity time.Duration) *Catalog {
	c := &Catalog{now: now, validity: validity}
	c.current.Store(newSnapshot(nil, 0))
	return c
}

// Opening makes the catalog open what services want to see in our requests. It is called before the first Load.
func (c *Catalog) Opening(s Secrets) *Catalog {
	c.secrets = s
	return c
}

// Telling makes the catalog say which services a Load found broken that were not before. It is called before the first Load.
func (c *Catalog) Telling(broken func(slugs []string)) *Catalog {
	c.broken = broken
	return c
}

// Current returns the newest snapshot, never nil.
func (c *Catalog) Current() *Snapshot { return c.current.Load() }

// Everything is read, without a limit: a service that is left out would be a 404 to people who are paying for it. What was retired a
// month ago or more is left out; until then it is answered with 410, and its calls have long been final.
const loadSQL = columnsSQL + `
  FROM services s
  LEFT JOIN endpoints e ON e.service_id = s.id AND (e.retired_at IS NULL OR e.retired_at > market_now() - interval '30 days')` +
	pricesSQL + `
 WHERE s.state <> 'retired' OR s.state_since > market_now() - interval '30 days'
 ORDER BY s.id, e.id`

// Load reads the catalog and makes it the current one. After an error the old one stays.
func (c *Catalog) Load(ctx context.Context, db postgres.DB) error {
	// One at a time, so that an older reading can't replace a newer one.
	c.loading.Lock()
	defer c.loading.Unlock()

	skew, err := c.skew(ctx, db)
	if err != nil {
		return err
	}
	rows, err := db.Query(ctx, loadSQL, c.validity)
	if err != nil {
		return fmt.Errorf("load catalog: %w", err)
	}
	services, err := gather(rows, c.Current().endpoints, &c.secrets)
	if err != nil {
		return fmt.Errorf("load catalog: %w", err)
	}
	before := c.Current()
	now := newSnapshot(services, skew)
	c.current.Store(now)
	if broke := now.brokenSince(before); c.broken != nil && len(broke) > 0 {
		c.broken(broke)
	}
	return nil
}

// skew measures how far market time is ahead of this process's clock, to about the time of one round trip. It is a statement of its
// own because the middle of a long reading says little about when its clock was read.
func (c *Catalog) skew(ctx context.Context, db postgres.DB) (time.Duration, error) {
	before := c.now()
	market, err := postgres.MarketNow(ctx, db)
	if err != nil {
		return 0, err
	}
	return market.Sub(before.Add(c.now().Sub(before) / 2)), nil
}

func newSnapshot(services []*Service, skew time.Duration) *Snapshot {
	s := &Snapshot{
		bySlug:    make(map[string]*Service, len(services)),
		byID:      make(map[uuid.UUID]*Service, len(services)),
		endpoints: map[uuid.UUID]*Endpoint{},
		routes:    make(map[uuid.UUID]routes, len(services)),
		skew:      skew,
	}
	for _, service := range services {
		if !service.Secret.Next.IsZero() {
			service.Secret.from = service.Secret.Next.Add(-skew)
		}
		s.bySlug[service.Slug] = service
		s.byID[service.ID] = service
		s.routes[service.ID] = routesOf(service)
		for _, e := range service.Endpoints {
			s.endpoints[e.ID] = e
		}
	}
	return s
}

// MarketNow turns this process's time into market time, in which Price.Until is.
func (s *Snapshot) MarketNow(localNow time.Time) time.Time { return localNow.Add(s.skew) }

// Named returns a service by its slug.
func (s *Snapshot) Named(slug string) (*Service, bool) {
	service, ok := s.bySlug[slug]
	return service, ok
}

// Service returns a service by its id.
func (s *Snapshot) Service(id uuid.UUID) (*Service, bool) {
	service, ok := s.byID[id]
	return service, ok
}

// Endpoint returns an endpoint by its id.
func (s *Snapshot) Endpoint(id uuid.UUID) (*Endpoint, bool) {
	e, ok := s.endpoints[id]
	return e, ok
}

// brokenSince names the services on the shelf that are broken and were not in an earlier snapshot.
func (s *Snapshot) brokenSince(before *Snapshot) []string {
	var slugs []string
	for slug, service := range s.bySlug {
		if was, known := before.bySlug[slug]; service.Broken != "" && service.State.Sells() && (!known || was.Broken == "") {
			slugs = append(slugs, slug)
		}
	}
	slices.Sort(slugs)
	return slugs
}

// Opened counts the services on the shelf that entrusted something to us, and those of them for which it could be opened.
func (s *Snapshot) Opened() (opened, all int) {
	for _, service := range s.bySlug {
		if !service.State.Sells() || len(service.Headers) == 0 && service.Secret.Since.IsZero() {
			continue
		}
		all++
		if !service.closed {
			opened++
		}
	}
	return opened, all
}

// Len is how many services there are, in whatever state.
func (s *Snapshot) Len() int { return len(s.byID) }

// Has says whether there is a service of that name, in whatever state.
func (s *Snapshot) Has(slug string) bool {
	_, has := s.bySlug[slug]
	return has
}
