package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newAdminNoticesCommand(o *adminOptions) *cobra.Command {
	l := listOf{path: "/api/v1/admin/notices", none: "there was nothing to tell yet", head: "NOTICED\tSTATE\tABOUT\tTOLD\tWHAT", row: noticeRow, query: url.Values{}}
	cmd := newAdminListCommand(o, &l, "notices", "What stopped or is not as it should be, and how you were told of it, the newest first", func() {})
	cmd.AddCommand(newAdminNoticesTestCommand(o))
	return cmd
}

// testTime is longer than the server waits for every channel together.
const testTime = 45 * time.Second

// errUntold is that no channel took a test: a script that asks whether notices arrive has its answer.
var errUntold = errors.New("no channel took the test notice")

func newAdminNoticesTestCommand(o *adminOptions) *cobra.Command {
	var channel string
	cmd := &cobra.Command{
		Use:   "test",
		Short: "Send a test notice now, and say which channel took it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := o.client()
			if err != nil {
				return err
			}
			client.http.Timeout = testTime
			order := map[string]string{}
			if channel != "" {
				order["channel"] = channel
			}
			var answer json.RawMessage
			if err := client.do(cmd.Context(), http.MethodPost, "/api/v1/admin/notices/test", order, &answer); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			return printTested(out, answer, o.tables(out))
		},
	}
	cmd.Flags().StringVar(&channel, "channel", "", "only by this `channel`: mail or webhook (default: the first that takes it)")
	return cmd
}

func printTested(out io.Writer, answer json.RawMessage, table bool) error {
	var tested struct {
		Channel string `json:"channel"`
		Failed  []struct {
			Channel string `json:"channel"`
			Error   string `json:"error"`
		} `json:"failed"`
	}
	if err := json.Unmarshal(answer, &tested); err != nil {
		return errNotThisAPI
	}
	if !table {
		if err := printJSON(out, answer); err != nil {
			return err
		}
	} else {
		for _, f := range tested.Failed {
			_, _ = fmt.Fprintf(out, "%s did not take it: %s\n", shown(f.Channel), shown(f.Error)) // the last line says whether printing works
		}
		if tested.Channel != "" {
			_, err := fmt.Fprintf(out, "%s took it\n", shown(tested.Channel))
			return err
		}
	}
	if tested.Channel == "" {
		return errUntold
	}
	return nil
}

func noticeRow(raw json.RawMessage) (string, error) {
	var n struct {
		Kind     string `json:"kind"`
		Subject  string `json:"subject"`
		State    string `json:"state"`
		What     string `json:"what"`
		Raised   string `json:"raised_at"`
		Messages []struct {
			Phase    string `json:"phase"`
			Channel  string `json:"channel"`
			Attempts int    `json:"attempts"`
			Next     string `json:"next_at"`
			GivenUp  string `json:"given_up_at"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &n); err != nil {
		return "", errNotThisAPI
	}
	about := shown(n.Kind)
	if n.Subject != "" && n.Kind != "test" {
		about += " " + shown(n.Subject)
	}
	var told []string
	for _, m := range n.Messages {
		words := shown(m.Phase)
		switch {
		case m.Channel != "":
			words += " by " + shown(m.Channel)
		case m.GivenUp != "":
			words += ": given up"
		default:
			words += fmt.Sprintf(": %d failed, next %s", m.Attempts, minute(m.Next))
		}
		told = append(told, words)
	}
	if told == nil {
		told = []string{"-"}
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", minute(n.Raised), shown(n.State), about, strings.Join(told, ", "), shown(n.What)), nil
}
