package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// A moneyStanding is where all money is, as the admin API tells it.
type moneyStanding struct {
	OK       *bool           `json:"ok"`
	Wrong    []string        `json:"wrong"`
	Promises []moneyPromise  `json:"promise_one"`
	Wallets  []moneyWallet   `json:"wallets"`
	Differ   []moneyDiffered `json:"differences"`
}

type moneyPromise struct {
	Network         string `json:"network"`
	Asset           string `json:"asset"`
	Paid            string `json:"paid"`
	Served          string `json:"served"`
	RefundOwed      string `json:"refund_owed"`
	RefundConfirmed string `json:"refund_confirmed"`
	Lost            string `json:"lost"`
	Pending         string `json:"pending"`
}

type moneyWallet struct {
	Network   string            `json:"network"`
	Treasury  string            `json:"treasury"`
	Asset     string            `json:"asset"`
	Balances  map[string]string `json:"balances"`
	Owed      string            `json:"owed"`
	Held      string            `json:"held"`
	Block     uint64            `json:"block"`
	Unmatched int               `json:"unmatched"`
	Compared  string            `json:"compared_at"`
}

type moneyDiffered struct {
	Network  string `json:"network"`
	Treasury string `json:"treasury"`
	Kind     string `json:"kind"`
	Text     string `json:"text"`
	Since    string `json:"since"`
	Closed   string `json:"closed_at"`
}

// errMoney ends the program with a code that says that something is wrong: what is stands in the output.
var errMoney = errors.New("something is wrong with the money: see above")

func newAdminMoneyCommand(o *adminOptions) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "money",
		Short: "Where all money is, whether the chain says so too, and what differs",
		Long: `Shows what was paid and where it is, the books of every treasury, what the chain says that it holds, and what differs. Amounts are in base units.

The exit code is 0 only where nothing is wrong.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			method, path := http.MethodGet, "/api/v1/admin/money"
			if now {
				method, path = http.MethodPost, path+"/reconcile"
			}
			var answer json.RawMessage
			if err := client.do(cmd.Context(), method, path, nil, &answer); err != nil {
				return err
			}
			return o.printMoney(cmd.OutOrStdout(), answer)
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "hold the chain against the books first")
	return cmd
}

func (o *adminOptions) printMoney(out io.Writer, answer json.RawMessage) error {
	var m moneyStanding
	if err := json.Unmarshal(answer, &m); err != nil || m.OK == nil {
		return errNotThisAPI
	}
	show := func() error { return printMoney(out, m) }
	if !o.tables(out) {
		show = func() error { return printJSON(out, answer) }
	}
	if err := show(); err != nil || *m.OK {
		return err
	}
	return errMoney
}

func printMoney(out io.Writer, m moneyStanding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { _, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) } // written by flushed
	line("NETWORK", "ASSET", "PAID", "SERVED", "REFUND OWED", "REFUNDED", "LOST", "PENDING")
	for _, p := range m.Promises {
		line(shown(p.Network), shown(p.Asset), shown(p.Paid), shown(p.Served), shown(p.RefundOwed), shown(p.RefundConfirmed), shown(p.Lost), shown(p.Pending))
	}
	line("")
	line("NETWORK", "TREASURY", "HELD", "BLOCK", "OWED", "UNMATCHED", "COMPARED", "BOOKS")
	for _, each := range m.Wallets {
		var books []string
		for _, account := range slices.Sorted(maps.Keys(each.Balances)) {
			books = append(books, shown(account)+" "+shown(each.Balances[account]))
		}
		compared := "-"
		if each.Compared != "" {
			compared = minute(each.Compared)
		}
		line(shown(each.Network), shown(each.Treasury), orDash(each.Held), fmt.Sprint(each.Block), shown(each.Owed), fmt.Sprint(each.Unmatched), compared, strings.Join(books, ", "))
	}
	if len(m.Differ) > 0 {
		line("")
		line("DIFFERENT", "NETWORK", "TREASURY", "SINCE", "NEW PAYMENTS", "WHAT")
	}
	for _, d := range m.Differ {
		goes := "go on"
		if d.Closed != "" {
			goes = "STOPPED"
		}
		line(shown(d.Kind), shown(d.Network), shown(d.Treasury), minute(d.Since), goes, shown(d.Text))
	}
	line("")
	if len(m.Wrong) == 0 {
		line("Nothing is wrong.")
	}
	for _, wrong := range m.Wrong {
		line("WRONG: " + shown(wrong))
	}
	return flushed(w)
}
