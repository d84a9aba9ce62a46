package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"market/internal/config"
	"market/internal/server"
)

// A process is what every program of ours has: a database, two doors, work beside them, and an order in which they end.
type process struct {
	log zerolog.Logger
	db  *pgxpool.Pool

	door, opsDoor net.Listener
	public, ops   *http.Server

	background context.CancelFunc
	running    sync.WaitGroup
	failed     chan error
	stops      []func(context.Context) error // work, stopped while everything that it needs is there
	closers    []func(context.Context) error // what was opened, closed last
	stopOnce   sync.Once
	stopErr    error
	killed     atomic.Bool
	stopping   atomic.Bool
}

// begin returns the context of the work beside the doors. The caller's bounds the start alone.
func (p *process) begin(ctx context.Context, log zerolog.Logger) context.Context {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.log, p.background, p.failed = log, cancel, make(chan error, 4)
	return background
}

// listen takes both addresses. Nobody is answered before open.
func (p *process) listen(ctx context.Context, public, ops config.Address) (err error) {
	if p.door, err = p.listenAt(ctx, public); err != nil {
		return err
	}
	p.opsDoor, err = p.listenAt(ctx, ops)
	return err
}

func (p *process) listenAt(ctx context.Context, address config.Address) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", string(address))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	// Its server closes it before; where the start ends early nobody else does.
	p.closers = append(p.closers, func(context.Context) error { _ = l.Close(); return nil })
	return l, nil
}

// open opens both doors.
func (p *process) open(public, ops *http.Server) {
	p.public, p.ops = public, ops
	p.serve(public, server.Readable(p.door))
	p.serve(ops, p.opsDoor)
}

func (p *process) serve(s *http.Server, l net.Listener) {
	p.running.Go(func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			p.failed <- fmt.Errorf("serve %s: %w", l.Addr(), err)
		}
	})
}

// DoorURL is where the public listener is, whatever callers see in front of it.
func (p *process) DoorURL() string { return "http://" + p.door.Addr().String() }

// OpsURL is where the operations listener is.
func (p *process) OpsURL() string { return "http://" + p.opsDoor.Addr().String() }

// Failed tells when a part ended that should not have; the caller then stops the program.
func (p *process) Failed() <-chan error { return p.failed }

// end closes the doors, drains what is under way, and closes everything in the reverse order of its opening. It may be called again and
// returns the same.
func (p *process) end(ctx context.Context, drain func(context.Context) error) error {
	p.stopOnce.Do(func() { p.stopErr = p.endOnce(ctx, drain) })
	return p.stopErr
}

func (p *process) endOnce(ctx context.Context, drain func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	p.stopping.Store(true) // the operations door tells it for as long as calls are under way
	var errs []error
	for _, s := range []*http.Server{p.public, p.ops} {
		if s != nil {
			errs = append(errs, s.Shutdown(ctx))
		}
	}
	errs = append(errs, drain(ctx))
	errs = append(errs, inReverse(ctx, p.stops)...)
	p.background()
	p.running.Wait()
	errs = append(errs, inReverse(ctx, p.closers)...)
	return errors.Join(errs...)
}

func inReverse(ctx context.Context, stops []func(context.Context) error) []error {
	var errs []error
	for _, stop := range slices.Backward(stops) {
		errs = append(errs, stop(ctx))
	}
	return errs
}

// readyChanged tells the operator that a network stops or goes on: nothing else does as long as it refuses everybody politely.
func (p *process) readyChanged(network string, err error) {
	if err != nil {
		p.log.Error().Err(err).Str("network", network).Msg("network is not ready: no payment is taken on it")
		return
	}
	p.log.Info().Str("network", network).Msg("network is ready again")
}
