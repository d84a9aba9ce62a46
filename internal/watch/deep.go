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
	return errors.Join(w.lookAtRefunds(ctx), w.lookAtJobs(ctx), w.lookAtMoney(ctx))
}

// lookAtMoney finds out whether treasuries and gas wallets have enough. What a node does not say leaves what it said before.
func (w *Watch) lookAtMoney(ctx context.Context) error {
	owed, err := delivery.Liabilities(ctx, w.DB)
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
		wg.Go(func() { w.network(ctx, n, owed, keep) })
	}
	wg.Wait()
	// A treasury that owes nothing is short of nothing.
	w.keep(found, func(k key) bool { return k.kind != notify.RefundsLate && !asked[k] })
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

// network asks the node of one network.
func (w *Watch) network(ctx context.Context, n Network, owed []delivery.Liability, keep func(finding, error)) {
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
	keep(gasFinding(n, gas, w.before()[key{notify.GasLow, n.ID}].bad), nil)
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
	w.keep(lateRefunds(late, w.byID, w.before()), func(k key) bool { return k.kind == notify.RefundsLate })
	return nil
}

// lookAtJobs finds out whether jobs do their work.
func (w *Watch) lookAtJobs(ctx context.Context) error {
	of, err := w.store.OpenSubjects(ctx, w.DB, []notify.Kind{notify.JobDiscarded})
	if err != nil {
		return err
	}
	open := of[notify.JobDiscarded]
	facts, err := jobFacts(ctx, w.DB, w.Periodic, open)
	if err != nil {
		return err
	}
	var errs []error
	for _, j := range facts {
		k := key{notify.JobDiscarded, j.kind}
		switch {
		case slices.Contains(open, j.kind):
			if j.over() {
				errs = append(errs, w.settle(ctx, k))
			}
		case !slices.Contains(w.RowsTell, j.kind) && j.stuck(time.Since(w.begun)):
			errs = append(errs, w.raise(ctx, k, j.told()))
		}
	}
	return errors.Join(errs...)
}
