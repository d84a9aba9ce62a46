package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/postgres"
)

// Channel is the notification channel on which a change of what Load reads is told.
const Channel = "sources"

// ErrUnknown is that no source has this name.
var ErrUnknown = errors.New("no source has this name")

// A Registry holds the sources of a process.
type Registry struct {
	db     *pgxpool.Pool
	now    func() time.Time
	hooks  Hooks
	order  []*Meter
	byName map[string]*Meter
}

// New returns the registry of these sources, in their order. It asks nothing of the database. The names differ; a source of no kind, or that runs out in
// no way, is a mistake of the program.
func New(db *pgxpool.Pool, now func() time.Time, sources []Source, hooks Hooks) *Registry {
	r := &Registry{db: db, now: now, hooks: hooks, byName: map[string]*Meter{}}
	for _, s := range sources {
		if s.Name == "" || s.Kind <= 0 || s.Kind >= kindEnd || s.RunsOut <= 0 || s.RunsOut >= runsOutEnd || r.byName[s.Name] != nil {
			panic(fmt.Sprintf("source %q is not whole, or there twice", s.Name))
		}
		if s.RetryWindow <= 0 {
			s.RetryWindow = RetryWindow
		}
		m := &Meter{r: r, of: s, ranks: 1}
		r.order, r.byName[s.Name] = append(r.order, m), m
	}
	return r
}

// Of returns the meter of a source. A name that there is not is a mistake of the program.
func (r *Registry) Of(name string) *Meter {
	m := r.byName[name]
	if m == nil {
		panic(fmt.Sprintf("no source %q", name))
	}
	return m
}

// Sources returns every source, in order.
func (r *Registry) Sources() []Source {
	all := make([]Source, 0, len(r.order))
	for _, m := range r.order {
		all = append(all, m.of)
	}
	return all
}

// trouble tells what went wrong beside the work.
func (r *Registry) trouble(err error) {
	if r.hooks.OnError != nil {
		r.hooks.OnError(err)
	}
}

func (r *Registry) names() []string {
	names := make([]string, 0, len(r.order))
	for _, m := range r.order {
		names = append(names, m.of.Name)
	}
	return names
}

// Load reads what is out, for Ready: at the start, on notifications of Channel, and once a minute. After an error what is known stays.
func (r *Registry) Load(ctx context.Context, db postgres.DB) error {
	all, err := read(ctx, db, r.names())
	if err != nil {
		return err
	}
	for i, m := range r.order {
		m.note(all[i])
	}
	return nil
}

// TryNow lets the next request test a source that is out, and has what waits for it be due now. It changes nothing of our own guard, which follows what is
// used and what is configured. ErrUnknown where there is no such source.
func (r *Registry) TryNow(ctx context.Context, tx pgx.Tx, name string) error {
	m := r.byName[name]
	if m == nil {
		return ErrUnknown
	}
	s, err := lock(ctx, tx, name)
	if err != nil {
		return err
	}
	if !s.stops() && s.nextRequestAt.IsZero() {
		return nil
	}
	s.nextRequestAt = time.Time{}
	if s.stops() {
		s.retryAt = s.at
	}
	if err := s.keep(ctx, tx, name); err != nil {
		return err
	}
	if r.hooks.Resume == nil {
		return nil
	}
	return r.hooks.Resume(ctx, tx, m.of)
}
