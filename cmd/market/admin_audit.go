package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// A listOf is a command that prints the newest of a list of the admin API, which may be long.
type listOf struct {
	path  string
	none  string // what is printed where there is nothing
	head  string // of the table, with tabs
	row   func(json.RawMessage) (string, error)
	query url.Values
	limit int
}

func newAdminAuditCommand(o *adminOptions) *cobra.Command {
	l := listOf{path: "/api/v1/admin/audit", none: "nothing was decided", head: "WHEN\tBY\tWHAT\tABOUT\tSERVICE\tREASON", row: auditRow, query: url.Values{}}
	var service string
	cmd := newAdminListCommand(o, &l, "audit", "What was decided about strikes and services, by whom and why, the newest first", func() {
		if service != "" {
			l.query.Set("service", service)
		}
	})
	cmd.Flags().StringVar(&service, "service", "", "only about the service with this `slug`")
	return cmd
}

func newAdminOutagesCommand(o *adminOptions) *cobra.Command {
	l := listOf{path: "/api/v1/admin/outages", none: "no outage was noticed", head: "BEGAN\tENDED\tWHOSE\tKNOWN BY\tFAILED\tEXCUSES SINCE", row: outageRow, query: url.Values{}}
	return newAdminListCommand(o, &l, "outages", "Outages of the marketplace itself, during which no failure is a service's doing, the newest first", func() {})
}

func newAdminListCommand(o *adminOptions, l *listOf, use, short string, ready func()) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			ready()
			out := cmd.OutOrStdout()
			return client.printList(cmd.Context(), out, *l, o.tables(out))
		},
	}
	cmd.Flags().IntVar(&l.limit, "limit", 20, "how many, from 1 to 100")
	return cmd
}

func (c *adminClient) printList(ctx context.Context, out io.Writer, l listOf, table bool) error {
	l.query.Set("limit", strconv.Itoa(l.limit))
	page := struct {
		Items []json.RawMessage `json:"items"`
	}{[]json.RawMessage{}}
	if err := c.do(ctx, http.MethodGet, l.path+"?"+l.query.Encode(), nil, &page); err != nil {
		return err
	}
	if !table {
		return printJSON(out, page)
	}
	if len(page.Items) == 0 {
		_, err := fmt.Fprintln(out, l.none)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, l.head) // the table is written by Flush
	for _, raw := range page.Items {
		row, err := l.row(raw)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(w, row)
	}
	return flushed(w)
}

func auditRow(raw json.RawMessage) (string, error) {
	var e struct {
		At      string `json:"at"`
		By      string `json:"by"`
		Action  string `json:"action"`
		Kind    string `json:"subject_kind"`
		Subject string `json:"subject"`
		Service string `json:"service"`
		Reason  string `json:"reason"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return "", errNotThisAPI
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s %s\t%s\t%s", minute(e.At), shown(e.By), shown(e.Action), shown(e.Kind), shown(e.Subject), orDash(e.Service), shown(e.Reason)), nil
}

func outageRow(raw json.RawMessage) (string, error) {
	var o struct {
		Replica string `json:"replica"`
		Cause   string `json:"cause"`
		Began   string `json:"began_at"`
		Reaches string `json:"reaches_back_to"`
		Ended   string `json:"ended_at"`
		Asked   int    `json:"services_asked"`
		Failed  int    `json:"services_failed"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return "", errNotThisAPI
	}
	whose, ended := "the fleet", "holds"
	if o.Replica != "" {
		whose = "replica " + shown(o.Replica)
	}
	if o.Ended != "" {
		ended = minute(o.Ended)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d of %d services\t%s", minute(o.Began), ended, whose, shown(o.Cause), o.Failed, o.Asked, minute(o.Reaches)), nil
}
