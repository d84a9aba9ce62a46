package config

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// An RPC is a node of a network.
type RPC struct {
	URL    string // http(s); it may hold a credential
	Source Source
}

// An rpcEntry is a URL, or an object that has one and says how the node runs out.
type rpcEntry struct {
	URL string `json:"url"`
	sourceEntry
}

// UnmarshalJSON takes both forms. What is decoded here is as strict as the rest of the file.
func (e *rpcEntry) UnmarshalJSON(text []byte) error {
	if text = bytes.TrimSpace(text); len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &e.URL)
	}
	type plain rpcEntry
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode((*plain)(e)); err != nil {
		return fmt.Errorf("rpc: %w", err)
	}
	return nil
}

// rpc checks the nodes of a network, in their order.
func (r *report) rpc(entries []rpcEntry) []RPC {
	network := r.at
	var nodes []RPC
	for i, e := range entries {
		r.at = fmt.Sprintf("%s.rpc[%d]", network, i)
		// Its text is not repeated: providers put the key into the path.
		if !isWebURL(e.URL) {
			r.errs = append(r.errs, fmt.Errorf("%s: expected an http(s) URL", r.at))
		}
		nodes = append(nodes, RPC{URL: e.URL, Source: r.source(e.sourceEntry)})
	}
	r.at = network
	return nodes
}
