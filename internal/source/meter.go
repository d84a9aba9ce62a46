package source

import (
	"context"
	"sync"
	"time"
)

// A Meter is what is known of one source, and the way to ask it. It may be used by many at once.
type Meter struct {
	r     *Registry
	of    Source
	ranks int // of new settlements: see Ranked

	mu      sync.Mutex
	seen    reading           // the newest; its time is zero before the first
	skew    time.Duration     // market time minus this process's own
	touched time.Time         // by this process's own clock: when a success was last written
	told    time.Time         // by that clock: when it was tried to tell that our guard was reached
	spare   map[time.Time]sum // by day: what is to be written
	blocks  []*Block
	met     map[int]time.Time // by rank: the day on which this process has seen new settlements of it meet their ceiling
}

// A sum is what is collected of a day before it is written.
type sum struct{ back, denied int64 }

// Source returns whose meter it is.
func (m *Meter) Source() Source { return m.of }

// Ready says from memory what new work would meet now, of the highest rank where there are several: nil, or a *LimitError. It may be late by a notification;
// what decides is the reservation.
func (m *Meter) Ready() error { return m.ReadyFor(m.ranks - 1) }

// ReadyToRefund is Ready for a refund that wants n units, 0 where its unit was set aside before: our own guard holds it up only where the cap has no room
// for them at all.
func (m *Meter) ReadyToRefund(n int64) error {
	seen, at := m.look()
	limit := Cap(m.of.Guard, seen.busiest)
	return m.ready(seen, at, seen.guards(seen.day, limit) && n > 0 && seen.used > limit-n)
}

func (m *Meter) ready(seen reading, at time.Time, full bool) error {
	if seen.at.IsZero() {
		return nil
	}
	if e := m.obstacle(seen, at, full); e != nil {
		return e
	}
	return nil
}

// obstacle is why a source may not be asked: the reason that lasts longest, because before its end the others do not help.
func (m *Meter) obstacle(got reading, at time.Time, full bool) *LimitError {
	why, until := got.waits(at)
	if end := got.day.AddDate(0, 0, 1); full && at.Before(end) && end.After(until) {
		why, until = Guarded, end
	}
	if why == 0 {
		return nil
	}
	return m.limit(why, until, at)
}

func (m *Meter) limit(why Why, until, at time.Time) *LimitError {
	return &LimitError{Source: m.of.Name, Why: why, Until: until, Wait: until.Sub(at)}
}

// look returns the newest reading and market time, as far as this process knows them.
func (m *Meter) look() (seen reading, at time.Time) {
	now := m.r.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen, now.Add(m.skew)
}

// note keeps a reading, unless a newer one is there.
func (m *Meter) note(got reading) {
	now := m.r.now()
	m.mu.Lock()
	defer m.mu.Unlock()
	if got.at.Before(m.seen.at) {
		return
	}
	m.seen, m.skew = got, got.at.Sub(now)
}

// read asks how the source stands, and keeps it.
func (m *Meter) read(ctx context.Context) (reading, error) {
	got, err := read(ctx, m.r.db, []string{m.of.Name})
	if err != nil {
		return reading{}, err
	}
	m.note(got[0])
	return got[0], nil
}
