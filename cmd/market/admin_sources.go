package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// A sourceStanding is how a source stands, as the admin API tells it.
type sourceStanding struct {
	Name      string         `json:"name"`
	State     string         `json:"state"`
	Reasons   []sourceReason `json:"reasons"`
	Used      int64          `json:"used"`
	Asked     int64          `json:"asked"`
	Cap       *int64         `json:"cap"`
	Busiest   int64          `json:"busiest"`
	RetryAt   string         `json:"retry_at"`
	SuccessAt string         `json:"last_success_at"`
	Cost      string         `json:"cost_today_usd"`
	Waiting   int            `json:"waiting"`
	Notice    *struct {
		RaisedAt string `json:"raised_at"`
		Channel  string `json:"channel"`
	} `json:"notice"`
}

type sourceReason struct {
	Words string `json:"words"`
}

func newAdminSourcesCommand(o *adminOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sources",
		Short: "What we depend on and what can refuse us: how much was used today, what is out, and until when",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			page := struct {
				Items []json.RawMessage `json:"items"`
			}{[]json.RawMessage{}}
			if err := client.do(cmd.Context(), http.MethodGet, "/api/v1/admin/sources", nil, &page); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if !o.tables(out) {
				return printJSON(out, page)
			}
			return printSources(out, page.Items)
		},
	}
	cmd.AddCommand(newAdminTryCommand(o))
	return cmd
}

func newAdminTryCommand(o *adminOptions) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "try NAME",
		Short: "Say that a source is topped up: the next request may test it at once, and what waits for it is due now",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			var order any // without a reason there is nothing to say
			if reason != "" {
				order = map[string]string{"reason": reason}
			}
			var answer json.RawMessage
			if err := client.do(cmd.Context(), http.MethodPost, "/api/v1/admin/sources/"+url.PathEscape(args[0])+"/try", order, &answer); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if !o.tables(out) {
				return printJSON(out, answer)
			}
			return printTried(out, answer)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for other admins; it is kept in the audit")
	return cmd
}

func printSources(out io.Writer, items []json.RawMessage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SOURCE\tSTATE\tUSED\tCAP\tBUSIEST\tASKED\tCOST TODAY\tNEXT TRY\tLAST SUCCESS\tNOTICE\tWAITING") // written by flushed
	var said []string
	for _, raw := range items {
		var s sourceStanding
		if err := json.Unmarshal(raw, &s); err != nil {
			return errNotThisAPI
		}
		capped, cost, notice := "none", "-", "-"
		if s.Cap != nil {
			capped = fmt.Sprint(*s.Cap)
		}
		if s.Cost != "" {
			cost = "$" + shown(s.Cost)
		}
		if s.Notice != nil {
			notice = minute(s.Notice.RaisedAt) + ", by " + shown(s.Notice.Channel)
			if s.Notice.Channel == "" {
				notice = minute(s.Notice.RaisedAt) + ", not sent yet"
			}
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%d\n", shown(s.Name), shown(s.State), s.Used, capped, s.Busiest, s.Asked, cost, minute(s.RetryAt), minute(s.SuccessAt), notice, s.Waiting)
		for _, r := range s.Reasons {
			said = append(said, shown(s.Name)+": "+shown(r.Words))
		}
	}
	if err := flushed(w); err != nil || len(said) == 0 {
		return err
	}
	_, err := fmt.Fprintln(out, "\n"+strings.Join(said, "\n"))
	return err
}

func printTried(out io.Writer, answer json.RawMessage) error {
	var tried struct {
		Source struct {
			Name string `json:"name"`
		} `json:"source"`
		Effect string `json:"effect"`
	}
	if err := json.Unmarshal(answer, &tried); err != nil {
		return errNotThisAPI
	}
	_, err := fmt.Fprintf(out, "%s: %s\n", shown(tried.Source.Name), shown(tried.Effect))
	return err
}
