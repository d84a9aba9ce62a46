package facilitator

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// An edge stands between a node and its user and answers some methods itself, as a broken or lagging node would. before returns the
// answer's member, or "" to pass the call on; it may be called concurrently.
func edge(t *testing.T, url string, before func(method string, params []json.RawMessage) string) string {
	t.Helper()
	type request struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	one := func(r *http.Request, raw json.RawMessage) ([]byte, error) {
		var q request
		if err := json.Unmarshal(raw, &q); err != nil {
			return nil, err
		}
		if member := before(q.Method, q.Params); member != "" {
			return []byte(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + member + `}`), nil
		}
		onward, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, bytes.NewReader(raw))
		if err != nil {
			return nil, err
		}
		onward.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(onward)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close() //nolint:errcheck // read to its end
		return io.ReadAll(response.Body)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		var many []json.RawMessage
		if json.Unmarshal(body, &many) != nil {
			answer, err := one(r, body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			_, _ = w.Write(answer)
			return
		}
		answers := make([]json.RawMessage, len(many))
		for i, raw := range many {
			if answers[i], err = one(r, raw); err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
		}
		_ = json.NewEncoder(w).Encode(answers)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const brokenMember = `"error":{"code":-32000,"message":"the backend is down"}`
