package crashtest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"market/internal/app/apptest"
)

// A node stands between the market and the chain, as a provider of nodes does, and misbehaves when it is told to. Which method a request
// calls is read from its text: a batch counts for each of its methods.
type node struct {
	URL  string
	next string

	mu      sync.Mutex
	failing map[string]bool
	held    map[string]chan struct{}
	first   map[string]func()
}

func newNode(t testing.TB, next string) *node {
	n := &node{next: next}
	n.heal()
	server := httptest.NewServer(n)
	t.Cleanup(func() { n.heal(); server.Close() })
	n.URL = server.URL
	return n
}

// fail refuses a method from now on.
func (n *node) fail(method string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failing[method] = true
}

// hold answers a method no more, until it is healed.
func (n *node) hold(method string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held[method] = make(chan struct{})
}

// before does something when a method is called next, and then lets the call pass.
func (n *node) before(method string, do func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.first[method] = do
}

// heal ends all of it.
func (n *node) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, held := range n.held {
		close(held)
	}
	n.failing, n.held, n.first = map[string]bool{}, map[string]chan struct{}{}, map[string]func(){}
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller is gone
	}
	body = apptest.HidePause(body)
	fails, held, first := n.rules(body)
	if first != nil {
		first()
	}
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	if fails {
		http.Error(w, "the node is out of order", http.StatusServiceUnavailable)
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, n.next, bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = response.Body.Close() }()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

func (n *node) rules(body []byte) (fails bool, held chan struct{}, first func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for method := range n.failing {
		fails = fails || calls(body, method)
	}
	for method, until := range n.held {
		if calls(body, method) {
			held = until
		}
	}
	for method, do := range n.first {
		if calls(body, method) {
			first = do
			delete(n.first, method)
		}
	}
	return fails, held, first
}

func calls(body []byte, method string) bool { return bytes.Contains(body, []byte(`"`+method+`"`)) }
