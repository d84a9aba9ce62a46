package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// An accountStanding is an account as the admin API tells it, and an adminStanding a wallet that is an admin, or was one.
type (
	accountStanding struct {
		ID       string `json:"id"`
		Wallet   string `json:"wallet"`
		Plan     string `json:"plan"`
		Seen     string `json:"last_seen_at"`
		Created  string `json:"created_at"`
		Admin    bool   `json:"admin"`
		Services int    `json:"services"`
	}
	adminStanding struct {
		Wallet    string `json:"wallet"`
		On        bool   `json:"on"`
		GrantedBy string `json:"granted_by"`
		GrantedAt string `json:"granted_at"`
		RevokedBy string `json:"revoked_by"`
		RevokedAt string `json:"revoked_at"`
	}
)

func newAdminAccountsCommand(o *adminOptions) *cobra.Command {
	var (
		wallet, cursor string
		limit          int
	)
	cmd := &cobra.Command{
		Use:   "accounts",
		Short: "Whose wallets have signed in, the newest first, and on which plan they are",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"wallet": wallet, "cursor": cursor} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return o.list(cmd, "/api/v1/admin/accounts?"+query.Encode(), printAccounts)
		},
	}
	f := cmd.Flags()
	f.StringVar(&wallet, "wallet", "", "only the account of this wallet")
	f.StringVar(&cursor, "cursor", "", "go on after a page: its next_cursor")
	f.IntVar(&limit, "limit", 100, "accounts on a page, 1 to 100")
	cmd.AddCommand(newAdminPlanCommand(o))
	return cmd
}

func newAdminPlanCommand(o *adminOptions) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "plan ACCOUNT|WALLET PLAN",
		Short: "Put an account on a plan: what it has beyond a smaller one stays, and nothing is added to it",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := o.accountOf(cmd, args[0])
			if err != nil {
				return err
			}
			order := map[string]string{"plan": args[1], "reason": reason}
			return o.change(cmd, "/api/v1/admin/accounts/"+url.PathEscape(id)+"/plan", order, printPlanSet)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for other admins; it is kept in the audit")
	_ = cmd.MarkFlagRequired("reason") // it has just been added
	return cmd
}

// accountOf is the id of an account that is named by its id or by its wallet.
func (o *adminOptions) accountOf(cmd *cobra.Command, name string) (string, error) {
	if !strings.HasPrefix(name, "0x") {
		return name, nil
	}
	client, err := o.client()
	if err != nil {
		return "", err
	}
	var page struct {
		Items []accountStanding `json:"items"`
	}
	if err := client.do(cmd.Context(), http.MethodGet, "/api/v1/admin/accounts?"+url.Values{"wallet": {name}}.Encode(), nil, &page); err != nil {
		return "", err
	}
	if len(page.Items) != 1 {
		return "", fmt.Errorf("the wallet %s has never signed in, and has no account", shown(name))
	}
	return page.Items[0].ID, nil
}

func printAccounts(out io.Writer, items []json.RawMessage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "WALLET\tPLAN\tSERVICES\tADMIN\tSINCE\tLAST SEEN\tACCOUNT") // written by flushed
	for _, raw := range items {
		var a accountStanding
		if err := json.Unmarshal(raw, &a); err != nil {
			return errNotThisAPI
		}
		admin := "-"
		if a.Admin {
			admin = "yes"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", shown(a.Wallet), shown(a.Plan), a.Services, admin, minute(a.Created), minute(a.Seen), shown(a.ID))
	}
	return flushed(w)
}

func printPlanSet(out io.Writer, answer json.RawMessage) error {
	var a accountStanding
	if err := json.Unmarshal(answer, &a); err != nil || a.Wallet == "" {
		return errNotThisAPI
	}
	_, err := fmt.Fprintf(out, "The account of %s has the plan %s.\n", shown(a.Wallet), shown(a.Plan))
	return err
}

func newAdminAdminsCommand(o *adminOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "admins",
		Short: "Whose wallets are admins, and whose were",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.list(cmd, "/api/v1/admin/admins", printAdmins) },
	}
	cmd.AddCommand(newAdminRoleCommand(o, "add", true, "Make a wallet an admin: it may do everything that you may"),
		newAdminRoleCommand(o, "remove", false, "Take the role from a wallet: the next request of its sessions is that of no admin"))
	return cmd
}

func newAdminRoleCommand(o *adminOptions, use string, on bool, short string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   use + " WALLET",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.change(cmd, "/api/v1/admin/admins", map[string]any{"wallet": args[0], "on": on, "reason": reason}, printRoleSet)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for other admins; it is kept in the audit")
	_ = cmd.MarkFlagRequired("reason") // it has just been added
	return cmd
}

func printAdmins(out io.Writer, items []json.RawMessage) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "WALLET\tADMIN\tGRANTED\tBY\tREVOKED\tBY") // written by flushed
	for _, raw := range items {
		var a adminStanding
		if err := json.Unmarshal(raw, &a); err != nil {
			return errNotThisAPI
		}
		admin := "no"
		if a.On {
			admin = "yes"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", shown(a.Wallet), admin, minute(a.GrantedAt), orDash(a.GrantedBy), minute(a.RevokedAt), orDash(a.RevokedBy))
	}
	return flushed(w)
}

func printRoleSet(out io.Writer, answer json.RawMessage) error {
	var a adminStanding
	if err := json.Unmarshal(answer, &a); err != nil || a.Wallet == "" {
		return errNotThisAPI
	}
	words := "is an admin"
	if !a.On {
		words = "is no admin any more"
	}
	_, err := fmt.Fprintf(out, "%s %s.\n", shown(a.Wallet), words)
	return err
}
