package upstream

import (
	"net/http"
	"testing"

	"market/internal/call"
	"market/internal/catalog"
)

// A service whose key could not be opened would refuse us, and be blamed for it.
func TestClient_Ask_SendsNothingToABrokenListing(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*catalog.Service){
		"the service":  func(s *catalog.Service) { s.Broken = "its headers can't be opened here" },
		"the endpoint": func(s *catalog.Service) { s.Endpoints[0].Broken = "its path is malformed" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 2)
			server := serve(t, func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })
			s := serviceAt(t, server.URL, nil)
			breaks(s)
			if got := development().Ask(t.Context(), requestTo(s)); got.Outcome != call.Failed || got.Reason != call.LocalError {
				t.Errorf("%s, %q (%v), want a failure of ours", got.Outcome, got.Reason, got.Err)
			}
			if len(asked) != 0 {
				t.Error("the service was asked")
			}
		})
	}
}
