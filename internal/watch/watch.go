package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"market/internal/delivery"
	"market/internal/notify"
	"market/internal/pulse"
	"market/internal/replica"
	"market/internal/switches"
)

const (
	// lookTime bounds one look. What it did not come to is looked at in the next.
	lookTime = 30 * time.Second
	// silentAfter is how old the report of a process that runs may be until its watch counts as stopped.
	silentAfter = 2 * time.Minute
)

// A Change is a trouble that this process was the first to raise, or to find over.
type Change struct {
	Kind    notify.Kind
	Subject string
	Over    bool
	Text    string
}

// Config is what a Watch is built from.
type Config struct {
	DB       *pgxpool.Pool
	Self     uuid.UUID // this process, under which it beats
	Address  string    // of its public listener
	Ready    func(context.Context) map[string]error
	Networks []Network
	Loops    *pulse.Loops
	Tries    func() delivery.Tries
	// Switches are those of the operator that are on.
	Switches func() []switches.Switch
	// Periodic are the kinds of jobs that run all the time. RowsTell are those of which one that was given up is no news: what they work on is tried
	// again, and is told of by itself where that takes too long.
	Periodic, RowsTell []string
	Clock              func() time.Time // what this process takes for the time
	Pace               Pace
	Tell               func(Change)
	OnError            func(error)
}

// Watch looks for one process.
type Watch struct {
	Config
	store notify.Store
	begun time.Time
	byID  map[string]Network
	look  lookState
	// jobsSeen is since when every look at the jobs went well, and belongs to the one loop that looks deep. Zero: the last one did not.
	jobsSeen time.Time

	mu    sync.Mutex
	found map[key]finding // by the last deep look
}

// lookState belongs to the one loop that looks.
type lookState struct {
	seen   sightings
	offset offset
	apart  bool
	away   map[key]bool        // notices that were found over in the last look
	heard  map[uuid.UUID]heard // of the other processes that run
}

// heard is when a report was written, and when this process saw it first, by its own clock: the database's may be put forward.
type heard struct {
	address string
	at      time.Time
	since   time.Time
}

// New returns a watch that has not looked yet.
func New(c Config) *Watch {
	begun := time.Now()
	w := &Watch{Config: c, begun: begun, jobsSeen: begun, byID: map[string]Network{}, found: map[key]finding{}}
	w.look = lookState{seen: sightings{quiet: c.Pace.Quiet, spells: map[key]spell{}}, away: map[key]bool{}, heard: map[uuid.UUID]heard{}}
	for _, n := range c.Networks {
		w.byID[n.ID] = n
	}
	return w
}

// Run looks at what this process knows of itself and at what all of them say, until ctx ends.
func (w *Watch) Run(ctx context.Context) { w.run(ctx, w.Pace.Look, w.Look) }

// RunDeep looks at the chain and at what the database counts, until ctx ends.
func (w *Watch) RunDeep(ctx context.Context) { w.run(ctx, w.Pace.Deep, w.LookDeep) }

func (w *Watch) run(ctx context.Context, every time.Duration, look func(context.Context) error) {
	failing := false
	delivery.Every(ctx, every, func(ctx context.Context) {
		looking, cancel := context.WithTimeout(ctx, lookTime)
		defer cancel()
		err := look(looking)
		if err != nil && !failing && ctx.Err() == nil {
			w.OnError(fmt.Errorf("watch: %w", err)) // once: it is looked again and again
		}
		failing = err != nil
	})
}

