package devnet

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Behind serves the chain as a node of it does that has not got past a block: what came later is not there. It is honest about its head, as such a node
// is. What is sent to it goes on to the chain.
func (c *Chain) Behind(block uint64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := behind{url: c.url, block: block}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var answer any
		var many []asked
		if err = json.Unmarshal(body, &many); err == nil {
			answers := make([]json.RawMessage, len(many))
			for i := range many {
				if answers[i], err = b.answer(r, many[i]); err != nil {
					break
				}
			}
			answer = answers
		} else {
			var one asked
			if err = json.Unmarshal(body, &one); err == nil {
				answer, err = b.answer(r, one)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
}

type behind struct {
	url   string
	block uint64
}

type asked struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  []any           `json:"params"`
}

// answer asks the chain as of the block.
func (b behind) answer(r *http.Request, q asked) (json.RawMessage, error) {
	for i, p := range q.Params {
		switch p := p.(type) {
		case string:
			q.Params[i] = b.tag(p)
		case map[string]any:
			if to, ok := p["toBlock"].(string); ok {
				p["toBlock"] = b.tag(to)
			}
		}
	}
	if q.Method == "eth_blockNumber" {
		return b.result(q, fmt.Sprintf("%q", hexutil.EncodeUint64(b.block))), nil
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, b.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	return b.forget(q, raw), nil
}

// tag is a block that the node has, where the question is for a later one or for the newest.
func (b behind) tag(s string) string {
	if number, err := hexutil.DecodeUint64(s); s == "latest" || s == "pending" || err == nil && len(s) < 2+16 && number > b.block {
		return hexutil.EncodeUint64(b.block)
	}
	return s
}

func (b behind) result(q asked, result string) json.RawMessage {
	return json.RawMessage(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + result + `}`)
}

// forget takes out of an answer what stands in a later block.
func (b behind) forget(q asked, raw json.RawMessage) json.RawMessage {
	type placed struct {
		Number hexutil.Uint64 `json:"blockNumber"`
	}
	var got struct {
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(raw, &got) != nil {
		return raw
	}
	switch q.Method {
	case "eth_getTransactionReceipt":
		var receipt placed
		if json.Unmarshal(got.Result, &receipt) == nil && uint64(receipt.Number) > b.block {
			return b.result(q, "null")
		}
	case "eth_getLogs":
		var logs []json.RawMessage
		if json.Unmarshal(got.Result, &logs) != nil {
			return raw
		}
		texts := make([]string, 0, len(logs))
		for _, l := range logs {
			var log placed
			if json.Unmarshal(l, &log) == nil && uint64(log.Number) <= b.block {
				texts = append(texts, string(l))
			}
		}
		return b.result(q, "["+strings.Join(texts, ",")+"]")
	}
	return raw
}
