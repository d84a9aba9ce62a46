package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

const keysPath = "/api/v1/provider/keys"

// A keyDraft is an API key that is asked for.
type keyDraft struct {
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	ExpiresAt string   `json:"expires_at,omitempty"`

	lasts time.Duration
}

func (d *keyDraft) flags(cmd *cobra.Command, name, usage string) {
	f := cmd.Flags()
	f.StringVar(&d.Name, name, "", usage)
	f.StringArrayVar(&d.Scopes, "scope", nil, "what the key may: `scope`, such as services:write; may be repeated")
	f.DurationVar(&d.lasts, "lasts", 0, "how long the key is good, such as 720h (default: until it is revoked)")
}

// A shownKey is a key as the API lists it. Its token is there where it was made just now.
type shownKey struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Hint       string   `json:"hint"`
	Scopes     []string `json:"scopes"`
	CreatedAt  string   `json:"created_at"`
	ExpiresAt  *string  `json:"expires_at"`
	LastUsedAt *string  `json:"last_used_at"`
	RevokedAt  *string  `json:"revoked_at"`
	Token      string   `json:"token,omitempty"`
}

// state says in words whether a key does anything.
func (k *shownKey) state(now time.Time) string {
	if k.RevokedAt != nil {
		return "revoked " + minute(*k.RevokedAt)
	}
	if k.ExpiresAt != nil {
		if at, err := time.Parse(time.RFC3339, *k.ExpiresAt); err == nil && !now.Before(at) {
			return "ended"
		}
	}
	return "good"
}

// makeKey makes an API key. The document is as the server answered.
func (c *apiClient) makeKey(ctx context.Context, draft keyDraft) (json.RawMessage, error) {
	if draft.Scopes == nil {
		draft.Scopes = []string{}
	}
	if draft.lasts > 0 {
		draft.ExpiresAt = expiryIn(draft.lasts)
	}
	var made json.RawMessage
	err := c.do(ctx, http.MethodPost, keysPath, draft, &made)
	return made, err
}

// printMadeKey prints the token alone for people, who copy it, and everything for programs.
func printMadeKey(out io.Writer, made json.RawMessage, people bool) error {
	if !people {
		return printJSON(out, made)
	}
	var key shownKey
	if err := json.Unmarshal(made, &key); err != nil || key.Token == "" {
		return errNotThisAPI
	}
	_, err := fmt.Fprintln(out, shown(key.Token))
	return err
}

func newProviderKeysCommand(o *providerOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "The API keys of the account. Keys are made and revoked by whoever has the wallet, never by a key",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.as(cmd.Context(), func(client *apiClient) error {
				var list struct {
					Items []json.RawMessage `json:"items"`
				}
				if err := client.do(cmd.Context(), http.MethodGet, keysPath, nil, &list); err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if !forPeople(out, o.asJSON) {
					return printJSON(out, list)
				}
				return printKeys(out, list.Items, time.Now())
			})
		},
	}
	cmd.AddCommand(newProviderNewKeyCommand(o), &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke an API key, which does nothing from then on",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.as(cmd.Context(), func(client *apiClient) error {
				return client.do(cmd.Context(), http.MethodDelete, keysPath+"/"+url.PathEscape(args[0]), nil, nil)
			})
		},
	})
	return cmd
}

func newProviderNewKeyCommand(o *providerOptions) *cobra.Command {
	var draft keyDraft
	cmd := &cobra.Command{
		Use:   "new --name NAME --scope SCOPE",
		Short: "Make an API key and print it, once",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.as(cmd.Context(), func(client *apiClient) error {
				made, err := client.makeKey(cmd.Context(), draft)
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				return printMadeKey(out, made, forPeople(out, o.asJSON))
			})
		},
	}
	draft.flags(cmd, "name", "for you: where it is used")
	return cmd
}

func printKeys(out io.Writer, items []json.RawMessage, now time.Time) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(out, "no keys")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tENDS WITH\tMAY\tMADE\tENDS\tLAST USED\tSTATE\tID") // the table is written by Flush
	for _, item := range items {
		var k shownKey
		if err := json.Unmarshal(item, &k); err != nil {
			return errNotThisAPI
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", shown(k.Name), shown(k.Hint), shown(strings.Join(k.Scopes, " ")), minute(k.CreatedAt),
			orNever(k.ExpiresAt), orNever(k.LastUsedAt), k.state(now), shown(k.ID))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func orNever(at *string) string {
	if at == nil || *at == "" {
		return "never"
	}
	return minute(*at)
}
