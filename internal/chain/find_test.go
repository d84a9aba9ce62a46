package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// A rangeLog keeps the block ranges that logs were asked for. The chain under it is empty and has a head.
type rangeLog struct {
	head   uint64
	mu     sync.Mutex
	ranges [][2]uint64
}

func (l *rangeLog) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var q struct {
		Method string
		Params []struct{ FromBlock, ToBlock hexutil.Uint64 }
	}
	if json.Unmarshal(body, &q) == nil && q.Method == "eth_getLogs" {
		l.mu.Lock()
		l.ranges = append(l.ranges, [2]uint64{uint64(q.Params[0].FromBlock), uint64(q.Params[0].ToBlock)})
		l.mu.Unlock()
	}
	fakeNode{
		"eth_chainId": `"0x14a34"`,
		"eth_getLogs": `[]`,
		"eth_getBlockByNumber": fmt.Sprintf(
			`{"number":"%#x","timestamp":"0x1","hash":"0x0000000000000000000000000000000000000000000000000000000000000001"}`, l.head),
	}.ServeHTTP(w, withBody(r, body))
}

func TestNode_FindSettlement_AsksForEveryBlockOnceInBoundedSpans(t *testing.T) {
	t.Parallel()
	const head = 10_000
	for name, tt := range map[string]struct {
		from  uint64
		spans int
	}{
		"the head alone":           {head, 1},
		"a full span":              {head - spanMax + 1, 1},
		"a block more than a span": {head - spanMax, 2},
		"the whole chain":          {0, 6},
		"from beyond the head":     {head + 1, 0},
		"from far beyond the head": {1 << 62, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &rangeLog{head: head}
			if _, found, err := dialHandler(t, l).FindSettlement(t.Context(), wanted(), tt.from); err != nil || found {
				t.Fatalf("FindSettlement: %v, %v", found, err)
			}
			if len(l.ranges) != tt.spans {
				t.Fatalf("asked for %v, want %d spans", l.ranges, tt.spans)
			}
			next := tt.from
			for _, r := range l.ranges {
				if r[0] != next || r[1] < r[0] || r[1]-r[0] >= spanMax {
					t.Errorf("asked for %v, want %d first and at most %d blocks", r, next, spanMax)
				}
				next = r[1] + 1
			}
			if tt.spans > 0 && next != head+1 {
				t.Errorf("the last span ends at %d, want %d", next-1, head)
			}
		})
	}
}

func TestNode_FindSettlement_RefusesAnEndlessSearch(t *testing.T) {
	t.Parallel()
	l := &rangeLog{head: 1 << 40}
	if _, _, err := dialHandler(t, l).FindSettlement(t.Context(), wanted(), 0); !errors.Is(err, errSearch) || len(l.ranges) != 0 {
		t.Errorf("FindSettlement: %v after %d round trips, want %v and none", err, len(l.ranges), errSearch)
	}
}
