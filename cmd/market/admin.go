package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

const (
	adminTime = 30 * time.Second
	// adminBytesMax bounds what is read of an answer. A page of strikes with very much evidence may have more.
	adminBytesMax = 32 << 20
)

// An adminClient asks the admin API of a server, so that what is done at a prompt is checked and kept like everything else.
type adminClient struct {
	base  string // without a trailing slash
	token string
	http  *http.Client
}

// adminOptions are what all admin commands take.
type adminOptions struct {
	url    string
	asJSON bool
}

func newAdminCommand() *cobra.Command {
	var o adminOptions
	cmd := &cobra.Command{
		Use:   "admin",
		Short: "What the operator does: see and change what is on the shelf",
		Long: `Asks the admin API of a running server, with the token of MARKET_ADMIN_TOKEN.

Prints a table on a terminal, and JSON where the output is piped or --json is given.`,
		Args: cobra.NoArgs,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.url, "url", "", "`address` of the server (default: MARKET_PUBLIC_URL, or http://127.0.0.1:4021)")
	f.BoolVar(&o.asJSON, "json", false, "print JSON on a terminal too")
	cmd.AddCommand(newAdminServicesCommand(&o), newAdminStrikesCommand(&o), newAdminAuditCommand(&o), newAdminOutagesCommand(&o), newAdminNoticesCommand(&o), newAdminSourcesCommand(&o),
		newAdminSwitchesCommand(&o), newAdminAccountsCommand(&o), newAdminAdminsCommand(&o))
	return cmd
}

// client reads where the server is and who asks.
func (o *adminOptions) client() (*adminClient, error) {
	base := o.url
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
		return nil, fmt.Errorf("%s is not asked: the admin token goes over https, or to this machine", base)
	}
	token := os.Getenv("MARKET_ADMIN_TOKEN")
	if token == "" {
		return nil, errors.New("MARKET_ADMIN_TOKEN is not set: it is the token that the server was started with")
	}
	return &adminClient{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{
		Timeout:       adminTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for one address
	}}, nil
}

func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// do sends a request and decodes the answer into out. The error of a refusal is what the server said.
func (c *adminClient) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
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
	if response.StatusCode != http.StatusOK {
		return problemIn(response, text)
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

// tables says whether people read the output.
func (o *adminOptions) tables(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok || o.asJSON {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
