package app

import (
	"context"

	"market/internal/letter"
	"market/internal/notify"
	"market/internal/payout"
	"market/internal/refund"
	"market/internal/watch"
)

// loop runs work beside the calls until the program stops. It is watched: work that hangs is told of, and work that panics begins again.
func (a *App) loop(background context.Context, name string, run func(context.Context)) {
	a.loops.Go(background, &a.running, name, run)
}

func (a *App) panicked(loop string, cause any, stack []byte) {
	a.log.Error().Interface("panic", cause).Str("trace", string(stack)).Str("loop", loop).Msg("work beside the calls begins again")
}

// watchAll looks for what stops without anybody running into it, and tells the operator.
func (a *App) watchAll(background context.Context, rails rails) {
	w := watch.New(watch.Config{
		DB: a.db, Self: a.path.Owner(), Address: a.door.Addr().String(), Ready: func(context.Context) map[string]error { return a.ready.All() },
		Networks: rails.watched(), Loops: a.loops, Tries: a.path.Tries, Clock: a.now, Pace: a.pace, Switches: a.switches.On,
		Periodic: []string{refund.DueArgs{}.Kind(), payout.DueArgs{}.Kind(), payout.MakeArgs{}.Kind(), notify.DueArgs{}.Kind(),
			letter.DueArgs{}.Kind()},
		// The rows of these say when they are tried again, so a job that went wrong has ended as it should.
		RowsTell: []string{refund.Args{}.Kind(), payout.Args{}.Kind(), notify.Args{}.Kind(), letter.Args{}.Kind()},
		Tell:     a.tellChange,
		OnError:  func(err error) { a.log.Error().Err(err).Msg("watch") },
	})
	a.loop(background, "watch", w.Run)
	a.loop(background, "deep watch", w.RunDeep)
}

func (a *App) tellChange(c watch.Change) {
	line := a.log.Warn()
	if c.Over {
		line = a.log.Info()
	}
	line.Str("notice", string(c.Kind)).Str("subject", c.Subject).Msg(c.Text)
}

// watched returns what the money on each network is read from.
func (rs rails) watched() []watch.Network {
	var out []watch.Network
	for _, r := range rs {
		n := watch.Network{Network: r.network, Node: r.node}
		if r.engine != nil {
			n.Engine = r.engine
		}
		out = append(out, n)
	}
	return out
}