// Look is one look of Run.
func (w *Watch) Look(ctx context.Context) error {
	now := time.Now()
	found := w.findings(ctx, now)
	own := Report{Up: now.Sub(w.begun), Sightings: w.look.seen.take(now, found), Fine: fine(found), Tries: w.Tries()}
	reports, err := w.exchange(ctx, now, own)
	if err != nil {
		// Where this one could not read, it does not know who wrote: the silence of the others begins anew.
		w.look.heard = map[uuid.UUID]heard{}
		return err
	}
	open, err := w.store.OpenSubjects(ctx, w.DB, notify.Conditions())
	if err != nil {
		return err
	}
	raise, settle := w.Pace.decide(reports, keysOf(open))
	var errs []error
	for _, s := range raise {
		errs = append(errs, w.raise(ctx, key{s.Kind, s.Subject}, s.Told))
	}
	away := map[key]bool{}
	for _, k := range settle {
		// A process that has missed a beat is away for a moment with all that it sees: so it takes two looks.
		if away[k] = true; w.look.away[k] {
			errs = append(errs, w.settle(ctx, k))
		}
	}
	w.look.away = away
	var tries delivery.Tries
	for _, r := range reports {
		tries = tries.Add(r.Tries)
	}
	told, over := settling(tries, len(open[notify.NothingSettles]) > 0)
	if told != nil {
		errs = append(errs, w.raise(ctx, nothingSettlesKey, *told))
	}
	if over {
		errs = append(errs, w.settle(ctx, nothingSettlesKey))
	}
	return errors.Join(errs...)
}

// findings are how all that this process sees looks to it now.
func (w *Watch) findings(ctx context.Context, now time.Time) []finding {
	found := networks(w.Ready(ctx))
	found = append(found, switched(w.Switches())...)
	for _, s := range w.Loops.Silent() {
		found = append(found, silenceFinding(w.Self, w.Address, s))
	}
	for id, h := range w.look.heard {
		if silent := now.Sub(h.since); silent > silentAfter {
			found = append(found, silenceFinding(id, h.address, pulse.Silence{Loop: "watch", For: silent}))
		}
	}
	clock := clockFinding(w.Self, w.Address, w.look.offset, w.look.apart)
	w.look.apart = clock.bad
	found = append(found, clock)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.found {
		found = append(found, f)
	}
	return found
}

// exchange writes this process's report and reads all of them. On the way it compares the clocks.
func (w *Watch) exchange(ctx context.Context, now time.Time, own Report) ([]Report, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	sent, here := time.Now(), w.Clock()
	clock, err := replica.Store{}.Report(ctx, w.DB, w.Self, text)
	if err != nil {
		return nil, err
	}
	if took := time.Since(sent); !clock.IsZero() {
		w.look.offset = offset{ahead: here.Add(took / 2).Sub(clock), took: took}
	}
	rows, err := replica.Store{}.Reports(ctx, w.DB)
	if err != nil {
		return nil, err
	}
	reports := []Report{own}
	before := w.look.heard
	w.look.heard = map[uuid.UUID]heard{}
	for _, row := range rows {
		if row.ID == w.Self {
			continue
		}
		last := heard{row.Address, row.At, now}
		if was, known := before[row.ID]; known && was.at.Equal(row.At) {
			last = was
		}
		w.look.heard[row.ID] = last
		var r Report
		if err := json.Unmarshal(row.Text, &r); err != nil {
			return nil, fmt.Errorf("read the report of replica %s: %w", row.ID, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

func keysOf(open map[notify.Kind][]string) []key {
	var keys []key
	for kind, subjects := range open {
		for _, subject := range subjects {
			keys = append(keys, key{kind, subject})
		}
	}
	return keys
}

func (w *Watch) raise(ctx context.Context, k key, told notify.Outage) error {
	ours, err := w.store.Raise(ctx, w.DB, k.kind, k.subject, told)
	if ours {
		w.Tell(Change{Kind: k.kind, Subject: k.subject, Text: told.Text()})
	}
	return err
}

func (w *Watch) settle(ctx context.Context, k key) error {
	ours, err := w.store.Settle(ctx, w.DB, k.kind, k.subject)
	if ours {
		w.Tell(Change{Kind: k.kind, Subject: k.subject, Over: true, Text: "this is over"})
	}
	return err
}
