package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	apiTime = 30 * time.Second
	// adminBytesMax bounds what is read of an answer. A page of strikes with very much evidence may have more.
	adminBytesMax = 32 << 20
)

// An apiClient asks the API of a server, so that what is done at a prompt is checked and kept like everything else.
type apiClient struct {
	base  string // without a trailing slash
	token string // empty: what is asked needs none
	http  *http.Client
}

// An adminClient asks with the admin token.
type adminClient = apiClient

// newAPIClient asks the server at an address; of is what goes there that nobody else may see.
func newAPIClient(base, of string) (*apiClient, error) {
	if base == "" {
		base = os.Getenv("MARKET_PUBLIC_URL")
	}
	if base == "" {
		base = "http://127.0.0.1:4021"
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, fmt.Errorf("%q is no http or https address", base)
	}
	if u.Scheme == "http" && !thisMachine(u.Hostname()) {
		return nil, fmt.Errorf("%s is not asked: %s goes over https, or to this machine", base, of)
	}
	return &apiClient{base: strings.TrimRight(base, "/"), http: &http.Client{
		Timeout:       apiTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for one address
	}}, nil
}

func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// do sends a request and decodes the answer into out, where that is not nil. The error of a refusal is what the server said.
func (c *apiClient) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(in); err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(bytes.TrimSpace(text.Bytes()))
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.base, err)
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(response.Body, adminBytesMax+1))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if len(text) > adminBytesMax {
		return fmt.Errorf("the answer is too large, over %d MiB: ask for less, such as for one service, or the API with a smaller limit", adminBytesMax>>20)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return problemIn(response, text)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s did not answer with JSON of this API: is it a market server?", c.base)
	}
	return nil
}

// problemIn is a refusal in words, as far as the answer is one.
func problemIn(response *http.Response, text []byte) error {
	var problem struct {
		Code, Detail string
		Fields       []struct{ Name, Message string }
	}
	if json.Unmarshal(text, &problem) != nil || problem.Code == "" {
		return fmt.Errorf("the server answered %s", response.Status)
	}
	words := shown(problem.Detail)
	if len(problem.Fields) > 1 {
		for _, f := range problem.Fields {
			words += "\n  " + shown(f.Name) + " " + shown(f.Message)
		}
	}
	return fmt.Errorf("%s (%s)", words, shown(problem.Code))
}
