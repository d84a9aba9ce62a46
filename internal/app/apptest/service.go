package apptest

import (
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Service is what a provider runs. What it does at its probe and at its work can be changed while the test goes on.
type Service struct {
	Slug string
	URL  string // of its one endpoint, as callers see it: POST …/work

	probed atomic.Int64
	asked  atomic.Int64
	live   atomic.Bool
	mu     sync.Mutex
	work   http.HandlerFunc
}

// Works is a service's good answer.
func Works(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"done":true}`))
}

// Fails is a service's own failure.
func Fails(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "broken inside", http.StatusInternalServerError)
}

// PriceUnits is what a call of a listed service costs, in base units.
const PriceUnits = 2000

// List starts a service, puts it on the shelf with one endpoint, POST /work for 0.002 USD, whose body must be {"n": whole number}, and
// returns it. change may alter the endpoint's listing; nil leaves it.
func (w *World) List(t testing.TB, slug string, work http.HandlerFunc, change map[string]any) *Service {
	t.Helper()
	return w.ListWith(t, slug, work, change, nil)
}

// ListWith is List with more members of the service's own.
func (w *World) ListWith(t testing.TB, slug string, work http.HandlerFunc, change, service map[string]any) *Service {
	t.Helper()
	return w.listAt(t, "127.0.0.1", "", slug, work, change, service)
}

// ListAt is List for a service at an address of this machine, such as 127.0.0.7. Who calls from there is its provider; at 127.0.0.1, where all the
// others are, nobody is.
func (w *World) ListAt(t testing.TB, address, slug string, work http.HandlerFunc, change map[string]any) *Service {
	t.Helper()
	return w.listAt(t, address, "", slug, work, change, nil)
}

// ListNamed is ListWith for a service at an address of this machine whose base URL has a name, which a resolver of the test has to lead there. The name
// is looked up for each request: no connection is kept.
func (w *World) ListNamed(t testing.TB, host, address, slug string, work http.HandlerFunc, change, service map[string]any) *Service {
	t.Helper()
	return w.listAt(t, address, host, slug, work, change, service)
}

func (w *World) listAt(t testing.TB, address, host, slug string, work http.HandlerFunc, change, service map[string]any) *Service {
	t.Helper()
	s := &Service{Slug: slug, URL: w.URL + "/s/" + slug + "/work", work: work}
	s.live.Store(true)
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(rw http.ResponseWriter, _ *http.Request) {
		s.probed.Add(1)
		if !s.live.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/", func(rw http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		s.mu.Lock()
		work := s.work
		s.mu.Unlock()
		if host != "" {
			// A server that is to close a connection notices that its client left once the body is read.
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		work(rw, r)
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewUnstartedServer(mux)
	_ = upstream.Listener.Close()
	upstream.Listener = listener
	upstream.Start()
	t.Cleanup(func() { end(t, upstream) })
	base := upstream.URL
	if host != "" {
		upstream.Config.SetKeepAlivesEnabled(false)
		base = strings.Replace(base, address, host, 1)
	}
	endpoint := map[string]any{
		"method": "POST", "path": "/work", "price_usd": "0.002", "description": "Work",
		"input_schema": map[string]any{"type": "object", "required": []string{"n"}, "additionalProperties": false,
			"properties": map[string]any{"n": map[string]any{"type": "integer"}}},
		"input_example": map[string]any{"n": 4711},
	}
	maps.Copy(endpoint, change)
	listing := map[string]any{
		"slug": slug, "name": slug, "base_url": base, "probe": map[string]any{"method": "GET", "path": "/healthz", "statuses": []string{"200"}},
		"endpoints": []any{endpoint},
	}
	maps.Copy(listing, service)
	status, answer := w.Admin(t, http.MethodPost, "/api/v1/services", listing)
	if status != http.StatusCreated {
		t.Fatalf("list %s: %d %v", slug, status, answer)
	}
	s.probed.Store(0)
	return s
}

// end closes a service. What still waits for others in it, at a barrier or for the test's word, would wait for ever where the test has failed before it came
// to that, and hide why.
func end(t testing.TB, service *httptest.Server) {
	closed := make(chan struct{})
	go func() { service.Close(); close(closed) }()
	patience := Patience
	if t.Failed() {
		patience = time.Second
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-closed:
	case <-timeout.C:
		t.Error("the service has not answered all that it was asked")
	}
}

// Do changes what the service does when it is asked.
func (s *Service) Do(work http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = work
}

// SetLive says what the service answers its probe.
func (s *Service) SetLive(live bool) { s.live.Store(live) }

// Asked counts the requests to its work.
func (s *Service) Asked() int { return int(s.asked.Load()) }

// Probed counts the requests to its probe since it was listed; the one that came with that is left out.
func (s *Service) Probed() int { return int(s.probed.Load()) }
