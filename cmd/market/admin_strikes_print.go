package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
)

// A strikeSummary is what the strikes of a service rest on, and what comes next, as the admin API tells it.
type strikeSummary struct {
	Service      string  `json:"service"`
	State        string  `json:"state"`
	Open         int     `json:"open"`
	Limit        int     `json:"limit"`
	Window       float64 `json:"window_seconds"`
	Concentrated bool    `json:"concentrated"`
	Words        string  `json:"words"`
	Next         string  `json:"next"`
	Sources      struct {
		Evidence  int     `json:"evidence"`
		Networks  int     `json:"networks"`
		Largest   string  `json:"largest_network"`
		Share     float64 `json:"largest_network_share"`
		Payers    int     `json:"payers"`
		Payer     string  `json:"largest_payer"`
		PayerPart float64 `json:"largest_payer_share"`
	} `json:"sources"`
	Clears struct {
		Words string `json:"words"`
	} `json:"clears"`
}

// A serviceStrikes is everything about the strikes of one service.
type serviceStrikes struct {
	Summary strikeSummary `json:"summary"`
	Items   []struct {
		ID         string                 `json:"id"`
		State      string                 `json:"state"`
		Counts     bool                   `json:"counts"`
		OpenedAt   string                 `json:"opened_at"`
		Deliveries int                    `json:"deliveries"`
		Sources    struct{ Words string } `json:"sources"`
		Evidence   []evidence             `json:"evidence"`
	} `json:"items"`
}

type evidence struct {
	Call     string  `json:"call"`
	Recorded string  `json:"recorded_at"`
	Source   string  `json:"source"`
	Origin   string  `json:"origin"`
	Payer    string  `json:"payer"`
	Method   string  `json:"method"`
	Path     string  `json:"path"`
	Status   int     `json:"service_status"`
	Latency  float64 `json:"latency_ms"`
	Reason   string  `json:"reason"`
	Error    string  `json:"error"`
	Others   *struct {
		Asked  int `json:"asked"`
		Failed int `json:"failed"`
	} `json:"others"`
}

// window is how far back strikes count, and with them what cleared some.
func (s strikeSummary) window() string {
	seconds := int64(s.Window)
	switch {
	case seconds >= 7200 && seconds%3600 == 0:
		return fmt.Sprintf("%d h", seconds/3600)
	case seconds >= 120 && seconds%60 == 0:
		return fmt.Sprintf("%d min", seconds/60)
	}
	return fmt.Sprintf("%d s", seconds)
}

func (s strikeSummary) cleared() string {
	if s.Clears.Words == "" {
		return "not within " + s.window()
	}
	return shown(s.Clears.Words)
}

func printDecision(out io.Writer, whole json.RawMessage) error {
	var decided struct{ Service, Effect string }
	if err := json.Unmarshal(whole, &decided); err != nil {
		return errNotThisAPI
	}
	_, err := fmt.Fprintf(out, "%s: %s\n", shown(decided.Service), shown(decided.Effect))
	return err
}

// printQueue prints the whole queue. It moves while it is read, so a service may stand in it twice, or not at all.
func (c *adminClient) printQueue(ctx context.Context, out io.Writer, table bool) error {
	all := struct {
		Services []json.RawMessage `json:"services"`
		Items    []json.RawMessage `json:"items"`
	}{[]json.RawMessage{}, []json.RawMessage{}}
	err := c.pages(ctx, "/api/v1/admin/strikes", url.Values{}, func(raw json.RawMessage) error {
		var page struct{ Services, Items []json.RawMessage }
		if err := json.Unmarshal(raw, &page); err != nil {
			return errNotThisAPI
		}
		all.Services, all.Items = append(all.Services, page.Services...), append(all.Items, page.Items...)
		return nil
	})
	switch {
	case err != nil:
		return err
	case !table:
		return printJSON(out, all)
	case len(all.Services) == 0:
		_, err := fmt.Fprintln(out, "no service is under strike")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i, raw := range all.Services {
		var s strikeSummary
		if err := json.Unmarshal(raw, &s); err != nil {
			return errNotThisAPI
		}
		if i == 0 {
			_, _ = fmt.Fprintf(w, "SERVICE\tSTATE\tSTRIKES\tCONCENTRATED\tEVIDENCE\tNETWORKS\tLARGEST\tPAYERS\tLARGEST\tAT THE NEXT FAILURE\tCLEARED WITHIN %s\n", s.window()) // written by Flush
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d of %d\t%s\t%s\t%d\t%s\t%d\t%s\t%s\t%s\n", shown(s.Service), shown(s.State), s.Open, s.Limit, yes(s.Concentrated), shown(s.Words),
			s.Sources.Networks, shareOf(s.Sources.Share, s.Sources.Largest), s.Sources.Payers, shareOf(s.Sources.PayerPart, s.Sources.Payer), shown(s.Next), s.cleared())
	}
	return flushed(w)
}

// printStrikes prints the strikes of one service: what they come to, each strike, and each call that proves one.
func printStrikes(out io.Writer, whole json.RawMessage) error {
	var s serviceStrikes
	if err := json.Unmarshal(whole, &s); err != nil {
		return errNotThisAPI
	}
	sum := s.Summary
	_, _ = fmt.Fprintf(out, "%s is %s, with %d of %d strikes\n", shown(sum.Service), shown(sum.State), sum.Open, sum.Limit) // as the table
	if sum.Open > 0 {
		mark := ""
		if sum.Concentrated {
			mark = "CONCENTRATED: "
		}
		_, _ = fmt.Fprintf(out, "evidence: %s%s\nat the next failure: %s\ncleared within %s: %s\n", mark, shown(sum.Words), shown(sum.Next), sum.window(), sum.cleared())
	}
	if len(s.Items) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "STRIKE\tOPENED\tSTATE\tCOUNTS\tCALLS\tEVIDENCE")
	for _, st := range s.Items {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", shown(st.ID), minute(st.OpenedAt), shown(st.State), yes(st.Counts), st.Deliveries, shown(st.Sources.Words))
	}
	if err := flushed(w); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "WHEN\tCALL\tFROM\tORIGIN\tPAYER\tREQUEST\tSTATUS\tTOOK\tREASON\tERROR\tOTHERS")
	for _, st := range s.Items {
		for _, e := range st.Evidence {
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f ms\t%s\t%s\t%s\n", minute(e.Recorded), shown(e.Call), shown(e.Source), shown(e.Origin), orDash(e.Payer),
				shown(e.Method+" "+cut(e.Path)), statusOrDash(e.Status), e.Latency, shown(e.Reason), orDash(e.Error), e.others())
		}
	}
	return flushed(w)
}

func (e evidence) others() string {
	if e.Others == nil {
		return "-"
	}
	return fmt.Sprintf("%d of %d failed", e.Others.Failed, e.Others.Asked)
}

func flushed(w *tabwriter.Writer) error {
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "-"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return shown(s)
}

func statusOrDash(status int) string {
	if status == 0 {
		return "-"
	}
	return fmt.Sprint(status)
}

func shareOf(share float64, of string) string {
	if of == "" {
		return "-"
	}
	return fmt.Sprintf("%.0f %% %s", 100*share, shown(of))
}

// pathShownMax is how much of a caller's path stands in a table.
const pathShownMax = 60

func cut(s string) string {
	if runes := []rune(s); len(runes) > pathShownMax {
		return string(runes[:pathShownMax]) + "…"
	}
	return s
}
