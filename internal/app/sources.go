package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"market/internal/config"
	"market/internal/letter"
	"market/internal/notify"
	"market/internal/payout"
	"market/internal/refund"
	"market/internal/source"
)

// newSources returns the registry of everything outside that can refuse us. Each kind lists its own.
func (a *App) newSources(c config.Config) *source.Registry {
	k := newKeeper(a.db, a.log)
	_, k.ranks = c.Plans.Rank(0)
	var all []source.Source
	all = append(all, facilitatorSources(c, k)...)
	all = append(all, noticeSources(c)...)
	all = append(all, k.nodes(c.Networks)...)
	hooks := k.hooks()
	hooks.Observer = a.metrics
	return source.New(a.db, a.now, all, hooks).Ranked(k.ranks)
}

// facilitatorSources are the facilitators of others. Our own engine is none: what it asks are nodes.
func facilitatorSources(c config.Config, k *keeper) []source.Source {
	var all []source.Source
	for _, f := range c.Facilitators {
		name := localName(f)
		if f.Kind == config.KindRemote {
			name = source.FacilitatorName(f.Name)
			all = append(all, source.Configured(name, source.KindFacilitator, f.Source))
			k.serves[name] = f.Networks
		}
		for _, network := range f.Networks {
			k.links[network] = append(k.links[network], name)
		}
	}
	return all
}

func localName(f config.Facilitator) string { return "our own engine " + f.Name }

// A keeper does what follows from a source being out, and from its end. Every program that asks sources of a database has one: what changes of a source is
// told once, by whichever process changes it.
type keeper struct {
	db      *pgxpool.Pool
	log     zerolog.Logger
	notices notify.Store
	refunds refund.Store
	payouts payout.Store
	letters letter.Store
	serves  map[string][]string // networks on which refunds need it, by the name of the source
	ranks   int                 // of new payments, when little is left of a facilitator
	links   map[string][]string // what settles on a network, by its id: names of sources, and our own engine
}

func newKeeper(db *pgxpool.Pool, log zerolog.Logger) *keeper {
	return &keeper{db: db, log: log, serves: map[string][]string{}, links: map[string][]string{}}
}

func (k *keeper) hooks() source.Hooks {
	return source.Hooks{Out: k.out, Back: k.back, Resume: k.resume, Waiting: k.waiting, OnError: func(err error) { k.log.Error().Err(err).Msg("sources") }}
}

// out latches the notice in the transaction that found the source out: the open notice is what keeps it from being told twice.
func (k *keeper) out(ctx context.Context, tx pgx.Tx, s source.Source, o source.Out) error {
	trouble := outOf(s, o, k.effect(s, o.Why), k.ranks)
	raised, err := k.notices.Raise(ctx, tx, kindOf(o.Why), s.Name, trouble)
	if err == nil && raised {
		k.log.Error().Str("source", s.Name).Time("until", o.Until).Msg(trouble.Text())
	}
	return err
}

// back says at once that it is over: a source is back only when it has not refused for some minutes, which the notice need not wait for again.
func (k *keeper) back(ctx context.Context, tx pgx.Tx, s source.Source, was source.Why) error {
	settled, err := k.notices.SettleSteady(ctx, tx, kindOf(was), s.Name)
	if err == nil && settled {
		k.log.Info().Str("source", s.Name).Msg("the source works again")
	}
	return err
}

func kindOf(w source.Why) notify.Kind {
	if w == source.Guarded {
		return notify.GuardReached
	}
	return notify.SourceOut
}

// resume has the refunds due that wait for this source, or for another one which does the same for their network, and the
// notices and letters that wait for a channel.
func (k *keeper) resume(ctx context.Context, tx pgx.Tx, s source.Source) error {
	if s.Kind == source.KindMail {
		if err := k.letters.Release(ctx, tx, letter.Email); err != nil {
			return err
		}
	}
	if s.Kind == source.KindMail || s.Kind == source.KindWebhook {
		return k.notices.Resume(ctx, tx)
	}
	networks := k.serves[s.Name]
	if len(networks) == 0 {
		return nil // no refund waits for it
	}
	var peers []string
	for name, of := range k.serves {
		alike := strings.HasPrefix(name, s.Kind.String()+"/")
		if alike && slices.ContainsFunc(of, func(network string) bool { return slices.Contains(networks, network) }) {
			peers = append(peers, name)
		}
	}
	return errors.Join(k.refunds.Resume(ctx, tx, networks, peers), k.payouts.Resume(ctx, tx, networks, peers))
}

// waiting is what refunds and payouts will still want of a source. Another facilitator may come to send them: then this one kept more than it had to. Of a channel all of
// the last tenth is kept for notices to the operator, which are no more than there are troubles: else letters, of which providers can make as many as they
// like, would use it up, and nobody could be told of that.
func (k *keeper) waiting(ctx context.Context, name string) (source.Waiting, error) {
	if name == source.Mail || name == source.Webhook {
		return source.Waiting{Refunds: math.MaxInt64}, nil
	}
	networks := k.serves[name]
	if len(networks) == 0 {
		return source.Waiting{}, nil
	}
	refunds, err := k.refunds.Waiting(ctx, k.db, networks)
	if err != nil {
		return source.Waiting{}, err
	}
	payouts, err := k.payouts.Waiting(ctx, k.db, networks)
	return source.Waiting{Refunds: refunds, Payouts: payouts}, err
}

// resumeRefunds has everything due that waits for a facilitator or a node on a network where one of its kind takes work: a refund or a payout may have been put off
// while that came to be so. It is done whenever what is out was read again, and so once a minute at least.
func (a *App) resumeRefunds(ctx context.Context, open rails) error {
	for _, r := range open {
		var working []string
		if r.failover.LimitedToRefund("") == nil {
			working = r.failover.Sources()
		}
		if slices.ContainsFunc(r.nodes, func(name string) bool { return a.sources.Of(name).Ready() == nil }) {
			working = append(working, r.nodes...)
		}
		if len(working) == 0 {
			continue
		}
		if err := (refund.Store{}).Resume(ctx, a.db, []string{r.network.ID}, working); err != nil {
			return err
		}
		if err := (payout.Store{}).Resume(ctx, a.db, []string{r.network.ID}, working); err != nil {
			return err
		}
	}
	return nil
}

// others are what else settles on a network, in order.
func (k *keeper) others(network, but string) []string {
	return slices.DeleteFunc(slices.Clone(k.links[network]), func(name string) bool { return name == but })
}

// loadSources reads what is out.
func (a *App) loadSources(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	if err := a.sources.Load(ctx, a.db); err != nil {
		return fmt.Errorf("load sources: %w", err)
	}
	return nil
}
