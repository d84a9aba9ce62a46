package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"market/internal/chain"
)

const (
	spanMax = 2_000 // blocks of one question; public nodes refuse much more
	// spansMax bounds one scan in round trips. What it did not come to, the next one does.
	spansMax = 200
	// growAfter is how many ranges in a row a node has to answer before it is asked for twice as many blocks again.
	growAfter = 8
	// backMax is how far a scan goes back where the chain has replaced what was final, or where logs are missing; never before the opening.
	backMax = 10_000
)

// Node is what a scan asks of a network: a *chain.Node.
type Node interface {
	HoldingAt(ctx context.Context, asset, wallet common.Address, depth int) (chain.Holding, error)
	Transfers(ctx context.Context, asset, wallet common.Address, from, to uint64) ([]chain.Transfer, chain.Head, error)
	BlockAt(ctx context.Context, number uint64) (chain.Head, error)
}

var (
	errApart = errors.New("the node shows two blocks of one number")
	errMore  = errors.New("there is more to scan than one look does; the next goes on")
)

// A pace is how many blocks a node is asked for at once.
type pace struct{ span, well int }

// worked grows what refused halves.
func (p *pace) worked() {
	if p.well++; p.well >= growAfter {
		p.span, p.well = min(2*p.span, spanMax), 0
	}
}

// refused says whether a smaller question than the one for so many blocks is left to ask.
func (p *pace) refused(asked uint64) bool {
	p.well = 0
	p.span = max(1, int(asked/2)) //nolint:gosec // at most spanMax
	return asked > 1
}

// scan reads the logs of a wallet up to the newest final block, from the block where the last one ended. reorganised says that the chain has replaced blocks
// that were final. again has it go back a way: what is wrong may be what was read.
func (r *Reconciler) scan(ctx context.Context, n Network, k Key, again bool) (reorganised bool, err error) {
	held, err := n.Node.HoldingAt(ctx, k.Asset, k.Treasury, n.Depth)
	if err != nil {
		return false, fmt.Errorf("read what wallet %s holds: %w", k, err)
	}
	known, err := r.store.find(ctx, r.DB, k)
	if errors.Is(err, errNew) {
		return false, r.store.open(ctx, r.DB, k, held)
	}
	if err != nil {
		return false, err
	}
	if known.OpenedAt.Before(r.RestoredAt) {
		return false, r.store.reopen(ctx, r.DB, k, held, r.RestoredAt)
	}
	if held.Block.Number < known.Scanned.Block {
		return false, nil // a node that is behind says nothing new
	}
	mark := known.Scanned
	stands, err := n.Node.BlockAt(ctx, mark.Block)
	if err != nil {
		return false, fmt.Errorf("read block %d of %s: %w", mark.Block, k.Network, err)
	}
	if reorganised = stands.Hash != mark.Hash; reorganised || again && known.Scanned.Block == known.HeldBlock { // else it is on that way already, and would never come to its end
		if mark, err = r.back(ctx, n, known); err != nil {
			return false, err
		}
	}
	if err := r.forward(ctx, n, k, mark, held); err != nil {
		return reorganised, err
	}
	return reorganised, r.store.hold(ctx, r.DB, k, held)
}

// back moves the mark to where the scan is to begin anew.
func (r *Reconciler) back(ctx context.Context, n Network, known State) (Mark, error) {
	to := known.OpeningBlock
	if reach := known.Scanned.Block - min(known.Scanned.Block, backMax); reach > to {
		to = reach
	}
	b, err := n.Node.BlockAt(ctx, to)
	if err != nil {
		return Mark{}, fmt.Errorf("read block %d of %s: %w", to, n.ID, err)
	}
	mark := Mark{Block: to, Hash: b.Hash}
	return mark, r.store.move(ctx, r.DB, known.Key, known.Scanned, mark)
}

func (r *Reconciler) forward(ctx context.Context, n Network, k Key, mark Mark, held chain.Holding) error {
	p := r.paceOf(n.ID)
	defer r.keepPace(n.ID, p)
	for range spansMax {
		if mark.Block == held.Block.Number {
			if mark.Hash != held.Block.Hash {
				return fmt.Errorf("scan wallet %s: %w", k, errApart)
			}
			return nil
		}
		to := min(mark.Block+uint64(p.span), held.Block.Number) //nolint:gosec // a span is above zero
		found, last, err := n.Node.Transfers(ctx, k.Asset, k.Treasury, mark.Block+1, to)
		if chain.Narrows(err) && p.refused(to-mark.Block) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read transfers of wallet %s from block %d to %d: %w", k, mark.Block+1, to, err)
		}
		p.worked()
		next := Mark{Block: to, Hash: last.Hash}
		if err := r.store.extend(ctx, r.DB, k, mark, next, found); err != nil {
			return err
		}
		mark = next
	}
	return errMore
}
