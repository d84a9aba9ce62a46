package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/rs/zerolog"

	"market/internal/answer"
	"market/internal/catalog"
	"market/internal/config"
	"market/internal/cooldown"
	"market/internal/delivery"
	"market/internal/identity"
	"market/internal/metrics"
	"market/internal/notify"
	"market/internal/payout"
	"market/internal/plan"
	"market/internal/postgres"
	"market/internal/pulse"
	"market/internal/readiness"
	"market/internal/reconcile"
	"market/internal/secretbox"
	"market/internal/server"
	"market/internal/source"
	"market/internal/strikes"
	"market/internal/switches"
	"market/internal/upstream"
	"market/internal/watch"
)

const (
	// reloadEvery is how old the catalog, the cooldown board and that of the switches may get when notifications are lost.
	reloadEvery = time.Minute
	loadTime    = 10 * time.Second
	// drainTime is what calls under way get to end when the program stops: the longest endpoint, its probe, its settlement and its commits.
	drainTime = 180 * time.Second
	// streamsTime is how long before the end of that the streams are ended that are still under way, so that they are recorded as interrupted.
	streamsTime = 30 * time.Second
)

// Channels of the notifications that the schema's triggers send.
const (
	channelCatalog   = "catalog"
	channelCooldowns = "cooldowns"
)

// App is the running marketplace.
type App struct {
	process
	wraps     wraps
	streams   delivery.StreamLimits
	beats     *pgxpool.Pool     // of the heartbeats alone
	resolver  upstream.Resolver // nil: that of the machine
	guarded   bool              // private addresses are for nobody, see Guarded
	publicURL string
	now       func() time.Time // of this process, see WithClock

	switches *switches.Board
	// differences close a network where the chain and our books differ for too long.
	differences *reconcile.Board
	reconciler  *reconcile.Reconciler
	metrics     *metrics.Metrics
	sources     *source.Registry
	notices     *notify.Sender
	path        *delivery.Path
	prober      *upstream.Prober
	canaries    *upstream.Canaries
	guard       *delivery.Guard
	ready       *readiness.Keeper
	owners      *identity.Board // of services
	terms       readiness.Terms // zero: nobody said what may be lost
	readyAge    time.Duration   // for how long what is known is used then
	loops       *pulse.Loops
	pace        watch.Pace
	jobs        *river.Client[pgx.Tx]
	payouts     *payout.Maker
}

// Start builds everything and starts it; ctx bounds the start alone. When it returns, the doors are open. The caller stops the app.
func Start(ctx context.Context, c config.Config, log zerolog.Logger, options ...Option) (_ *App, err error) {
	a := &App{now: now, pace: watch.UsualPace, terms: termsOf(c), readyAge: readyAge, switches: switches.NewBoard(), differences: reconcile.NewBoard()}
	a.loops = pulse.New(time.Now, a.panicked)
	background := a.begin(ctx, log)
	for _, option := range options {
		option(a)
	}
	defer func() {
		if err != nil {
			own, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
			defer done()
			err = errors.Join(err, a.Stop(own))
		}
	}()
	databaseURL, err := a.openDatabase(ctx, c.Database, c.Dev)
	if err != nil {
		return nil, err
	}
	if err := a.openBeats(ctx, databaseURL); err != nil {
		return nil, err
	}
	// The doors are known first: what callers see is built from them.
	if err := a.listen(ctx, c.Listen, c.OpsListen); err != nil {
		return nil, err
	}
	a.publicURL = c.PublicURL
	if a.publicURL == "" {
		a.publicURL = a.DoorURL()
	}
	// Before anybody is asked anything: who is out is left alone by a program that starts, too.
	a.metrics = metrics.New(a.readMetrics)
	a.sources = a.newSources(c)
	if err := a.loadSources(ctx); err != nil {
		return nil, err
	}
	a.loop(background, "sources", a.sources.Run)
	rails, err := a.openRails(ctx, background, c)
	if err != nil {
		return nil, err
	}
	if a.notices, err = a.newNotices(c); err != nil {
		return nil, err
	}
	box, err := secrets(c)
	if err != nil {
		return nil, err
	}
	letters, err := a.newLetters(c, box)
	if err != nil {
		return nil, err
	}
	a.payouts = payout.NewMaker(a.db, rails.payout(a.db), c.Plans)
	if a.jobs, err = newJobs(a.db, rails.refund(a.refunded), rails.payout(a.db), a.payouts, a.notices, letters, log); err != nil {
		return nil, err
	}
	a.reseal(ctx, catalog.NewSecrets(box))
	if err := a.applyAdmins(ctx, c.AdminWallets); err != nil {
		return nil, err
	}
	srv, err := a.build(background, c, rails, databaseURL, box)
	if err != nil {
		return nil, err
	}
	if err := a.sayPlansLeft(ctx, c.Plans); err != nil {
		return nil, err
	}
	if err := a.path.ReviewOpen(ctx); err != nil {
		return nil, err
	}
	if err := a.jobs.Start(background); err != nil {
		return nil, fmt.Errorf("start jobs: %w", err)
	}
	a.stops = append(a.stops, a.jobs.Stop)
	if err := a.joinFleet(ctx); err != nil {
		return nil, err
	}
	a.loop(background, "heartbeat", a.beat)
	a.refresh(ctx, background)
	a.loop(background, "outage guard", a.guardOn)
	a.loop(background, "sweeper", a.path.Sweep)
	a.loop(background, "tidy", a.path.Tidy)
	a.loop(background, "holding", a.hold)
	a.loop(background, "traffic", a.watchTraffic)
	a.loop(background, "rounds", a.path.Walk)
	a.loop(background, "reconciliation", a.reconcileOn)
	a.watchAll(background, rails)
	a.open(srv.Public(), srv.Ops())
	return a, nil
}

