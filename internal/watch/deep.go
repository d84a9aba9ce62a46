package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"market/internal/delivery"
	"market/internal/notify"
	"market/internal/refund"
)

// LookDeep is one look of RunDeep. The nodes come last: one that hangs takes all of the time that is left.
func (w *Watch) LookDeep(ctx context.Context) error {
	return errors.Join(w.lookAtRefunds(ctx), w.lookAtPayouts(ctx), w.lookAtJobs(ctx), w.lookAtMoney(ctx))
}

// lookAtMoney finds out whether treasuries and gas wallets have enough. What a node does not say leaves what it said before.
func (w *Watch) lookAtMoney(ctx context.Context) error {
	owed, err := delivery.Liabilities(ctx, w.DB)
	if err != nil {
		return err
	}
	open, err := w.open(ctx, notify.GasLow, notify.TreasuryShort)
	if err != nil {
		return err
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		found []finding
		errs  []error
	)
	keep := func(f finding, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case toldBySource(err):
			return
		case err != nil:
			errs = append(errs, err)
			return
		}
		found = append(found, f)
	}
	asked := map[key]bool{}
	for _, n := range w.Networks {
		asked[key{notify.GasLow, n.ID}] = n.Engine != nil
		for _, l := range owed {
			if l.Network == n.ID {
				asked[treasuryKey(n, l)] = true
			}
		}
		wg.Go(func() { w.network(ctx, n, owed, open, keep) })
	}
	wg.Wait()
	// A treasury that owes nothing is short of nothing, and a network that is not ours any more wants no gas.
	for k := range open {
		if !asked[k] {
			found = append(found, finding{key: k})
		}
	}
	w.keep(found, func(k key) bool { return k.kind != notify.RefundsLate && k.kind != notify.PayoutsParked && !asked[k] })
	return errors.Join(errs...)
}

// keep remembers what was found, and forgets what is not so any more.
func (w *Watch) keep(found []finding, forget func(key) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.found, func(k key, _ finding) bool { return forget(k) })
	for _, f := range found {
		w.found[f.key] = f
	}
}

// before is what was found when it was looked at last.
func (w *Watch) before() map[key]finding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.found)
}

// open are the troubles of these kinds of which there is a notice, from whichever process. One that begins to run goes on with what was known before it:
// what has two bounds is not over by a restart in between them.
func (w *Watch) open(ctx context.Context, kinds ...notify.Kind) (map[key]bool, error) {
	of, err := w.store.OpenSubjects(ctx, w.DB, kinds)
	if err != nil {
		return nil, err
	}
	open := map[key]bool{}
	for _, k := range keysOf(of) {
		open[k] = true
	}
	return open, nil
}

// network asks the node of one network.
func (w *Watch) network(ctx context.Context, n Network, owed []delivery.Liability, open map[key]bool, keep func(finding, error)) {
	for _, l := range owed {
		if l.Network == n.ID {
			keep(w.treasury(ctx, n, l))
		}
	}
	if n.Engine == nil {
		return
	}
	gas, err := n.Engine.Gas(ctx)
	if err != nil {
		keep(finding{}, fmt.Errorf("read the gas wallet of %s: %w", n.ID, err))
		return
	}
	k := key{notify.GasLow, n.ID}
	keep(gasFinding(n, gas, open[k] || w.before()[k].bad), nil)
}

// lookAtRefunds finds out whether refunds are late.
func (w *Watch) lookAtRefunds(ctx context.Context) error {
	limits := map[string]time.Duration{}
	for _, n := range w.Networks {
		limits[n.ID] = lateLimit(n.Confirmations)
	}
	out, err := w.store.OpenSubjects(ctx, w.DB, []notify.Kind{notify.SourceOut, notify.GuardReached})
	if err != nil {
		return err
	}
	told := slices.Concat(out[notify.SourceOut], out[notify.GuardReached])
	late, err := refund.Store{}.Late(ctx, w.DB, limits, lateWithoutDepth, told)
	if err != nil {
		return err
	}
	open, err := w.open(ctx, notify.RefundsLate)
	if err != nil {
		return err
	}
	was := w.before()
	for k := range open {
		if !was[k].bad {
			was[k] = finding{key: k, bad: true, told: nearTold(k.subject)}
		}
	}
	found := lateRefunds(late, w.byID, was)
	for k := range open {
		if !slices.ContainsFunc(found, func(f finding) bool { return f.key == k }) {
			found = append(found, finding{key: k}) // none is owed for even half of the limit
		}
	}
	w.keep(found, func(k key) bool { return k.kind == notify.RefundsLate })
	return nil
}

// lookAtJobs finds out whether jobs do their work. While the database is away none can: that a periodic one has not run counts from when this process could
// look again.
func (w *Watch) lookAtJobs(ctx context.Context) error {
	err := w.judgeJobs(ctx)
	if err != nil {
		w.jobsSeen = time.Time{}
	}
	return err
}

func (w *Watch) judgeJobs(ctx context.Context) error {
	of, err := w.store.OpenSubjects(ctx, w.DB, []notify.Kind{notify.JobDiscarded})
	if err != nil {
		return err
	}
	open := of[notify.JobDiscarded]
	facts, err := jobFacts(ctx, w.DB, w.Periodic, open)
	if err != nil {
		return err
	}
	if w.jobsSeen.IsZero() {
		w.jobsSeen = time.Now()
	}
	var errs []error
	for _, j := range facts {
		k := key{notify.JobDiscarded, j.kind}
		switch {
		case slices.Contains(open, j.kind):
			if j.over() {
				errs = append(errs, w.settle(ctx, k))
			}
		case !slices.Contains(w.RowsTell, j.kind) && j.stuck(time.Since(w.jobsSeen)):
			errs = append(errs, w.raise(ctx, k, j.told()))
		}
	}
	return errors.Join(errs...)
}
