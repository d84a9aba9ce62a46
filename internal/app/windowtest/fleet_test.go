package windowtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"market/internal/app/apptest"
	"market/internal/chain"
	"market/internal/devnet"
	"market/internal/money"
	"market/internal/payment"
	"market/internal/postgres"
	"market/internal/postgres/pgtest"
)

const (
	// What every replica is told: b, r and c of the formula, in US dollars. A call costs c, so that a few of them a second make r.
	budget, rate, burst = 200, 20, 4
	dollar              = 1_000_000 // units of the token

	// ahead is how far the chain may run ahead of the clock, in seconds.
	ahead  = 30
	payers = 8
	listed = "/s/priced/work"
	// A payment lives so many seconds of the chain's time. Terms allow 120.
	signedFor = 115
	// signedAhead payments lie ready to be sent.
	signedAhead = 32
)

// allowance is (b − Σc) / Σr of so many replicas.
func allowance(replicas int) time.Duration {
	n := time.Duration(replicas)
	return (budget - burst*n) * time.Second / (rate * n)
}

// A fleet is some replicas with what outlives them: the database, the chain, the service, its callers and the facilitator. The embedded World speaks to
// the oldest replica.
type fleet struct {
	*apptest.World
	t         testing.TB
	authority *authority
	env       []string
	terms     payment.Required
	signed    chan signed
	every     atomic.Int64 // how often somebody pays each replica, a time.Duration

	mu      sync.Mutex
	members []*member // those that run, the oldest first
	gone    []*member
	named   int
	sent    map[common.Hash]time.Time // when its caller sent a payment
}

// A signed is a payment that nobody has sent yet.
type signed struct {
	header string
	nonce  common.Hash
}

// newFleet starts so many replicas, with what each of them is told beside the usual, and returns when all of them are ready and the service is listed.
func newFleet(t testing.TB, replicas int, env ...string) *fleet {
	t.Helper()
	databaseURL := pgtest.URL(t)
	treasuryKey, treasury := apptest.NewKey(t)
	net, err := devnet.Start(t.Context(), devnet.Options{Burst: ahead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	db, err := postgres.Open(t.Context(), databaseURL, func(c *pgxpool.Config) { c.MaxConns, c.ConnConfig.ConnectTimeout = 2, apptest.Patience })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	f := &fleet{World: &apptest.World{Chain: net, DB: db, Treasury: treasury.Address()}, t: t, authority: newAuthority(t), signed: make(chan signed, signedAhead),
		sent: map[common.Hash]time.Time{}}
	f.full(false)
	f.authority.treasury, f.authority.engine = f.Treasury, f.TheirEngine(t)
	f.env = append([]string{
		"MARKET_DEV=1", "MARKET_LISTEN=127.0.0.1:0", "MARKET_OPS_LISTEN=127.0.0.1:0", "MARKET_PUBLIC_URL=http://market.test", "MARKET_DATABASE_URL=" + apptest.Limited(t, databaseURL, conns),
		apptest.NetworksFile(t, 2, net.URL()), "MARKET_TREASURY_KEY=" + treasuryKey, "MARKET_ADMIN_TOKEN=" + apptest.AdminToken, "MARKET_LOG_LEVEL=warn",
		fmt.Sprintf("MARKET_EXPOSURE_USD=%d", budget), fmt.Sprintf("MARKET_ADMIT_USD_PER_SECOND=%d", rate), fmt.Sprintf("MARKET_ADMIT_BURST_USD=%d", burst),
	}, env...)
	t.Cleanup(f.end)
	f.join(t, replicas)
	f.List(t, "priced", apptest.Works, map[string]any{"price_usd": fmt.Sprint(burst)})
	f.allReady(t)
	f.offer(t)
	f.startSigning(t)
	return f
}

// conns is what a replica takes of the database at most, as somebody says who runs eight of them on it: the usual 20 of each are more than it serves.
const conns = 8

// startsAtOnce is how many replicas start at a time: a start is work, and a machine of two cores starves on eight.
const startsAtOnce = 2

// join starts so many replicas.
func (f *fleet) join(t testing.TB, replicas int) []*member {
	t.Helper()
	joined := make([]*member, replicas)
	var starting errgroup.Group
	starting.SetLimit(startsAtOnce)
	for i := range replicas {
		starting.Go(func() (err error) {
			joined[i], err = f.launch(t)
			return err
		})
	}
	if err := starting.Wait(); err != nil {
		t.Fatal(err)
	}
	return joined
}

// supervised is how often a replica is started again that did not reach its database in time, as whoever runs one has it done: it says so and ends, and has
// taken nothing.
const supervised = 3

// launch starts one replica and what calls it.
func (f *fleet) launch(t testing.TB) (*member, error) {
	f.mu.Lock()
	f.named++
	name := fmt.Sprintf("r%d", f.named)
	f.mu.Unlock()
	// Each knows the facilitator under an address of its own.
	file := apptest.FacilitatorsFile(t, map[string]any{"url": f.authority.URL + "/" + name}, false, &apptest.Hosted{Server: &httptest.Server{}})
	p, err := launch(append(slices.Clone(f.env), file))
	for again := 0; again < supervised && err != nil && strings.Contains(err.Error(), "failed to connect to"); again++ {
		p, err = launch(append(slices.Clone(f.env), file))
	}
	if err != nil {
		return nil, err
	}
	m := newMember(f, name, p)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = append(f.members, m)
	if f.URL == "" {
		f.URL = p.URL
	}
	return m, nil
}

// without takes a replica out of the fleet that is about to end.
func (f *fleet) without(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.members = slices.DeleteFunc(f.members, func(other *member) bool { return other == m })
	f.gone = append(f.gone, m)
}

// alive are the replicas that run.
func (f *fleet) alive() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.members)
}

