package windowtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"market/internal/app/apptest"
	"market/internal/devnet"
	"market/internal/payment"
)

const (
	// pollEvery is how often a replica is asked how it stands, and what a call costs.
	pollEvery = 100 * time.Millisecond
	// answerTime bounds a request of a caller.
	answerTime = 60 * time.Second
	bytesMax   = 1 << 20

	stateReady    = "ready"
	stateDegraded = "degraded"
	stateNotReady = "not_ready"
)

// A capability is what /readyz says of one thing that a replica can do.
type capability struct {
	State string `json:"state"`
	AgeMS *int64 `json:"age_ms"` // nil: it was never proved
	Why   string `json:"why"`
}

// A standing is what /readyz says of the network.
type standing struct {
	State       string     `json:"state"`
	Why         string     `json:"why"`
	Settle      capability `json:"settle"`
	Refund      capability `json:"refund"`
	AllowanceMS int64      `json:"allowance_ms"`
}

// admits says that it takes payments.
func (s standing) admits() bool { return s.State == stateReady || s.State == stateDegraded }

// age is that of the older proof; false where one is missing.
func (s standing) age() (ms int64, proved bool) {
	if s.Settle.AgeMS == nil || s.Refund.AgeMS == nil {
		return 0, false
	}
	return max(*s.Settle.AgeMS, *s.Refund.AgeMS), true
}

// A look is one answer of /readyz, with when it was asked for and when it came.
type look struct {
	standing
	status    int
	stopping  bool // the process ends: whoever sends it callers is to stop, however the network stands
	sent, got time.Time
}

// A reply is what a caller got, with a payment or without.
type reply struct {
	paid      *signed // nil: it asked what a call costs
	status    int     // 0: the replica died, or did not answer
	code      string
	sent, got time.Time
}

// A member is one replica with those who call it.
type member struct {
	*apptest.Process
	f     *fleet
	name  string
	told  bool // to stop
	leave context.CancelFunc
	calls sync.WaitGroup

	mu      sync.Mutex
	looks   []look
	replies []reply
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}, Timeout: answerTime}

func newMember(f *fleet, name string, p *apptest.Process) *member {
	ctx, leave := context.WithCancel(context.Background())
	m := &member{Process: p, f: f, name: name, leave: leave}
	m.calls.Go(func() { m.poll(ctx) })
	m.calls.Go(func() { m.load(ctx) })
	return m
}

// rest ends all that calls it.
func (m *member) rest() {
	m.leave()
	m.calls.Wait()
}

// poll asks how it stands and what a call costs, one after the other.
func (m *member) poll(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if l, ok := m.look(ctx); ok {
			m.mu.Lock()
			m.looks = append(m.looks, l)
			m.mu.Unlock()
		}
		m.ask(ctx, nil)
		select {
		case <-ctx.Done():
			return
		case <-m.Ended:
			return
		case <-tick.C:
		}
	}
}

// load pays as often as it is told to.
func (m *member) load(ctx context.Context) {
	for {
		pause := time.NewTimer(time.Duration(m.f.every.Load()))
		select {
		case <-ctx.Done():
		case <-m.Ended:
		case <-pause.C:
			select {
			case <-ctx.Done():
			case <-m.Ended:
			case one := <-m.f.signed:
				m.calls.Go(func() { m.ask(ctx, &one) })
				continue
			}
		}
		pause.Stop()
		return
	}
}

// look asks /readyz. False: it did not answer.
func (m *member) look(ctx context.Context) (look, bool) {
	l := look{sent: time.Now()}
	status, _, body := m.do(ctx, http.MethodGet, m.Ops+"/readyz", nil)
	l.status, l.got = status, time.Now()
	var said struct {
		Networks map[string]standing `json:"networks"`
		Why      string              `json:"why"`
	}
	if status == 0 || json.Unmarshal(body, &said) != nil {
		return l, false
	}
	l.standing, l.stopping = said.Networks[devnet.NetworkID], said.Why != ""
	return l, true
}

// ask calls the service, with a payment or without, and keeps what came back.
func (m *member) ask(ctx context.Context, paid *signed) {
	r := reply{paid: paid, sent: time.Now()}
	header := ""
	if paid != nil {
		r.sent, header = m.f.sends(paid.nonce), paid.header
	}
	var body []byte
	r.status, _, body = m.do(ctx, http.MethodPost, m.URL+listed, map[string]string{payment.HeaderSignature: header})
	r.got = time.Now()
	var problem struct{ Code string }
	_ = json.Unmarshal(body, &problem) // a service's own answer has none
	r.code = problem.Code
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies = append(m.replies, r)
}

func (m *member) do(ctx context.Context, method, url string, headers map[string]string) (int, http.Header, []byte) {
	body := ""
	if method == http.MethodPost {
		body = `{"n":1}`
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, nil
	}
	r.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, bytesMax))
	if err != nil {
		return 0, nil, nil
	}
	return response.StatusCode, response.Header, text
}

// last is what it said last.
func (m *member) last() look {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.looks) == 0 {
		return look{}
	}
	return m.looks[len(m.looks)-1]
}

// seen are all looks and replies until now.
func (m *member) seen() ([]look, []reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]look(nil), m.looks...), append([]reply(nil), m.replies...)
}
