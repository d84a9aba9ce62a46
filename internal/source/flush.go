package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"market/internal/pulse"
)

const flushEvery = time.Second

// The row is that of the day the units were set aside on, which need not be today's. Like a reservation, its commit does not wait for the disk.
const flushSQL = `
WITH lazily AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO source_days AS d (source, day, denied)
SELECT $1, $2, $4 FROM lazily
ON CONFLICT (source, day) DO UPDATE SET used = greatest(0, d.used - $3), denied = d.denied + excluded.denied`

// collect adds to what is to be written of a day.
func (m *Meter) collect(day time.Time, s sum) {
	if s == (sum{}) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spare == nil {
		m.spare = map[time.Time]sum{}
	}
	had := m.spare[day]
	m.spare[day] = sum{had.back + s.back, had.denied + s.denied}
}

// flush writes what was collected. What cannot be written is kept for the next time.
func (m *Meter) flush(ctx context.Context) error {
	m.mu.Lock()
	spare := m.spare
	m.spare = nil
	m.mu.Unlock()
	var errs []error
	for day, s := range spare {
		if _, err := m.r.db.Exec(ctx, flushSQL, m.of.Name, day, s.back, s.denied); err != nil {
			errs = append(errs, fmt.Errorf("write what was given back of source %s: %w", m.of.Name, err))
			m.collect(day, s)
		}
	}
	return errors.Join(errs...)
}

// Run writes what was given back and what was denied, once a second until ctx ends. Then it ends the blocks, and writes once more.
func (r *Registry) Run(ctx context.Context) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-tick.C:
			err := r.flush(ctx)
			if err != nil && !failing && ctx.Err() == nil {
				r.trouble(err) // once: it is tried again every second
			}
			failing = err != nil
			pulse.Beat(ctx, flushEvery)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeTime)
			defer cancel()
			for _, m := range r.order {
				m.endBlocks()
			}
			if err := r.flush(last); err != nil {
				r.trouble(err)
			}
			return
		}
	}
}

func (r *Registry) flush(ctx context.Context) error {
	var errs []error
	for _, m := range r.order {
		errs = append(errs, m.flush(ctx))
	}
	return errors.Join(errs...)
}
