package chain

import (
	"context"
	"sync"
)

// viewsMax is how often work is done from its beginning because the endpoint of its view was lost.
const viewsMax = 3

// OneView does work in which everything that a Node is asked is answered by one endpoint. Endpoints are some blocks apart: what one of them shows to be
// used, another may not have yet, so that a transfer is not there may be concluded only from one that is known to have reached the block in question.
// Whatever puts two answers together to say "it is not there" does so in here. Where the endpoint cannot go on, the work begins anew with another one,
// so it has to bear to be repeated. Work inside of other work shares its view. One view is for one Node, and Head has answers of its own.
func OneView(ctx context.Context, work func(ctx context.Context) error) error {
	if viewOf(ctx) != nil {
		return work(ctx)
	}
	for try := 1; ; try++ {
		v := &view{}
		err := work(context.WithValue(ctx, viewKey{}, v))
		if err == nil || !v.isLost() || try == viewsMax || ctx.Err() != nil {
			return err
		}
	}
}

type viewKey struct{}

func viewOf(ctx context.Context) *view {
	v, _ := ctx.Value(viewKey{}).(*view)
	return v
}

// A view is the endpoint that the work of one context sees the chain by. A nil view is none.
type view struct {
	mu   sync.Mutex
	by   *endpoint // nil: nothing was asked yet
	lost bool      // it could not go on
}

func (v *view) endpoint() *endpoint {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.by
}

// keep makes the endpoint that answered first the view's own. False: another one was first, so this answer is none of the view.
func (v *view) keep(e *endpoint) bool {
	if v == nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = e
	}
	return v.by == e
}

func (v *view) lose() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost = true
}

func (v *view) isLost() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lost
}
