package reconcile

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const countSQL = `SELECT count(*) FROM wallet_transfers`

func (b *bench) transfers(t *testing.T) (n int) {
	t.Helper()
	if err := b.db.QueryRow(t.Context(), countSQL).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (b *bench) state(t *testing.T) State {
	t.Helper()
	all, err := Store{}.Wallets(t.Context(), b.db)
	if err != nil || len(all) != 1 {
		t.Fatalf("wallets %+v, %v; want one", all, err)
	}
	return all[0]
}

func TestScan_OneThatIsCutGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 3 {
		b.paid(t, 100)
	}
	b.mine(t, 20)
	opened := b.state(t)
	b.r.paces[b.key.Network] = &pace{span: 4}
	b.node.fails, b.node.healthy = errors.New("the power is out"), 2
	if err := b.r.Now(t.Context()); !errors.Is(err, b.node.fails) {
		t.Fatalf("cut: %v", err)
	}
	cut := b.state(t)
	if cut.Scanned.Block != opened.Scanned.Block+8 || cut.HeldBlock != opened.HeldBlock || !cut.ComparedAt.Equal(opened.ComparedAt) {
		t.Errorf("after the cut %+v, before it %+v; want the mark 8 blocks on, and nothing compared", cut, opened)
	}
	b.node.fails, b.node.asked = nil, nil
	b.look(t)
	if got := b.state(t); b.node.asked[0][0] != cut.Scanned.Block+1 || got.Scanned.Block != got.HeldBlock || b.transfers(t) != 3 {
		t.Errorf("asked %v, %+v with %d transfers; want it to go on at %d, and 3 transfers", b.node.asked, got, b.transfers(t), cut.Scanned.Block+1)
	}
	b.last(t, time.Hour)
	b.want(t, "an hour later", false)
}

// stingy refuses ranges of logs above a bound, as nodes do, and counts the ones that it answered and refused.
func stingy(t *testing.T, behind string, most uint64, refusal string, answered, refused *atomic.Int64) *httptest.Server {
	t.Helper()
	type question struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	wide := func(q question) bool {
		var f struct{ FromBlock, ToBlock string }
		if q.Method != "eth_getLogs" || json.Unmarshal(q.Params[0], &f) != nil {
			return false
		}
		from, _ := strconv.ParseUint(strings.TrimPrefix(f.FromBlock, "0x"), 16, 64)
		to, _ := strconv.ParseUint(strings.TrimPrefix(f.ToBlock, "0x"), 16, 64)
		return to-from >= most
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		var many []question
		if json.Unmarshal(body, &many) == nil && len(many) > 0 && many[0].Method == "eth_getLogs" {
			if wide(many[0]) {
				refused.Add(1)
				var all []string
				for _, q := range many {
					all = append(all, `{"jsonrpc":"2.0","id":`+string(q.ID)+`,"error":`+refusal+`}`)
				}
				_, _ = io.WriteString(w, "["+strings.Join(all, ",")+"]")
				return
			}
			answered.Add(1)
		}
		request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, behind, bytes.NewReader(body))
		if err != nil {
			return
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(w, response.Body)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestScan_ANodeThatBoundsItsAnswersIsAskedForLess(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"the range":   `{"code":-32602,"message":"block range is too large, at most 10"}`,
		"the results": `{"code":-32005,"message":"query returned more than 10000 results"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for range 3 {
				b.paid(t, 100)
				b.mine(t, 40)
			}
			var answered, refused atomic.Int64
			b.r = b.by(dial(t, stingy(t, b.net.URL(), 10, refusal, &answered, &refused).URL))
			b.look(t)
			// It grows again now and then, because what was too much may not be so any more, and is refused once each time.
			if a, r := answered.Load(), refused.Load(); a < 13 || r < 1 || r > 5+a/growAfter {
				t.Errorf("%d ranges were answered and %d refused", a, r)
			}
			if got := b.state(t); got.Scanned.Block != got.HeldBlock || b.transfers(t) != 3 {
				t.Errorf("%+v with %d transfers, want all 3", got, b.transfers(t))
			}
			b.last(t, time.Hour)
			b.want(t, "an hour later", false)
		})
	}
}

// While something is missing a look goes back; a node of which one look does not get all that way must not have it go back for ever.
func TestScan_OneThatGoesBackInSmallStepsComesToItsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, in := b.paid(t, 900)
	b.node.hides[in.Transaction] = true
	b.look(t)
	b.mine(t, 10)
	b.look(t)
	if len(b.suspected(t)) == 0 {
		t.Fatal("a row without its log is not suspected")
	}
	delete(b.node.hides, in.Transaction)
	for range 20 {
		b.r.keepPace(b.key.Network, &pace{span: 1})
		b.node.fails, b.node.healthy = errors.New("the look's time is over"), 3
		_ = b.r.Now(t.Context())
		if len(b.suspected(t)) == 0 {
			return
		}
	}
	t.Errorf("after 20 looks of three blocks each %v are suspected still", b.suspected(t))
}

func TestScan_BlocksThatWereFinalAndAreReplacedAreReadAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.paid(t, 100)
	id, gone := b.paid(t, 300)
	b.look(t)
	if n := b.transfers(t); n != 2 {
		t.Fatalf("%d transfers, want 2", n)
	}
	if err := b.net.Reorg(t.Context(), gone.BlockNumber); err != nil {
		t.Fatal(err)
	}
	b.mine(t, 2*depth)
	b.exec(t, `UPDATE calls SET payment_state = 'lost' WHERE id = $1`, id)
	b.look(t)
	if n := b.transfers(t); n != 1 || len(b.told) != 1 || b.told[0].Kind != Reorganised || !b.told[0].Over {
		t.Errorf("%d transfers, told is %+v; want the one that stands, and that the chain was reorganised", n, b.told)
	}
	b.last(t, time.Hour)
	b.want(t, "an hour later", false)
}

func TestReconciler_Due_OfManyProcessesOneHasTheTurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	looks := func() (n int) {
		t.Helper()
		b.node.mu.Lock()
		defer b.node.mu.Unlock()
		return len(b.node.asked)
	}
	begun := looks()
	for range 3 {
		b.mine(t, 1)
		if err := b.by(b.node).Due(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := looks() - begun; got != 1 {
		t.Errorf("%d looked, want 1", got)
	}
}
