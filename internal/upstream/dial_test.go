package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"market/internal/call"
)

// A shop is a client as in production whose public address is a TLS server of this test: what would be connected to over the internet is
// connected to here, and noted.
type shop struct {
	*Client
	mu     sync.Mutex
	dialed []string
}

func newShop(t *testing.T, r Resolver, h http.HandlerFunc) *shop {
	t.Helper()
	a := newAuthority(t)
	server := httptest.NewUnstartedServer(h)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t, publicHost, nil)}}
	server.StartTLS()
	t.Cleanup(server.Close)
	s := &shop{Client: a.trusting(New(Options{Resolver: r}))}
	s.dialer.connect = func(ctx context.Context, _, address string) (net.Conn, error) {
		s.mu.Lock()
		s.dialed = append(s.dialed, address)
		s.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	t.Cleanup(s.Close)
	return s
}

func (s *shop) connections() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dialed)
}

func TestDialer_ConnectsToWhatTheNameLeadsToAndSpeaksToTheName(t *testing.T) {
	t.Parallel()
	names, resolver := startDNS(t, always(dnsmessage.RCodeSuccess, publicAddress))
	host, server := make(chan string, 1), make(chan string, 1)
	s := newShop(t, resolver, func(_ http.ResponseWriter, r *http.Request) { host <- r.Host; server <- r.TLS.ServerName })
	if got := s.Ask(t.Context(), requestTo(serviceAt(t, publicURL, nil))); got.Reason != call.OK {
		t.Fatalf("reason = %q (%v)", got.Reason, got.Err)
	}
	if h, sni := <-host, <-server; h != publicHost || sni != publicHost {
		t.Errorf("Host = %q, server name = %q, want %q", h, sni, publicHost)
	}
	if got, want := s.connections(), []string{publicPeer}; !slices.Equal(got, want) {
		t.Errorf("connected to %q, want %q", got, want)
	}
	if got, want := names.questions(), []string{publicHost + "."}; !slices.Equal(got, want) {
		t.Errorf("looked up %q, want %q: once, and in no search list", got, want)
	}
}

// B110: a name that was good when it was listed, or a moment ago, and then leads inside.
func TestDialer_ANameThatMovesInsideIsRefusedAtTheNextConnection(t *testing.T) {
	t.Parallel()
	names, resolver := startDNS(t, always(dnsmessage.RCodeSuccess, publicAddress))
	s := newShop(t, resolver, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	service := serviceAt(t, publicURL, nil)
	if err := s.Vet(t.Context(), service.BaseURL); err != nil {
		t.Fatalf("at registration: %v", err)
	}
	if got := s.Ask(t.Context(), requestTo(service)); got.Reason != call.OK {
		t.Fatalf("reason = %q (%v)", got.Reason, got.Err)
	}
	s.transport.CloseIdleConnections()
	asked := len(names.questions())
	names.become(always(dnsmessage.RCodeSuccess, "169.254.169.254"))
	got := s.Ask(t.Context(), requestTo(service))
	if got.Reason != call.UpstreamUnreachable || strings.Contains(got.Detail, "169.254") {
		t.Errorf("reason = %q (%s), want %q in words that name no address", got.Reason, got.Detail, call.UpstreamUnreachable)
	}
	if got := s.look(t.Context(), service); got.reason != call.UpstreamUnreachable {
		t.Errorf("probe: reason = %q, want %q", got.reason, call.UpstreamUnreachable)
	}
	if got, want := s.connections(), []string{publicPeer}; !slices.Equal(got, want) {
		t.Errorf("connected to %q, want only %q", got, want)
	}
	if got := len(names.questions()) - asked; got != 2 {
		t.Errorf("%d look-ups for two requests, want 2: there is none between check and connect", got)
	}
}

func TestDialer_OneForbiddenAddressSpoilsTheWholeAnswer(t *testing.T) {
	t.Parallel()
	for name, addresses := range map[string][]string{
		"inner last":              {publicAddress, "10.0.0.1"},
		"inner first":             {"10.0.0.1", publicAddress},
		"metadata":                {publicAddress, "169.254.169.254"},
		"inner in another family": {publicAddress, "fd00:ec2::254"},
		"outer in another family": {"127.0.0.1", "2606:2800:220:1::1"},
		"unspecified":             {publicAddress, "::"},
		"one of many":             {publicAddress, "93.184.216.35", "93.184.216.36", "192.168.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, resolver := startDNS(t, always(dnsmessage.RCodeSuccess, addresses...))
			s := newShop(t, resolver, func(http.ResponseWriter, *http.Request) {})
			got := s.Ask(t.Context(), requestTo(serviceAt(t, publicURL, nil)))
			if _, forbidden := errors.AsType[*forbiddenAddressError](got.Err); got.Reason != call.UpstreamUnreachable || !forbidden {
				t.Errorf("reason = %q, want %q for its address (%v)", got.Reason, call.UpstreamUnreachable, got.Err)
			}
			if dialed := s.connections(); len(dialed) != 0 {
				t.Errorf("connected to %q", dialed)
			}
			if _, bad := errors.AsType[*HostError](s.Vet(t.Context(), publicURL)); !bad {
				t.Error("it may be listed")
			}
		})
	}
}

