package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

const lettersHead = "WHEN\tKIND\tWHY\tTOLD BY\tID"

// newAdminLettersCommand shows what the provider of a service was told.
func newAdminLettersCommand(o *adminOptions) *cobra.Command {
	l := listOf{none: "its provider was told nothing", head: lettersHead, row: letterRow, query: url.Values{}}
	cmd := &cobra.Command{
		Use:   "notices SLUG",
		Short: "What the provider of a service was told of it, and what became of that, the newest first",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			l.path = lettersPath(args[0])
			out := cmd.OutOrStdout()
			return client.printList(cmd.Context(), out, l, o.tables(out))
		},
	}
	cmd.Flags().IntVar(&l.limit, "limit", 20, "how many, from 1 to 100")
	cmd.AddCommand(newAdminResendCommand(o))
	return cmd
}

func newAdminResendCommand(o *adminOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "resend SLUG ID",
		Short: "Send a notice again by the channels by which it failed, and by no other",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			var notice json.RawMessage
			if err := client.do(cmd.Context(), http.MethodPost, lettersPath(args[0])+"/"+url.PathEscape(args[1])+"/resend", nil, &notice); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if !o.tables(out) {
				return printJSON(out, notice)
			}
			row, err := letterRow(notice)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintf(w, "%s\n%s\n", lettersHead, row) // the table is written by flushed
			return flushed(w)
		},
	}
}

func lettersPath(slug string) string { return "/api/v1/services/" + url.PathEscape(slug) + "/notices" }

func letterRow(raw json.RawMessage) (string, error) {
	var l struct {
		ID   string `json:"id"`
		Kind string `json:"kind"`
		At   string `json:"at"`
		Data struct {
			Reason string `json:"reason"`
		} `json:"data"`
		Channels []struct {
			Channel  string `json:"channel"`
			State    string `json:"state"`
			Attempts int    `json:"attempts"`
			Error    string `json:"error"`
			NextAt   string `json:"next_at"`
		} `json:"channels"`
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return "", errNotThisAPI
	}
	told := make([]string, 0, len(l.Channels))
	for _, c := range l.Channels {
		one := shown(c.Channel) + " " + shown(strings.ReplaceAll(c.State, "_", " "))
		if c.State == "waiting" {
			one += " until " + minute(c.NextAt)
		}
		if c.Error != "" {
			one += fmt.Sprintf(" (attempt %d: %s)", c.Attempts, shown(c.Error))
		}
		told = append(told, one)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", minute(l.At), shown(l.Kind), shown(l.Data.Reason), orDash(strings.Join(told, "; ")), shown(l.ID)), nil
}
