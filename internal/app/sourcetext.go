package app

import (
	"fmt"
	"strings"
	"time"

	"market/internal/notify"
	"market/internal/source"
)

// sourcesPage is where an operator sees every source, and has one tried again.
const sourcesPage = "/admin/sources"

// outOf is what the operator is told of a source that is out: it is read by somebody who does not look at this program every day.
// Where new payments are of several ranks, our own guard sends away those of the lowest first, and that is when it is told.
func outOf(s source.Source, o source.Out, effect string, ranks int) notify.Outage {
	name := plainName(s)
	told := notify.Outage{Effect: effect + " We try it again at " + clock(o.Until) + ", by one request; until then it is not asked"}
	switch o.Why {
	case source.Guarded:
		so := "we have stopped using it for today"
		if s.Kind == source.KindFacilitator && ranks > 1 {
			so = "we have begun to refuse payments through it for today, those for services of the smallest plan first"
		}
		told.What = fmt.Sprintf("%s: our own guard is reached at %d units. The busiest day that counts had %d, so %s", name, o.Cap, o.Busiest, so)
		told.Effect = effect + " More goes out from " + clock(o.Until)
		if s.Kind.Adjustable() {
			told.Effect = effect + " It goes on at " + clock(o.Until) + ". If this is real demand, raise guard.floor of the source in its file and restart; " +
				"if it is not, something calls in a loop"
		}
	case source.Denied:
		told.What = name + " does not accept our credential" + by(o.Said)
	case source.Exhausted, source.Paced:
		told.What = name + " refuses us: it says that no credit or quota is left" + by(o.Said)
	}
	told.Look = strings.TrimSpace(s.BudgetURL + "\n" + sourcesPage)
	return told
}

func by(said string) string {
	if said == "" {
		return ""
	}
	return " (" + said + ")"
}

// plainName is a source as a stranger understands it.
func plainName(s source.Source) string {
	_, rest, _ := strings.Cut(s.Name, "/")
	switch s.Kind {
	case source.KindFacilitator:
		return "facilitator " + rest
	case source.KindRPC:
		return "chain node " + rest
	case source.KindMail:
		return "the mail relay"
	case source.KindWebhook:
		return "your webhook"
	}
	return s.Name
}

// clock is an instant in market time, as people read it.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// effect is what stops with a source and what carries on, in whole sentences.
func (k *keeper) effect(s source.Source, why source.Why) string {
	switch s.Kind {
	case source.KindFacilitator:
		return k.settlesWithout(s, why)
	case source.KindRPC:
		return "The other nodes of its network are used where there are some; where there is none, payments on it are refused with 503 and nobody is charged, and its refunds wait."
	case source.KindMail:
		if why == source.Guarded {
			return "Mails to providers wait. Notices to you have the last tenth of our guard for themselves; beyond that they go to the webhook where there is one. Calls and payments go on."
		}
		return "Notices go to the webhook where there is one, and wait where there is none. Calls and payments go on."
	case source.KindWebhook:
		return "Notices go by mail where that is set up, and wait where it is not. Calls and payments go on."
	}
	return "What needs it waits."
}

// settlesWithout says, for each network of a facilitator, who has taken over. Our own guard keeps units for refunds.
func (k *keeper) settlesWithout(s source.Source, why source.Why) string {
	var said []string
	for _, network := range k.serves[s.Name] {
		others := k.others(network, s.Name)
		if len(others) == 0 && why == source.Guarded {
			first := ""
			if k.ranks > 1 {
				first = ": those for services of the smallest plan now, and those of each larger one as its part of the day's last tenth is used up"
			}
			said = append(said, fmt.Sprintf("Payments on %s are refused with 503 and nobody is charged%s; refunds there go on, from what is kept for them.", network, first))
			continue
		}
		if len(others) == 0 {
			said = append(said, fmt.Sprintf("Payments on %s are refused with 503 and nobody is charged; refunds there wait.", network))
			continue
		}
		said = append(said, fmt.Sprintf("Payments and refunds on %s go on through %s, as long as that takes work.", network, strings.Join(others, " or ")))
	}
	return strings.Join(append(said, "The catalog, trial calls and every page stay open."), " ")
}
