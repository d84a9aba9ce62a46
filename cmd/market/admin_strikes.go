package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func newAdminStrikesCommand(o *adminOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "strikes [SLUG]",
		Short: "The services under strike in the order in which they are to be looked at, or the strikes of one with their evidence",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				return client.printQueue(cmd.Context(), out, o.tables(out))
			}
			var whole json.RawMessage
			if err := client.do(cmd.Context(), http.MethodGet, "/api/v1/admin/strikes/"+url.PathEscape(args[0]), nil, &whole); err != nil {
				return err
			}
			if !o.tables(out) {
				return printJSON(out, whole)
			}
			return printStrikes(out, whole)
		},
	}
	cmd.AddCommand(
		newAdminDecisionCommand(o, "void", "Find that a strike was none: it does not count, and what followed from it is taken back"),
		newAdminDecisionCommand(o, "uphold", "Find that a strike stays, until its provider appeals anew"),
	)
	return cmd
}

// newAdminDecisionCommand is one decision about a strike, by the name that it has in the API.
func newAdminDecisionCommand(o *adminOptions, action, short string) *cobra.Command {
	return newOrderCommand(o, "strikes", action, "ID", short, "it is kept in the audit", func(out io.Writer, whole json.RawMessage) error {
		if !o.tables(out) {
			return printJSON(out, whole)
		}
		return printDecision(out, whole)
	})
}

// newOrderCommand has something done with one of a kind, "services" or "strikes", for a reason, and prints what the API answers. told says what
// becomes of the reason.
func newOrderCommand(o *adminOptions, kind, action, arg, short, told string, show func(out io.Writer, answer json.RawMessage) error) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   action + " " + arg + " --reason REASON",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			var answer json.RawMessage
			path := "/api/v1/admin/" + kind + "/" + url.PathEscape(args[0]) + "/" + action
			if err := client.do(cmd.Context(), http.MethodPost, path, map[string]string{"reason": reason}, &answer); err != nil {
				return err
			}
			return show(cmd.OutOrStdout(), answer)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the owner and other admins; "+told)
	_ = cmd.MarkFlagRequired("reason") // it is a flag of this command
	return cmd
}

var errNotThisAPI = errors.New("the answer is not of this API: is the server of another version?")

// pages reads a list of the API whole, page by page, and hands over each page. What it hands over is at most max pages.
func (c *adminClient) pages(ctx context.Context, path string, query url.Values, page func(json.RawMessage) error) error {
	query.Set("limit", "100")
	for range pagesMax {
		var raw json.RawMessage
		if err := c.do(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &raw); err != nil {
			return err
		}
		var next struct {
			Cursor string `json:"next_cursor"`
		}
		if err := json.Unmarshal(raw, &next); err != nil {
			return errNotThisAPI
		}
		if err := page(raw); err != nil || next.Cursor == "" {
			return err
		}
		query.Set("cursor", next.Cursor)
	}
	return fmt.Errorf("there are more than %d: ask the API page by page", 100*pagesMax)
}

// pagesMax bounds what one command prints.
const pagesMax = servicesMax / 100
