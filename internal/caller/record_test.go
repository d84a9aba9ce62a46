package caller_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"market/internal/call"
	"market/internal/caller"
)

func TestRecordURL_StaysOnTheServerThatWasCalled(t *testing.T) {
	t.Parallel()
	const called = "https://market.test/s/echo/v1?q=1"
	tests := map[string]struct{ ref, want string }{
		"absolute":       {"https://market.test/api/v1/calls/c", "https://market.test/api/v1/calls/c"},
		"relative":       {"/api/v1/calls/c", "https://market.test/api/v1/calls/c"},
		"another host":   {"https://169.254.169.254/latest", ""},
		"another scheme": {"http://market.test/api/v1/calls/c", ""},
		"another port":   {"https://market.test:1/api/v1/calls/c", ""},
		"without scheme": {"//evil.test/", ""},
		"none":           {"", ""},
		"no URL":         {"https://%zz", ""},
	}
	for name, test := range tests {
		got, err := caller.RecordURL(called, caller.Reference{ID: "c", URL: test.ref})
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
}

func recordServer(t *testing.T, answers ...string) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := int(asked.Add(1))
		answer := answers[min(n, len(answers))-1]
		if answer == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, answer) //nolint:errcheck // the client would see it
	}))
	t.Cleanup(server.Close)
	return server, &asked
}

func record(state, refund string) string {
	return fmt.Sprintf(`{"id":"c","state":%q,"outcome":"failed","reason":"upstream_5xx","party":"service","refund":%s,"more":1}`, state, refund)
}

func TestClient_AwaitRefund_AsksUntilItIsConfirmed(t *testing.T) {
	t.Parallel()
	server, asked := recordServer(t, record("failed", `{"state":"owed"}`), "", record("failed", `{"state":"confirmed","transaction":"0xr"}`))
	got, err := client(t).AwaitRefund(t.Context(), server.URL)
	if err != nil || got.Refund == nil || got.Refund.Transaction != "0xr" || got.Reason != call.Upstream5xx || asked.Load() != 3 {
		t.Errorf("record = %+v, %v after %d requests", got, err, asked.Load())
	}
}

func TestClient_AwaitRefund_DoesNotWaitForARefundThatIsNotOwed(t *testing.T) {
	t.Parallel()
	server, asked := recordServer(t, record("served", `null`))
	if got, err := client(t).AwaitRefund(t.Context(), server.URL); err != nil || got.State != call.StateServed || asked.Load() != 1 {
		t.Errorf("record = %+v, %v after %d requests", got, err, asked.Load())
	}
}

func TestClient_AwaitRefund_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		readable int32 // how many requests are answered before the context ends
		want     string
	}{
		"what was read last is the answer":   {1, "sent"},
		"nothing was ever read, so an error": {0, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) > test.readable {
					cancel()
					<-r.Context().Done()
					return
				}
				_, _ = io.WriteString(w, record("failed", `{"state":"sent"}`)) //nolint:errcheck // the client would see it
			}))
			defer server.Close()
			got, err := client(t).AwaitRefund(ctx, server.URL)
			if (err == nil) != (test.want != "") {
				t.Fatalf("error = %v, want a record: %v", err, test.want != "")
			}
			if err == nil && got.Refund.State != test.want {
				t.Errorf("record = %+v, want %s", got, test.want)
			}
		})
	}
}
