package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// A switchStanding is how a switch stands, as the admin API tells it.
type switchStanding struct {
	Kind    string `json:"kind"`
	Network string `json:"network"`
	On      bool   `json:"on"`
	Reason  string `json:"reason"`
	By      string `json:"by"`
	Since   string `json:"since"`
	Stops   string `json:"stops"`
	GoesOn  string `json:"goes_on"`
}

func newAdminSwitchesCommand(o *adminOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "switches",
		Short: "What can be stopped by hand: new payments on a network, payouts, strikes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.list(cmd, "/api/v1/admin/switches", printSwitches)
		},
	}
	cmd.AddCommand(newAdminSetSwitchCommand(o))
	return cmd
}

func newAdminSetSwitchCommand(o *adminOptions) *cobra.Command {
	var network, reason string
	cmd := &cobra.Command{
		Use:       "set stop-402|stop-payouts|suspend-strikes on|off",
		Short:     "Set a switch; stop-402 takes the network by --network",
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"stop-402", "stop-payouts", "suspend-strikes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			order, err := switchOrder(args[0], args[1], network, reason)
			if err != nil {
				return err
			}
			return o.change(cmd, "/api/v1/admin/switches", order, printSwitchSet)
		},
	}
	cmd.Flags().StringVar(&network, "network", "", "of stop-402: the network, such as eip155:8453")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for other admins; it is kept in the audit")
	_ = cmd.MarkFlagRequired("reason") // it has just been added
	return cmd
}

// switchOrder is what the API takes: the member that has the name of a switch says which one is meant.
func switchOrder(name, to, network, reason string) (map[string]any, error) {
	order := map[string]any{"on": to == "on", "reason": reason}
	switch {
	case to != "on" && to != "off":
		return nil, fmt.Errorf("a switch is set on or off, not %q", to)
	case name == "stop-402" && network == "":
		return nil, fmt.Errorf("stop-402 is set for one network: name it by --network")
	case name != "stop-402" && network != "":
		return nil, fmt.Errorf("%s is of no network: leave out --network", name)
	}
	switch name {
	case "stop-402":
		order["stop_402"] = network
	case "stop-payouts":
		order["stop_payouts"] = true
	case "suspend-strikes":
		order["suspend_strikes"] = true
	default:
		return nil, fmt.Errorf("there is no switch %q: stop-402, stop-payouts and suspend-strikes are", name)
	}
	return order, nil
}

func printSwitches(out io.Writer, items []json.RawMessage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SWITCH\tNETWORK\tSTATE\tSINCE\tBY\tREASON") // written by flushed
	for _, raw := range items {
		var s switchStanding
		if err := json.Unmarshal(raw, &s); err != nil {
			return errNotThisAPI
		}
		state := "off"
		if s.On {
			state = "STOPPED"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", shown(s.Kind), orDash(s.Network), state, minute(s.Since), orDash(s.By), orDash(s.Reason))
	}
	return flushed(w)
}

func printSwitchSet(out io.Writer, answer json.RawMessage) error {
	var s switchStanding
	if err := json.Unmarshal(answer, &s); err != nil || s.Kind == "" {
		return errNotThisAPI
	}
	name := shown(s.Kind)
	if s.Network != "" {
		name += " " + shown(s.Network)
	}
	var err error
	if s.On {
		_, err = fmt.Fprintf(out, "%s is on. %s\nWhat goes on: %s\n", name, shown(s.Stops), shown(s.GoesOn))
	} else {
		_, err = fmt.Fprintf(out, "%s is off.\n", name)
	}
	return err
}

// list prints what a list of the API has: JSON where no person looks, and a table otherwise.
func (o *adminOptions) list(cmd *cobra.Command, path string, table func(io.Writer, []json.RawMessage) error) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := client.do(cmd.Context(), http.MethodGet, path, nil, &answer); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if !o.tables(out) {
		return printJSON(out, answer)
	}
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(answer, &page); err != nil {
		return errNotThisAPI
	}
	return table(out, page.Items)
}

// change asks the API for a change, and prints what came of it.
func (o *adminOptions) change(cmd *cobra.Command, path string, order any, words func(io.Writer, json.RawMessage) error) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := client.do(cmd.Context(), http.MethodPost, path, order, &answer); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if !o.tables(out) {
		return printJSON(out, answer)
	}
	return words(out, answer)
}
