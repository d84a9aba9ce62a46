package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// listingBytesMax is what a server reads of a listing.
const listingBytesMax = 1 << 20

func newProviderServicesCommand(o *providerOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "services",
		Short: "Your services, with their state and the reason of it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.as(cmd.Context(), func(client *apiClient) error {
				items := []json.RawMessage{}
				err := client.pages(cmd.Context(), "/api/v1/provider/services", url.Values{}, func(page json.RawMessage) error {
					var list struct {
						Items []json.RawMessage `json:"items"`
					}
					if err := json.Unmarshal(page, &list); err != nil {
						return errNotThisAPI
					}
					items = append(items, list.Items...)
					return nil
				})
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if !forPeople(out, o.asJSON) {
					return printJSON(out, map[string]any{"items": items})
				}
				return printOwned(out, items)
			})
		},
	}
	cmd.AddCommand(
		o.newListingCommand("create FILE", "List a service with the document of FILE (- is stdin), and print what the server made of it, its secret too", 1,
			func([]string) (string, string) { return http.MethodPost, "/api/v1/services" }),
		o.newListingCommand("edit SLUG FILE", "Change what a service says of itself: a member that FILE has replaces the one that stands, null takes it away", 2,
			func(args []string) (string, string) { return http.MethodPatch, servicePath(args[0]) }),
		o.newListingCommand("add-endpoint SLUG FILE", "Add an endpoint to a service", 2,
			func(args []string) (string, string) { return http.MethodPost, servicePath(args[0]) + "/endpoints" }),
		o.newListingCommand("edit-endpoint SLUG ID FILE", "Change an endpoint, such as its price", 3,
			func(args []string) (string, string) {
				return http.MethodPatch, servicePath(args[0]) + "/endpoints/" + url.PathEscape(args[1])
			}),
		o.newRetireCommand("retire SLUG", "Take a service off the shelf for good", 1, func(args []string) string { return servicePath(args[0]) }),
		o.newRetireCommand("retire-endpoint SLUG ID", "Take an endpoint off the shelf for good", 2,
			func(args []string) string { return servicePath(args[0]) + "/endpoints/" + url.PathEscape(args[1]) }),
	)
	return cmd
}

func servicePath(slug string) string { return "/api/v1/services/" + url.PathEscape(slug) }

// newListingCommand sends a document from a file and prints the answer, which is JSON as well.
func (o *providerOptions) newListingCommand(use, short string, args int, at func([]string) (method, path string)) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, given []string) error {
			text, err := readInput(cmd, given[args-1:], listingBytesMax)
			if err != nil {
				return err
			}
			if !json.Valid(text) {
				return fmt.Errorf("%s is no JSON%s", given[args-1], whereNoJSON(text))
			}
			return o.as(cmd.Context(), func(client *apiClient) error {
				method, path := at(given)
				var answer json.RawMessage
				if err := client.do(cmd.Context(), method, path, json.RawMessage(text), &answer); err != nil {
					return err
				}
				return printJSON(cmd.OutOrStdout(), answer)
			})
		},
	}
}

// whereNoJSON says at which line a text stops being JSON.
func whereNoJSON(text []byte) string {
	var v any
	err := json.Unmarshal(text, &v)
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return ""
	}
	line := 1
	for _, b := range text[:min(int(syntax.Offset), len(text))] {
		if b == '\n' {
			line++
		}
	}
	return fmt.Sprintf(": line %d: %s", line, shown(syntax.Error()))
}

// newRetireCommand takes something off the shelf, which is for good, so it asks for --yes.
func (o *providerOptions) newRetireCommand(use, short string, args int, path func([]string) string) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   use + " --yes",
		Short: short,
		Args:  cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, given []string) error {
			if !yes {
				return errors.New("this is for good: give --yes to do it")
			}
			return o.as(cmd.Context(), func(client *apiClient) error {
				return client.do(cmd.Context(), http.MethodDelete, path(given), nil, nil)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it: it is for good")
	return cmd
}

// printOwned prints services in the table of those of admins.
func printOwned(out io.Writer, items []json.RawMessage) error {
	owned := make([]standing, 0, len(items))
	for _, item := range items {
		var s struct {
			standing
			Endpoints []struct{} `json:"endpoints"`
			Broken    string     `json:"broken"`
		}
		if err := json.Unmarshal(item, &s); err != nil {
			return errNotThisAPI
		}
		s.standing.Endpoints = len(s.Endpoints)
		if s.Broken != "" {
			s.standing.Broken = []string{s.Broken}
		}
		owned = append(owned, s.standing)
	}
	return printServices(out, owned, true)
}