// build makes the paths and the door over what is open by now.
func (a *App) build(background context.Context, c config.Config, rails rails, databaseURL string, box secretbox.Box) (*server.Server, error) {
	listings := catalog.New(a.now, c.QuoteValidity).Opening(catalog.NewSecrets(box)).Telling(a.servicesBroke)
	board := cooldown.NewBoard(a.now)
	a.owners = identity.NewBoard()
	if err := a.watch(background, databaseURL, listings, board, rails); err != nil {
		return nil, err
	}
	if err := checkOpened(listings.Current()); err != nil {
		return nil, err
	}
	a.canaries = a.newCanaries(c)
	client := upstream.New(upstream.Options{AllowPrivate: c.Dev && !a.guarded, Canaries: a.canaries, Resolver: a.resolver})
	a.prober = upstream.NewProber(client, c.ProbeTTL, a.now)
	a.stops = append(a.stops, func(ctx context.Context) error { return a.prober.Close(ctx) })
	fold := c.Cooldown
	if !c.StrikeFold {
		fold = 0
	}
	policy := strikes.Policy{Limit: c.StrikeLimit, Window: c.StrikeWindow, Fold: fold, Sources: c.StrikeSources}
	signIn, err := signInOf(a.publicURL, rails)
	if err != nil {
		return nil, err
	}
	owner := uuid.Must(uuid.NewV7())
	a.reconciler = a.newReconciler(rails, c.RestoredAt)
	a.ready = readiness.New(rails.checks(a.db), readiness.Options{Self: owner, Own: a.terms, Fixed: a.readyAge, Pace: readyAge, Limit: readyTime, Changed: a.readyChanged,
		Limited: rails.limited, Stopped: a.stopped})
	a.path = delivery.NewPath(delivery.Config{
		Owner: owner, DB: a.db, Recorder: delivery.NewRecorder(a.db, a.jobs, policy, c.Cooldown, c.Retention), Catalog: listings, Upstream: client, Prober: a.prober,
		Board: board, Ready: a.ready, Rails: rails.delivery(), Now: a.now, PublicURL: a.publicURL, Plans: plan.NewTerms(c.Plans, c.FeeBPS, c.Retention), PlanOf: a.planOf, OnFullRound: a.metrics.FullRound, RestoredAt: c.RestoredAt,
		QuoteValidity: c.QuoteValidity, Notary: rails.notary(),
		Refunds: delivery.RefundPolicy{Count: c.RefundLimit.Count, Window: c.RefundLimit.Window}, Grace: c.Grace, Streams: a.streams,
		Answers: answer.NewStore(box), SignIn: signIn, Own: c.OwnSources, OwnerOf: a.owners.Owner, Scanner: a.owners.Scanner,
		OnError: func(err error) { a.log.Error().Err(err).Msg("paid path") },
	})
	review := delivery.NewReview(a.db, policy)
	a.guard = delivery.NewGuard(a.db, a.path.Owner(), review)
	return server.New(server.Config{
		Path: a.path, Review: review, Guard: a.guard, DB: a.db, Catalog: listings, Secrets: catalog.NewSecrets(box), Rules: rails.rules(c.Dev, a.ownHosts(c)), Upstream: client, Ready: a.ready,
		Networks: rails.networks(), Proxies: c.TrustedProxies, AdminToken: c.AdminToken.Reveal(), PublicURL: a.publicURL, Log: a.log, Now: a.now,
		Dev: c.Dev, Cooldown: c.Cooldown, Stopping: a.stopping.Load, Sources: a.sources, Waiting: refundsWaiting, Metrics: a.metrics.Handler(), Notices: a.notices, Switches: a.switches, Plans: c.Plans,
		Payouts: a.payouts, Reconcile: a.reconcileNow, SignIns: signIns(signIn, rails, box),
	}), nil
}

