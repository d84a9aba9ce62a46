package chain

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// A fakeNode answers JSON-RPC with the raw results that a test gives, one a method, or one a function of a contract ("eth_call paused"); a result that
// starts with "error:" is an error object. It is for what a real node would not say.
type fakeNode map[string]string

func (f fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type request struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	answer := func(q request) string {
		result, known := f[q.Method]
		if of, ok := f[q.Method+" "+functionOf(q.Params)]; ok {
			result, known = of, true
		}
		if !known {
			result = "error:" + `{"code":-32601,"message":"no such method"}`
		}
		member := `"result":` + result
		if rest, ok := cutError(result); ok {
			member = `"error":` + rest
		}
		return `{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + member + `}`
	}
	w.Header().Set("Content-Type", "application/json")
	var many []request
	if json.Unmarshal(body, &many) == nil {
		out := "["
		for i, q := range many {
			if i > 0 {
				out += ","
			}
			out += answer(q)
		}
		_, _ = io.WriteString(w, out+"]")
		return
	}
	var one request
	if err := json.Unmarshal(body, &one); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(w, answer(one))
}

// functionOf names the function of the token that an eth_call is of.
func functionOf(params []json.RawMessage) string {
	var m struct {
		Data hexutil.Bytes `json:"data"`
	}
	if len(params) == 0 || json.Unmarshal(params[0], &m) != nil || len(m.Data) < 4 {
		return ""
	}
	method, err := tokenABI.MethodById(m.Data[:4])
	if err != nil {
		return ""
	}
	return method.Name
}

func cutError(s string) (string, bool) {
	const mark = "error:"
	if len(s) > len(mark) && s[:len(mark)] == mark {
		return s[len(mark):], true
	}
	return "", false
}

// dialHandler returns a node behind a handler; eth_chainId has to be answered with 84532.
func dialHandler(t *testing.T, h http.Handler) *Node {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	n, err := Dial(t.Context(), networkAt(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func dialFake(t *testing.T, f fakeNode) *Node {
	t.Helper()
	if _, ok := f["eth_chainId"]; !ok {
		f["eth_chainId"] = `"0x14a34"`
	}
	return dialHandler(t, f)
}

func networkAt(url string) Network {
	return Network{ID: "eip155:84532", ChainID: 84532, RPC: []string{url}, Confirmations: 1, ServeAtDepth: 1, Assets: []Asset{usdc()}}
}
