package source

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// A Source is something outside that can refuse us.
type Source struct {
	Name        string // its key everywhere; it holds no credential and no path
	Kind        Kind
	Metered     bool // a unit costs something, or is counted against something
	RunsOut     RunsOut
	RetryWindow time.Duration   // how long a source that refused is not asked, where it does not say itself
	UnitUSD     decimal.Decimal // what a unit costs; zero: not known
	Guard       Guard
	BudgetURL   string  // where people top it up; empty: not known
	Shapes      []Shape // further looks of its refusals
}

// A Kind is what sort of source it is.
type Kind int

const (
	_               Kind = iota // invalid
	KindFacilitator             // settles payments and refunds
	KindRPC                     // a node of a chain
	KindMail                    // the mail relay
	KindWebhook                 // the operator's webhook

	kindEnd // keep last
)

func (k Kind) String() string {
	return word(int(k), "", "facilitator", "rpc", "mail", "webhook")
}

// Adjustable says whether the operator sets the guard of such a source, in a file. That of the ways by which people are told is a constant.
func (k Kind) Adjustable() bool { return k == KindFacilitator || k == KindRPC }

// RunsOut is how a source runs out.
type RunsOut int

const (
	_       RunsOut = iota // invalid
	Rate                   // it is free or paid elsewhere, and limits how fast it is asked
	Daily                  // a quota, which is there again at UTC midnight
	Prepaid                // a balance, which somebody has to top up

	runsOutEnd // keep last
)

func (r RunsOut) String() string { return word(int(r), "", "rate", "daily", "prepaid") }

// RetryWindow is how long a source that refused is not asked, where neither it nor the configuration says otherwise.
const RetryWindow = time.Hour

// Names of the sources of which there is one.
const (
	Mail    = "mail"
	Webhook = "webhook"
)

// FacilitatorName is the name of a facilitator as a source.
func FacilitatorName(name string) string { return "facilitator/" + name }

// RPCNames are the names of a network's nodes as sources, in their order. A node is known by its host: the rest of its URL may hold a key. The second
// one at a host is told from the first by a number.
func RPCNames(network string, urls []string) []string {
	names, seen := make([]string, 0, len(urls)), map[string]int{}
	for _, text := range urls {
		host := "unknown"
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			host = strings.ToLower(u.Host)
		}
		name := "rpc/" + network + "/" + host
		seen[name]++
		if n := seen[name]; n > 1 {
			name = fmt.Sprintf("%s#%d", name, n)
		}
		names = append(names, name)
	}
	return names
}

// word is the name of a value of an enumeration. One that there is not is shown as a number.
func word(i int, words ...string) string {
	if 0 < i && i < len(words) {
		return words[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}
