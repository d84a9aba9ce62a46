package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/rs/zerolog"

	"market/internal/chain"
	"market/internal/config"
	"market/internal/source"
)

// rpcBlock is how many calls of a node are set aside at once: a paid call asks it some ten times, so this is a statement for every ten of them.
const rpcBlock = 100

// nodeNames are the names of a network's nodes as sources, in their order.
func nodeNames(n config.Network) []string {
	urls := make([]string, len(n.RPC))
	for i, node := range n.RPC {
		urls[i] = node.URL
	}
	return source.RPCNames(n.ID, urls)
}

// nodes are the nodes of every network, which serve it from here on.
func (k *keeper) nodes(networks []config.Network) []source.Source {
	var all []source.Source
	for _, n := range networks {
		for i, name := range nodeNames(n) {
			all = append(all, source.Configured(name, source.KindRPC, n.RPC[i].Source))
			k.serves[name] = []string{n.ID}
		}
	}
	return all
}

// openNode opens a network with a gate before each of its nodes. It asks none of them anything.
func openNode(n config.Network, sources *source.Registry, log zerolog.Logger) (*chain.Node, error) {
	var gates []chain.Gate
	for _, name := range nodeNames(n) {
		meter := sources.Of(name)
		gates = append(gates, &nodeGate{meter: meter, block: meter.Block(rpcBlock), log: log})
	}
	return chain.Open(networkOf(n), gates...)
}

// A nodeGate keeps count of what one node is asked, and of what it refuses.
type nodeGate struct {
	meter *source.Meter
	block *source.Block
	log   zerolog.Logger
	down  atomic.Bool // it did not answer when it was asked last
}

// Begin sets calls aside. Which of them are for a refund cannot be told: a refund is read, sent and proved by the same calls as everything else, and
// whoever holds our money back for want of them would wait for a day. So all of them may use the last tenth of a guard.
func (g *nodeGate) Begin(ctx context.Context, calls int) (chain.Turn, error) {
	grant, err := g.block.Take(ctx, source.Refund, int64(calls))
	if err != nil {
		return nil, held(err)
	}
	return nodeTurn{g, grant}, nil
}

func held(err error) error {
	limit, out := errors.AsType[*source.LimitError](err)
	if !out {
		return err
	}
	return &chain.HeldError{Until: limit.Until, Err: err}
}

type nodeTurn struct {
	*nodeGate
	grant *source.Grant
}

// End learns what the node said. A refusal is one from here on, for every process.
func (t nodeTurn) End(ctx context.Context, said chain.Said) error {
	t.tell(said)
	of := t.meter.Source()
	answer := source.Answer{Status: said.Status, RetryAfter: said.RetryAfter, Code: said.Code, Text: said.Text}
	verdict := source.Verdict{Kind: source.Troubled}
	if said.Err == nil || said.Code != 0 {
		answer.Status = max(answer.Status, http.StatusOK)
	}
	if answer.Status != 0 {
		verdict = source.Classify(of.Kind, of.RunsOut, of.Shapes, answer)
	}
	t.grant.Report(ctx, verdict)
	switch verdict.Kind {
	case source.Refused, source.Rejected, source.Slowed:
		if err := t.meter.Ready(); err != nil {
			return held(err)
		}
		return fmt.Errorf("source %s refuses us: %s", of.Name, verdict.Said)
	case source.Worked, source.Troubled:
	}
	return nil
}

// tell writes that a node is not reached, and that it is again, once each. What it refuses is told as of every source.
func (t nodeTurn) tell(said chain.Said) {
	switch {
	case errors.Is(said.Err, context.Canceled), errors.Is(said.Err, context.DeadlineExceeded): // whoever asked has left
	case said.Err == nil:
		if t.down.Swap(false) {
			t.log.Info().Str("source", t.meter.Source().Name).Msg("chain node answers again")
		}
	case !t.down.Swap(true):
		t.log.Warn().Err(said.Err).Str("source", t.meter.Source().Name).Msg("chain node does not answer as it should; the next one of its network is asked, where there is one")
	}
}
