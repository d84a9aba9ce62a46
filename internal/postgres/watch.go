package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"market/internal/pulse"
)

// Delays of a watch that has lost its connection, and how often an idle one is tried: a peer that vanished without a word sends no error.
const (
	reconnectMin = 100 * time.Millisecond
	reconnectMax = 5 * time.Second
	idleCheck    = 15 * time.Second
	checkTimeout = 5 * time.Second
)

// watchName is the application_name of watching connections.
const watchName = "market watch"

// Watch listens on notification channels of the database at a URL and calls on with the channel's name: once for each channel after
// every connect, since notifications may have been missed, and then on notifications. Those that queue up while on runs are one call a
// channel. Calls come one at a time. Lost connections are reported to lost, which may be nil, and made again until ctx ends; then Watch
// returns, after the last call.
func Watch(ctx context.Context, databaseURL string, channels []string, on func(channel string), lost func(error)) {
	newWatch(databaseURL, channels).run(ctx, on, lost)
}

func newWatch(databaseURL string, channels []string) *watch {
	return &watch{url: databaseURL, channels: channels, idle: idleCheck, dirty: map[string]bool{}, wake: make(chan struct{}, 1)}
}

func (w *watch) run(ctx context.Context, on func(channel string), lost func(error)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { w.deliver(ctx, on) })
	for failures := 0; ; failures++ {
		connected, err := w.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		pulse.Beat(ctx, w.idle)
		if lost != nil {
			lost(err)
		}
		if connected {
			failures = 0
		}
		if pause(ctx, backoff(failures, rand.Float64())) != nil {
			return
		}
	}
}

// backoff doubles from reconnectMin to reconnectMax. A share of up to half, by chance in [0, 1), is taken off, so that the replicas of
// a fleet do not come back all at once.
func backoff(failures int, chance float64) time.Duration {
	d := reconnectMin
	for range failures {
		if d >= reconnectMax/2 { // also keeps the doubling from overflowing
			d = reconnectMax
			break
		}
		d *= 2
	}
	return d - time.Duration(chance*float64(d)/2)
}

// A watch hands channels from the listening side to the calling side.
type watch struct {
	url      string
	channels []string
	idle     time.Duration // how long no notification is no news

	mu    sync.Mutex
	dirty map[string]bool
	wake  chan struct{} // holds one: something is dirty
}

func (w *watch) mark(channels ...string) {
	w.mu.Lock()
	for _, c := range channels {
		w.dirty[c] = true
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns the channels that changed since it was last asked, in the watch's order.
func (w *watch) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var changed []string
	for _, c := range w.channels {
		if w.dirty[c] {
			changed = append(changed, c)
			delete(w.dirty, c)
		}
	}
	return changed
}

func (w *watch) deliver(ctx context.Context, on func(channel string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		for _, c := range w.take() {
			if ctx.Err() != nil {
				return
			}
			on(c)
		}
	}
}

// listen connects and marks channels until the connection breaks or ctx ends.
func (w *watch) listen(ctx context.Context) (connected bool, err error) {
	config, err := poolConfig(w.url)
	if err != nil {
		return false, err
	}
	config.ConnConfig.RuntimeParams["application_name"] = watchName
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return false, fmt.Errorf("watch database: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
		defer cancel()
		_ = conn.Close(closing)
	}()
	for _, c := range w.channels {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{c}.Sanitize()); err != nil {
			return false, fmt.Errorf("watch database: %w", err)
		}
	}
	w.mark(w.channels...)
	for {
		if err := w.wait(ctx, conn); err != nil {
			return true, fmt.Errorf("watch database: %w", err)
		}
	}
}

// wait marks the channel of the next notification, or finds an idle connection alive.
func (w *watch) wait(ctx context.Context, conn *pgx.Conn) error {
	pulse.Beat(ctx, w.idle)
	waiting, cancel := context.WithTimeout(ctx, w.idle)
	defer cancel()
	notification, err := conn.WaitForNotification(waiting)
	if err == nil {
		w.mark(notification.Channel)
		return nil
	}
	if ctx.Err() != nil || !errors.Is(waiting.Err(), context.DeadlineExceeded) {
		return err
	}
	checking, done := context.WithTimeout(ctx, checkTimeout)
	defer done()
	return conn.Ping(checking)
}
