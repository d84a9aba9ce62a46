package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

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
		newAdminMoneyCommand(&o), newAdminRefundsCommand(&o), newAdminReviewsCommand(&o), newAdminSwitchesCommand(&o), newAdminAccountsCommand(&o), newAdminAdminsCommand(&o))
	return cmd
}

// client reads where the server is and who asks.
func (o *adminOptions) client() (*adminClient, error) {
	client, err := newAPIClient(o.url, "the admin token")
	if err != nil {
		return nil, err
	}
	if client.token = os.Getenv("MARKET_ADMIN_TOKEN"); client.token == "" {
		return nil, errors.New("MARKET_ADMIN_TOKEN is not set: it is the token that the server was started with")
	}
	return client, nil
}

// tables says whether people read the output.
func (o *adminOptions) tables(out io.Writer) bool { return forPeople(out, o.asJSON) }

// forPeople says whether output goes to a terminal, where nobody asked for JSON.
func forPeople(out io.Writer, asJSON bool) bool {
	f, ok := out.(*os.File)
	if !ok || asJSON {
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