// now cuts to what Postgres keeps, so that a value which is read back is equal.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// watch loads the catalog, the cooldowns, what is out, what the operator has stopped and who owns services, and keeps them fresh.
func (a *App) watch(background context.Context, databaseURL string, listings *catalog.Catalog, board *cooldown.Board, open rails) error {
	load := func(channel string) error {
		ctx, cancel := context.WithTimeout(background, loadTime)
		defer cancel()
		switch channel {
		case channelCatalog:
			return listings.Load(ctx, a.db)
		case source.Channel:
			return errors.Join(a.sources.Load(ctx, a.db), a.resumeRefunds(ctx, open), a.releaseLetters(ctx))
		case switches.Channel:
			return a.switches.Load(ctx, a.db)
		case reconcile.Channel:
			return a.differences.Load(ctx, a.db)
		case identity.Channel:
			return a.owners.Load(ctx, a.db)
		}
		return board.Load(ctx, a.db)
	}
	reload := func(channel string) {
		if err := load(channel); err != nil && background.Err() == nil {
			a.log.Error().Err(err).Str("channel", channel).Msg("snapshot not reloaded; the old one stays")
		}
	}
	channels := []string{channelCatalog, channelCooldowns, source.Channel, switches.Channel, reconcile.Channel, identity.Channel}
	for _, channel := range channels {
		if err := load(channel); err != nil {
			return err
		}
	}
	owners := newSpaced(ownersPause, func() { reload(identity.Channel) })
	a.loop(background, "owners", owners.run)
	changed := func(channel string) {
		if channel == identity.Channel {
			owners.ask()
			return
		}
		reload(channel)
	}
	a.loop(background, "notifications", func(ctx context.Context) {
		postgres.Watch(ctx, databaseURL, channels, changed, func(err error) {
			a.log.Warn().Err(err).Msg("notifications interrupted")
		})
	})
	a.loop(background, "reload", func(ctx context.Context) {
		delivery.Every(ctx, reloadEvery, func(context.Context) {
			for _, channel := range channels {
				reload(channel)
			}
		})
	})
	return nil
}

// URL is the public URL.
func (a *App) URL() string { return a.publicURL }

// Stop drains: no new requests, calls under way end and are recorded, then everything is closed in the reverse order of its opening. It
// may be called again and returns the same.
func (a *App) Stop(ctx context.Context) error {
	if a.path != nil {
		defer time.AfterFunc(untilStreamsEnd(ctx), a.path.EndStreams).Stop()
	}
	return a.end(ctx, func(ctx context.Context) error {
		if a.path == nil {
			return nil
		}
		return a.path.Drain(ctx)
	})
}

// untilStreamsEnd is how long a stream may go on when the program stops by ctx: it may last longer than we wait, and its end has to be recorded.
func untilStreamsEnd(ctx context.Context) time.Duration {
	left := drainTime
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline))
	}
	return max(0, left-streamsTime)
}
