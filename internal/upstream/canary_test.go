package upstream

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"market/internal/call"
	"market/internal/catalog"
)

// aviary is canaries over a scripted network. It belongs into a synctest bubble.
func aviary(n *network, addresses ...string) *Canaries {
	n.start = time.Now()
	c := NewCanaries(addresses, time.Now, func(Sounding) {})
	c.connect = n.connect
	return c
}

func TestCanaries_Ask_SaysHowManyTakeAConnection(t *testing.T) {
	t.Parallel()
	refused, late := host{err: syscall.ECONNREFUSED}, host{after: time.Hour}
	for name, tt := range map[string]struct {
		hosts  map[string]host
		failed int
		took   time.Duration
	}{
		"all are there":               {map[string]host{v4a: {after: 100 * time.Millisecond}}, 0, 100 * time.Millisecond},
		"one refuses":                 {map[string]host{v4a: refused}, 1, 0},
		"one does not answer in time": {map[string]host{v4b: late}, 1, time.Second},
		"none is there":               {map[string]host{v4a: late, v4b: late}, 2, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &network{hosts: tt.hosts}
				c := aviary(n, v4a, v4b)
				s := c.Ask(t.Context(), time.Now())
				if s.Asked != 2 || s.Failed != tt.failed || s.Fails() != (tt.failed > 0) || time.Since(n.start) != tt.took || !s.At.Equal(time.Now()) {
					t.Errorf("sounding = %+v after %v, want %d of 2 failed after %v", s, time.Since(n.start), tt.failed, tt.took)
				}
				if n.open != 0 {
					t.Errorf("%d connections stay open", n.open)
				}
			})
		})
	}
}

func TestCanaries_Ask_ASoundingCountsForSomeSecondsAndAGoodOneForWhatBeganBeforeIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hosts map[string]host
		began time.Duration // of the request, after the first sounding
		asked time.Duration // for its sake
		anew  bool
	}{
		"a request from before it":                   {nil, 0, 3 * time.Second, false},
		"a request from after it":                    {nil, time.Second, 3 * time.Second, true},
		"a bad one, and a request from after it":     {map[string]host{v4a: {err: syscall.EHOSTUNREACH}}, time.Second, 3 * time.Second, false},
		"just before its end":                        {nil, 0, canaryLife - 1, false},
		"at its end":                                 {nil, 0, canaryLife, true},
		"a bad one at its end":                       {map[string]host{v4a: {err: syscall.EHOSTUNREACH}}, 0, canaryLife, true},
		"a request that began as the sounding ended": {nil, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &network{hosts: tt.hosts}
				c := aviary(n, v4a)
				first := c.Ask(t.Context(), time.Now())
				goBy(tt.asked)
				if _, counts := c.State(time.Now()); counts != (tt.asked < canaryLife) {
					t.Errorf("the first counts: %v", counts)
				}
				c.Ask(t.Context(), first.At.Add(tt.began))
				if got := len(n.tried) == 2; got != tt.anew {
					t.Errorf("asked anew: %v, want %v", got, tt.anew)
				}
			})
		})
	}
}

func TestCanaries_Ask_ManyWaitForOneRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{hosts: map[string]host{v4a: {after: time.Hour}}}
		c := aviary(n, v4a)
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				if s := c.Ask(t.Context(), time.Now()); !s.Fails() {
					t.Errorf("sounding = %+v, want a failure", s)
				}
			})
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if s := c.Ask(gone, time.Now()); s != (Sounding{}) {
			t.Errorf("who leaves hears %+v, want nothing", s)
		}
		waiting.Wait()
		if len(n.tried) != 1 {
			t.Errorf("%d rounds, want 1", len(n.tried))
		}
	})
}