func TestClient_Ask_TellsWhoseTroubleALookUpWas(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says func(string) (dnsmessage.RCode, []string)
		want call.Reason
	}{
		"a name that does not exist":     {always(dnsmessage.RCodeNameError), call.UpstreamUnreachable},
		"a name without an address":      {always(dnsmessage.RCodeSuccess), call.UpstreamUnreachable},
		"a resolver that fails":          {always(dnsmessage.RCodeServerFailure), call.EgressDown},
		"a resolver that refuses":        {always(dnsmessage.RCodeRefused), call.EgressDown},
		"a resolver that says nothing":   {always(silence), call.EgressDown},
		"a resolver that does not exist": {nil, call.EgressDown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			names, resolver := startDNS(t, tt.says)
			if tt.says == nil {
				_ = names.conn.Close()
			}
			service := serviceAt(t, publicURL, nil)
			service.Endpoints[0].Timeout = 500 * time.Millisecond
			c := New(Options{Resolver: resolver})
			if got := c.Ask(t.Context(), requestTo(service)); got.Reason != tt.want {
				t.Errorf("reason = %q, want %q (%v)", got.Reason, tt.want, got.Err)
			}
		})
	}
}

func TestDialer_LookUp_AnythingThatGoesWrongThereIsALookUpThatFailed(t *testing.T) {
	t.Parallel()
	d := newDialer(failing{errors.New("of no type")}, false)
	_, err := d.DialContext(t.Context(), "tcp", publicHost+":443")
	if got := classify(err, &progress{}, false); got.reason != call.EgressDown {
		t.Errorf("reason = %q, want %q (%v)", got.reason, call.EgressDown, err)
	}
}

func TestDialer_LookUp_AnAnswerWithoutAnAddressIsANameThatDoesNotExist(t *testing.T) {
	t.Parallel()
	_, err := newDialer(&noting{}, false).DialContext(t.Context(), "tcp", publicHost+":443")
	if got := classify(err, &progress{}, false); got.reason != call.UpstreamUnreachable {
		t.Errorf("reason = %q, want %q (%v)", got.reason, call.UpstreamUnreachable, err)
	}
}

// A listed name must not be completed by the search list of the machine to a name inside our own network. In development that is what
// names of containers need.
func TestDialer_LookUp_NamesAreCompletedInDevelopmentOnly(t *testing.T) {
	t.Parallel()
	for want, private := range map[string]bool{publicHost + ".": false, publicHost: true} {
		n := &noting{}
		_, _ = newDialer(n, private).DialContext(t.Context(), "tcp", publicHost+":443")
		if !slices.Equal(n.names, []string{want}) {
			t.Errorf("private addresses allowed: %v, looked up %q, want %q", private, n.names, want)
		}
	}
}

// A noting resolver knows no address of any name.
type noting struct{ names []string }

func (n *noting) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.names = append(n.names, host)
	return nil, nil
}

type failing struct{ err error }

func (f failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, f.err
}

// Many addresses behind one name are a way to have us connect to many strangers at once.
func TestFewOf_KeepsTheFirstOfEachFamily(t *testing.T) {
	t.Parallel()
	var all []netip.AddrPort
	for i := range byte(20) {
		all = append(all, netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, i}), 443), netip.AddrPortFrom(netip.AddrFrom16([16]byte{0x20, 1, 15: i}), 443))
	}
	if got := fewOf(slices.Clone(all)); !slices.Equal(got, all[:2*familyMax]) {
		t.Errorf("kept %v", got)
	}
}
