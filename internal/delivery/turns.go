package delivery

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// turns lets one writer of this process at a time work on a service. Writers that take the service's row lock wait for each other in any
// case; waiting here, they do not each hold a connection of the pool that everything else needs.
type turns struct{ of sync.Map } // service -> chan struct{} of one

// take waits for a turn and returns what ends it.
func (t *turns) take(ctx context.Context, service uuid.UUID) (end func(), err error) {
	made, _ := t.of.LoadOrStore(service, make(chan struct{}, 1))
	turn := made.(chan struct{})
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
