package server

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"market/internal/catalog"
	"market/internal/reconcile"
	"market/internal/source"
	"market/internal/switches"
)

// notReady are the networks on which no call can be paid just now, with the reasons. It is for pages, and decides nothing.
func (s *Server) notReady() map[string]error {
	if s.ready == nil {
		return nil
	}
	not := s.ready.All()
	maps.DeleteFunc(not, func(_ string, err error) bool { return err == nil })
	return not
}

// closed says why no call can be paid just now, on no network, a line for each; nothing where one can be paid.
func (s *Server) closed() []string {
	not := s.notReady()
	return s.closedLines(not, not)
}

// closedFor says so of the calls of one service: those of the smaller plans are sent away first.
func (s *Server) closedFor(v *catalog.Service) []string {
	if s.path == nil {
		return s.closed()
	}
	return s.closedLines(s.path.NotOpen(v), s.notReady())
}

// closedLines are the lines for what is out. What is not out for all is kept for others.
func (s *Server) closedLines(out, forAll map[string]error) (lines []string) {
	for _, n := range s.networks {
		err := out[n.ID]
		if err == nil {
			return nil
		}
		why := publicWhy(err)
		if forAll[n.ID] == nil {
			why = keptForOthers
		}
		lines = append(lines, networkName(n.V1Name, n.ID)+": "+why)
	}
	return lines
}

const keptForOthers = "what is left of the limit of the day that we set is kept for services of larger plans. It ends at 00:00 UTC."

// publicWhy says what is out to whoever wants to call. It names no facilitator, node or host: they are the operator's.
func publicWhy(err error) string {
	if errors.Is(err, switches.ErrStopped) {
		return switches.ErrStopped.Error() + "."
	}
	if errors.Is(err, reconcile.ErrDifferent) {
		return reconcile.ErrDifferent.Error() + ", and nobody is asked to pay there until that is done."
	}
	limit, ok := errors.AsType[*source.LimitError](err)
	if !ok {
		return "payments cannot be settled there for now."
	}
	kind, _, _ := strings.Cut(limit.Source, "/")
	what := map[string]string{source.KindFacilitator.String(): "who settles payments there", source.KindRPC.String(): "the node of the chain"}[kind]
	if what == "" {
		what = "what payments need there"
	}
	why := map[source.Why]string{source.Guarded: "has reached the limit of the day that we set", source.Exhausted: "takes no more requests from us for now",
		source.Denied: "does not let us in for now", source.Paced: "asked us to wait for a moment"}[limit.Why]
	if why == "" {
		why = "cannot be asked for now"
	}
	text := what + " " + why + "."
	if !limit.Until.IsZero() {
		text += " It is asked again at " + humanTime(limit.Until) + "."
	}
	return text
}

// readyLines says to an admin how each network stands.
func (s *Server) readyLines() (lines []string) {
	for _, standing := range s.ready.Standings() {
		line := networkName(s.v1Name(standing.Network), standing.Network) + ": " + standing.State.String()
		if standing.Settle.Age >= 0 && standing.Refund.Age >= 0 {
			line += fmt.Sprintf(", proved %s ago, which is used for %s", max(standing.Settle.Age, standing.Refund.Age).Round(100*time.Millisecond),
				standing.Allowance.Round(100*time.Millisecond))
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *Server) v1Name(network string) string {
	for _, n := range s.networks {
		if n.ID == network {
			return n.V1Name
		}
	}
	return ""
}

// whyShownMax is how much of why a network is not ready an admin reads: that of each facilitator and node.
const whyShownMax = 1000

// outNow says to an admin what is out, by name, and what that stops.
func (s *Server) outNow(sources sourcesRead) (lines []string) {
	not := s.notReady()
	for _, n := range s.networks {
		if err := not[n.ID]; err != nil {
			why := brief(strings.ReplaceAll(err.Error(), "\n", "; "), whyShownMax)
			lines = append(lines, fmt.Sprintf("No payment is taken on %s: %s", networkName(n.V1Name, n.ID), why))
		}
	}
	for _, st := range sources.out() {
		var words []string
		for _, r := range reasonsOf(st) {
			words = append(words, r.Words)
		}
		lines = append(lines, plain(st.Source.Name)+": "+strings.Join(words, " "))
	}
	return slices.Clip(lines)
}