func TestCanaries_NoneHaveNoOpinion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*Canaries{"none": nil, "none named": NewCanaries(nil, time.Now, nil)} {
		if s := c.Ask(t.Context(), time.Now()); s != (Sounding{}) || s.Fails() {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if _, counts := NewCanaries(nil, time.Now, nil).State(time.Now()); counts {
		t.Error("a sounding that nobody took counts")
	}
}

// B138: what fails on our side is never the service's, and the canaries tell where nothing else does.
func TestClient_Ask_AConnectionThatIsNotMadeIsTheServicesOnlyWithEvidence(t *testing.T) {
	t.Parallel()
	failed := func(err error) connectFunc {
		return func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
	}
	errno := func(e syscall.Errno) connectFunc { return failed(os.NewSyscallError("connect", e)) }
	late := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
	}
	for name, tt := range map[string]struct {
		connect connectFunc
		canary  connectFunc // nil: no canary
		want    call.Reason
		asked   int32
	}{
		"a timeout while the canary fails":               {late, late, call.EgressDown, 1},
		"a timeout while the canary refuses":             {late, errno(syscall.ECONNREFUSED), call.EgressDown, 1},
		"a timeout of the system while the canary fails": {errno(syscall.ETIMEDOUT), errno(syscall.ENETUNREACH), call.EgressDown, 1},
		"a timeout while the canary passes":              {late, stand, call.UpstreamTimeout, 1},
		"a timeout of the system without a canary":       {errno(syscall.ETIMEDOUT), nil, call.UpstreamTimeout, 0},
		"a timeout without a canary":                     {late, nil, call.UpstreamTimeout, 0},
		"refused while the canary fails":                 {errno(syscall.ECONNREFUSED), late, call.UpstreamUnreachable, 0},
		"reset while the canary fails":                   {errno(syscall.ECONNRESET), late, call.UpstreamUnreachable, 0},
		"no route to the network":                        {errno(syscall.ENETUNREACH), nil, call.EgressDown, 0},
		"no route to the host":                           {errno(syscall.EHOSTUNREACH), nil, call.EgressDown, 0},
		"too many files here":                            {failed(os.NewSyscallError("socket", syscall.EMFILE)), stand, call.EgressDown, 0},
		"too many files on the machine":                  {failed(os.NewSyscallError("socket", syscall.ENFILE)), stand, call.EgressDown, 0},
		"no free port":                                   {errno(syscall.EADDRNOTAVAIL), stand, call.EgressDown, 0},
		"our own firewall":                               {errno(syscall.EPERM), stand, call.EgressDown, 0},
		"no memory":                                      {failed(os.NewSyscallError("socket", syscall.ENOBUFS)), stand, call.EgressDown, 0},
		"what nobody thought of":                         {failed(errors.New("of no type")), stand, call.LocalError, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			options := Options{AllowPrivate: true}
			if tt.canary != nil {
				options.Canaries = NewCanaries([]string{v4b}, time.Now, func(Sounding) {})
				options.Canaries.connect = func(ctx context.Context, network, address string) (net.Conn, error) {
					asked.Add(1)
					ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
					defer cancel()
					return tt.canary(ctx, network, address)
				}
			}
			c := New(options)
			c.dialer.connect = tt.connect
			s := serviceAt(t, "http://"+publicAddress, func(e *catalog.Endpoint) { e.Timeout = 50 * time.Millisecond })
			if got := c.Ask(t.Context(), requestTo(s)); got.Reason != tt.want {
				t.Errorf("reason = %q, want %q (%v)", got.Reason, tt.want, got.Err)
			}
			if asked.Load() != tt.asked {
				t.Errorf("the canary was asked %d times, want %d", asked.Load(), tt.asked)
			}
		})
	}
}

// stand makes a connection to nobody.
func stand(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	_ = there.Close()
	return here, nil
}

// The canaries are asked about connections alone: a service that takes one and then says nothing has shown that the way to it is open.
func TestClient_Ask_ASilentServiceIsSlowWhateverTheCanariesSay(t *testing.T) {
	t.Parallel()
	canaries := NewCanaries([]string{v4b}, time.Now, func(Sounding) {})
	canaries.connect = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("down") }
	url := accept(t, func(c net.Conn) { readHead(c); readHead(c) })
	s := serviceAt(t, url, func(e *catalog.Endpoint) { e.Timeout = 100 * time.Millisecond })
	if got := New(Options{AllowPrivate: true, Canaries: canaries}).Ask(t.Context(), requestTo(s)); got.Reason != call.UpstreamTimeout {
		t.Errorf("reason = %q, want %q (%v)", got.Reason, call.UpstreamTimeout, got.Err)
	}
}

func TestCanaries_TellOnceWhenTheyBeginToFailAndWhenTheyPassAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{hosts: map[string]host{v4a: {err: syscall.EHOSTUNREACH}}}
		c := aviary(n, v4a)
		var heard []bool
		c.changed = func(s Sounding) { heard = append(heard, s.Fails()) }
		sound := func() { c.Ask(t.Context(), time.Now()); goBy(canaryLife) }
		sound()
		sound()
		n.hosts = nil
		sound()
		sound()
		if !slices.Equal(heard, []bool{true, false}) {
			t.Errorf("heard %v, want one failure and one recovery", heard)
		}
	})
}

func TestCanaries_Again_AsksAgainWhileNoneAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := host{after: time.Hour}
		n := &network{hosts: map[string]host{v4a: late, v4b: late}}
		c := aviary(n, v4a, v4b)
		c.Again(t.Context(), false)
		if last, _ := c.Last(); last.Asked != 0 {
			t.Fatalf("%+v, and nobody wanted to know", last)
		}
		c.Ask(t.Context(), time.Now())
		first, before := c.Last()
		if !first.AllFail() || before.Asked != 0 {
			t.Fatalf("last %+v, before %+v; want one round in which none answers", first, before)
		}
		for range 4 { // within what the first counts for
			goBy(time.Second)
			c.Again(t.Context(), false)
		}
		if last, _ := c.Last(); last != first {
			t.Errorf("asked again after %s", last.At.Sub(first.At))
		}
		goBy(time.Second)
		c.Again(t.Context(), false)
		last, before := c.Last()
		if before != first || !last.AllFail() || last.At.Sub(first.At) > 10*time.Second {
			t.Errorf("last %+v, before %+v; want another round within 10 s of the first", last, before)
		}
	})
}
