package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"
)

// An owedStanding is a refund as the admin API tells it, and a callStanding a call.
type (
	owedStanding struct {
		Call    string `json:"call"`
		State   string `json:"state"`
		Amount  string `json:"amount"`
		USD     string `json:"usd"`
		Network string `json:"network"`
		To      string `json:"to"`
		OwedAt  string `json:"owed_at"`
		NextAt  string `json:"next_at"`
		Why     string `json:"why"`
	}
	callStanding struct {
		ID      string `json:"id"`
		State   string `json:"state"`
		Service string `json:"service"`
		Created string `json:"created_at"`
		Payment struct {
			Amount  string `json:"amount"`
			USD     string `json:"usd"`
			Network string `json:"network"`
			Payer   string `json:"payer"`
		} `json:"payment"`
		Refund *struct {
			State string `json:"state"`
		} `json:"refund"`
	}
)

const toldInAudit = "it is kept in the audit"

func newAdminRefundsCommand(o *adminOptions) *cobra.Command {
	l := listOf{path: "/api/v1/admin/refunds", none: "there is no such refund", head: "STATE\tAMOUNT\tNETWORK\tTO\tOWED\tNEXT\tWHY\tCALL", row: owedRow, query: url.Values{}}
	var state string
	cmd := newAdminListCommand(o, &l, "refunds", "What is owed to callers, of the newest calls first; parked is what could not be sent", func() {
		if state != "" {
			l.query.Set("state", state)
		}
	})
	cmd.Flags().StringVar(&state, "state", "parked", "only those in this state: owed, sent, confirmed, parked or void; empty for all")
	cmd.AddCommand(newOrderCommand(o, "refunds", "retry", "CALL", "Have a parked refund tried again now: the same transfer, to the same wallet",
		toldInAudit, printOf(o, printRetried)))
	return cmd
}

func newAdminReviewsCommand(o *adminOptions) *cobra.Command {
	l := listOf{path: "/api/v1/admin/reviews", none: "no call is up for review", head: "STATE\tAMOUNT\tNETWORK\tPAYER\tSERVICE\tPAID\tCALL", row: reviewRow, query: url.Values{}}
	cmd := newAdminListCommand(o, &l, "reviews", "The calls that a restore of a backup brought in doubt, the newest first", func() {})
	cmd.AddCommand(
		newOrderCommand(o, "reviews", "refund", "CALL", "End a review: the call is refunded; what was paid back before is found on the chain, and not paid twice",
			toldInAudit, printOf(o, printReviewed)),
		newOrderCommand(o, "reviews", "serve", "CALL", "End a review: the call is served if its caller comes back within two minutes, and refunded after that",
			toldInAudit, printOf(o, printReviewed)))
	return cmd
}

// printOf prints an answer as JSON where no person looks, and in words otherwise.
func printOf(o *adminOptions, words func(io.Writer, json.RawMessage) error) func(io.Writer, json.RawMessage) error {
	return func(out io.Writer, answer json.RawMessage) error {
		if !o.tables(out) {
			return printJSON(out, answer)
		}
		return words(out, answer)
	}
}

// moneyOf is an amount in dollars where they are known, and in base units otherwise.
func moneyOf(usd, amount string) string {
	if usd == "" {
		return shown(amount) + " units"
	}
	return "$" + shown(usd)
}

func owedRow(raw json.RawMessage) (string, error) {
	var r owedStanding
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", errNotThisAPI
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", shown(r.State), moneyOf(r.USD, r.Amount), shown(r.Network), shown(r.To), minute(r.OwedAt), minute(r.NextAt), orDash(r.Why),
		shown(r.Call)), nil
}

func reviewRow(raw json.RawMessage) (string, error) {
	var c callStanding
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", errNotThisAPI
	}
	p := c.Payment
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s", shown(c.State), moneyOf(p.USD, p.Amount), shown(p.Network), shown(p.Payer), shown(c.Service), minute(c.Created),
		shown(c.ID)), nil
}

func printRetried(out io.Writer, answer json.RawMessage) error {
	var r owedStanding
	if err := json.Unmarshal(answer, &r); err != nil || r.Call == "" {
		return errNotThisAPI
	}
	_, err := fmt.Fprintf(out, "The refund of %s to %s is %s, and tried again now.\n", moneyOf(r.USD, r.Amount), shown(r.To), shown(r.State))
	return err
}

func printReviewed(out io.Writer, answer json.RawMessage) error {
	var c callStanding
	if err := json.Unmarshal(answer, &c); err != nil || c.ID == "" {
		return errNotThisAPI
	}
	words := "goes on, and is " + shown(c.State)
	if c.Refund != nil {
		words = "is " + shown(c.State) + ", and its refund " + shown(c.Refund.State)
	}
	_, err := fmt.Fprintf(out, "The call %s %s.\n", shown(c.ID), words)
	return err
}
