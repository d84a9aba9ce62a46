package hostiletest

import (
	"fmt"
	"sync"
	"testing"

	"market/internal/app"
	"market/internal/app/apptest"
)

// atOnce is how many rows are played beside each other.
const atOnce = 12

// Every hostile thing ends as its row says: in the answer, in the books, on the chain and on the shelf; each service is asked as often as the row
// says, and memory stays bounded.
func TestHostile(t *testing.T) {
	t.Parallel()
	w := apptest.StartWith(t, apptest.Setup{Burst: 100_000, Quiet: true, Options: []app.Option{app.WithResolver(resolver.client)}})
	guarded := w.ReplicaWith(t, []app.Option{app.Guarded()})
	var (
		rows   = numbered()
		tally  = apptest.NewTally(len(rows))
		queue  = make(chan int)
		memory = watchMemory(t)
		wg     sync.WaitGroup
	)
	for range atOnce {
		wg.Go(func() {
			for i := range queue {
				p := rows[i]
				t.Run(p.title+"/"+p.name, func(one *testing.T) {
					defer func() { tally.Ended(i, !one.Failed()) }()
					door := w
					if p.guarded {
						door = guarded
					}
					p.play(one, w, door)
					p.judge(one, w)
				})
			}
		})
	}
	for i := range rows {
		queue <- i
	}
	close(queue)
	wg.Wait()
	memory.judge(t)
	w.AwaitEnds(t)
	in, out := w.Transfers(t, w.Treasury)
	for i, p := range rows {
		if len(p.calls) > 0 && !p.balanced(t, w, in, out) {
			tally.Ended(i, false)
		}
	}
	fmt.Print(text(rows, tally, memory, t.Failed()))
}
