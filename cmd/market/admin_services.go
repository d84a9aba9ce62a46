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

// servicesMax bounds what one command prints.
const servicesMax = 10_000

// A standing is a service as the admin API lists it.
type standing struct {
	Slug        string   `json:"slug"`
	Name        string   `json:"name"`
	State       string   `json:"state"`
	StateCause  string   `json:"state_cause"`
	StateReason string   `json:"state_reason"`
	StateBy     string   `json:"state_by,omitempty"`
	StateSince  string   `json:"state_since"`
	Endpoints   int      `json:"endpoints"`
	Revision    int64    `json:"revision"`
	Broken      []string `json:"broken,omitempty"`
}

func newAdminServicesCommand(o *adminOptions) *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use:   "services",
		Short: "Every service, with its state and the reason of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			services, err := client.services(cmd.Context(), state)
			if err != nil {
				return err
			}
			return printServices(cmd.OutOrStdout(), services, o.tables(cmd.OutOrStdout()))
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those that are `listed`, delisted, suspended, held or retired")
	cmd.AddCommand(
		newAdminMoveCommand(o, "suspend", "Take a service off the shelf until it is put back; calls that are under way end as they would have"),
		newAdminMoveCommand(o, "relist", "Put a service back on the shelf that was suspended, held or delisted; of the last two the strikes are archived"),
		newAdminMoveCommand(o, "uphold", "Answer the appeals about a service and leave it as it is"),
		newAdminLettersCommand(o),
	)
	return cmd
}

// newAdminMoveCommand is one decision about a service, by the name that it has in the API.
func newAdminMoveCommand(o *adminOptions, action, short string) *cobra.Command {
	return newOrderCommand(o, "services", action, "SLUG", short, "everybody is told that the operator did it", func(out io.Writer, answer json.RawMessage) error {
		var now struct {
			standing
			Endpoints []struct{} `json:"endpoints"`
		}
		if err := json.Unmarshal(answer, &now); err != nil {
			return errNotThisAPI
		}
		now.standing.Endpoints = len(now.Endpoints)
		return printServices(out, []standing{now.standing}, o.tables(out))
	})
}

// services reads the whole list, page by page.
func (c *adminClient) services(ctx context.Context, state string) ([]standing, error) {
	query := url.Values{"limit": {"100"}}
	if state != "" {
		query.Set("state", state)
	}
	all := []standing{}
	for {
		var page struct {
			Items      []standing `json:"items"`
			NextCursor string     `json:"next_cursor"`
		}
		if err := c.do(ctx, http.MethodGet, "/api/v1/admin/services?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextCursor == "" {
			return all, nil
		}
		if len(all) >= servicesMax || len(page.Items) == 0 {
			return nil, fmt.Errorf("there are more than %d services: ask for one state with --state", servicesMax)
		}
		query.Set("cursor", page.NextCursor)
	}
}

func printServices(out io.Writer, services []standing, table bool) error {
	if !table {
		return printJSON(out, map[string]any{"items": services})
	}
	if len(services) == 0 {
		_, err := fmt.Fprintln(out, "no services")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SERVICE\tSTATE\tSINCE\tBY\tENDPOINTS\tREASON") // the table is written by Flush
	for _, s := range services {
		reason := shown(s.StateReason)
		if len(s.Broken) > 0 {
			reason += "; broken: " + shown(strings.Join(s.Broken, "; "))
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", shown(s.Slug), shown(s.State), minute(s.StateSince), shown(s.StateBy), s.Endpoints, reason)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// minute is a time of the API as people compare it.
func minute(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "-"
	}
	return at.UTC().Format("2006-01-02 15:04 UTC")
}