// everybody are all replicas that ever ran.
func (f *fleet) everybody() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Concat(f.members, f.gone)
}

// kill ends a replica as a power cut does.
func (f *fleet) kill(m *member) {
	f.without(m)
	m.Kill()
	m.rest()
}

// stop tells a replica to stop, and does not wait until it has.
func (f *fleet) stop(m *member) {
	f.without(m)
	m.told = true
	_ = m.Stop()
}

func (f *fleet) end() {
	for _, m := range f.everybody() {
		m.Kill()
		m.rest()
		if found := m.Races(); found != "" {
			f.t.Errorf("data race in replica %s: %s", m.name, found)
		}
		if f.t.Failed() {
			f.t.Logf("replica %s said:\n%s", m.name, m.Said())
		}
	}
}

// allReady waits until every replica says that it is, and that the fleet is as large as it is.
func (f *fleet) allReady(t testing.TB) {
	t.Helper()
	for _, m := range f.alive() {
		apptest.Eventually(t, "replica "+m.name+" is ready", func() bool { return m.last().State == stateReady })
	}
}

// full has the callers send what a replica takes in a second, and half as much again; otherwise a call a second.
func (f *fleet) full(is bool) {
	every := time.Second
	if is {
		every = time.Second * burst / rate * 2 / 3
	}
	f.every.Store(int64(every))
}

// offer reads the terms that all payments are signed for.
func (f *fleet) offer(t testing.TB) {
	t.Helper()
	ask := apptest.Ask(f.URL + listed)
	var a apptest.Answer
	apptest.Eventually(t, "people are asked to pay", func() bool {
		a = f.Send(t, ask, "")
		return a.Status == http.StatusPaymentRequired
	})
	terms, err := payment.DecodeChallenge(a.Header.Get(payment.HeaderRequired))
	if err != nil {
		t.Fatal(err)
	}
	f.terms = terms
}

// startSigning signs payments of some callers until the test ends: what is to be sent lies ready.
func (f *fleet) startSigning(t testing.TB) {
	var callers []chain.Key
	for range payers {
		callers = append(callers, f.Payer(t, 1_000_000*dollar))
	}
	var (
		ctx, done = context.WithCancel(context.WithoutCancel(t.Context()))
		wg        sync.WaitGroup
	)
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			one, err := f.sign(ctx, callers[n%payers])
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			select {
			case f.signed <- one:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { done(); wg.Wait() })
}

func (f *fleet) sign(ctx context.Context, payer chain.Key) (signed, error) {
	head, err := f.Chain.Head(ctx)
	if err != nil {
		return signed{}, err
	}
	accepted := f.terms.Accepts[0]
	a := chain.Authorization{From: payer.Address(), To: accepted.PayTo, Value: money.FromUnits(burst * dollar), ValidBefore: head.Time + signedFor}
	if _, err := rand.Read(a.Nonce[:]); err != nil {
		return signed{}, err
	}
	header, err := payment.EncodePayload(accepted, f.terms.Resource, apptest.Authorize(f.t, payer, a))
	return signed{header, a.Nonce}, err
}

// sends notes when a payment is sent.
func (f *fleet) sends(nonce common.Hash) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Now()
	f.sent[nonce] = at
	return at
}

// sentAt is when a payment was sent.
func (f *fleet) sentAt(nonce common.Hash) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[nonce]
}
