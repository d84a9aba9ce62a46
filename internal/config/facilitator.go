package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Facilitator verifies and settles payments: our own engine, or somebody else's behind the standard x402 API.
type Facilitator struct {
	Name     string
	Kind     string   // KindLocal or KindRemote
	Networks []string // ids
	Proof    string   // ProofReceipt, or of a remote one ProofLater

	// Of a remote one:
	URL   string // without a slash at its end
	Token Secret // bearer token; empty: none
	CDP   CDPKey // signs a token for each request; zero: none
	// Source is how it runs out. Our own engine is no source: the nodes that it asks are.
	Source Source
}

// A CDPKey is an API key of the Coinbase Developer Platform.
type CDPKey struct {
	ID     string
	Secret Secret
}

// The kinds of facilitators.
const (
	KindLocal  = "local"
	KindRemote = "remote"
)

// When a settlement has to be proved by our own node: before the service is asked, or later, so that it is asked on the facilitator's word.
const (
	ProofReceipt = "receipt"
	ProofLater   = "later"
)

const facilitatorsMax = 32

type facilitatorsFile struct {
	Facilitators []facilitatorEntry `json:"facilitators"`
}

type facilitatorEntry struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Networks   []string `json:"networks"`
	Proof      string   `json:"proof"`
	URL        string   `json:"url"`
	TokenFile  string   `json:"token_file"`
	CDPKeyFile string   `json:"cdp_key_file"`

	sourceEntry
}

// localFor is what runs without a file: our own engine for everything.
func localFor(networks []Network) Facilitator {
	f := Facilitator{Name: "local", Kind: KindLocal, Proof: ProofReceipt}
	for _, n := range networks {
		f.Networks = append(f.Networks, n.ID)
	}
	return f
}

// For returns the facilitators of a network, in their order.
func (c Config) For(network string) []Facilitator {
	var of []Facilitator
	for _, f := range c.Facilitators {
		if slices.Contains(f.Networks, network) {
			of = append(of, f)
		}
	}
	return of
}

// SettlesItself says whether our own engine settles anywhere, and so whether there has to be a gas key.
func (c Config) SettlesItself() bool {
	return slices.ContainsFunc(c.Facilitators, func(f Facilitator) bool { return f.Kind == KindLocal })
}

// trusts says whether a service is asked anywhere on a facilitator's word.
func (c Config) trusts() bool {
	return slices.ContainsFunc(c.Facilitators, func(f Facilitator) bool { return f.Kind == KindRemote && f.Proof == ProofLater })
}

var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// readFacilitators checks the file against the networks that are known. Where those could not be read, their own error is the one to
// mend first.
func readFacilitators(path string, networks []Network, dev bool) ([]Facilitator, []error) {
	var file facilitatorsFile
	if err := readJSON(path, &file); err != nil {
		return nil, []error{err}
	}
	if n := len(file.Facilitators); n < 1 || n > facilitatorsMax {
		return nil, []error{fmt.Errorf("facilitators: got %d, expected 1 to %d", n, facilitatorsMax)}
	}
	known := map[string]bool{}
	for _, n := range networks {
		known[n.ID] = true
	}
	r := report{}
	var facilitators []Facilitator
	names, covered, local := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, e := range file.Facilitators {
		r.at = fmt.Sprintf("facilitators[%d]", i)
		f := r.facilitator(e, filepath.Dir(path), dev)
		r.check("name", !names[e.Name], e.Name, "a name that is not taken")
		for j, id := range e.Networks {
			member := fmt.Sprintf("networks[%d]", j)
			r.check(member, len(known) == 0 || known[id], id, "the id of a network in MARKET_NETWORKS")
			r.check(member, e.Kind != KindLocal || !local[id], id, "a network that no other local facilitator has")
			covered[id], local[id] = true, local[id] || e.Kind == KindLocal
		}
		names[e.Name] = true
		facilitators = append(facilitators, f)
	}
	for _, n := range networks {
		if !covered[n.ID] {
			r.errs = append(r.errs, fmt.Errorf("no facilitator for network %s", n.ID))
		}
	}
	return facilitators, r.errs
}

// facilitator checks one entry by itself. Paths in it start at the folder of the file.
func (r *report) facilitator(e facilitatorEntry, folder string, dev bool) Facilitator {
	f := Facilitator{Name: e.Name, Kind: e.Kind, Networks: e.Networks, Proof: e.Proof}
	r.check("name", nameForm.MatchString(e.Name), e.Name, "lower-case letters, digits and dashes")
	r.check("kind", e.Kind == KindLocal || e.Kind == KindRemote, e.Kind, "local or remote")
	r.check("networks", len(e.Networks) > 0, len(e.Networks), "at least one")
	if e.Kind == KindLocal {
		r.check("proof", e.Proof == ProofReceipt, e.Proof, "receipt: our own engine has the proof when it answers")
	} else {
		r.check("proof", e.Proof == ProofReceipt || e.Proof == ProofLater, e.Proof, "receipt or later")
	}
	if e.Kind == KindRemote {
		r.remote(e, &f, folder, dev)
		f.Source = r.source(e.sourceEntry)
		if floor := f.Source.Guard.Floor; floor > 0 {
			r.check("guard.floor", floor >= settlesFloorMin, floor, fmt.Sprintf("at least %d units a day: a call sets two aside, for its payment and its refund, "+
				"and only the last tenth of a day's units is kept for the refunds that wait", settlesFloorMin))
		}
		return f
	}
	if e.URL != "" || e.TokenFile != "" || e.CDPKeyFile != "" {
		r.say("kind", "a local facilitator has no url, token_file or cdp_key_file")
	}
	if e.given() {
		r.say("kind", "a local facilitator does not run out: a guard and what belongs to it are for remote ones and for the nodes of a network")
	}
	return f
}

func (r *report) say(member, text string) {
	r.errs = append(r.errs, fmt.Errorf("%s.%s: %s", r.at, member, text))
}

func (r *report) remote(e facilitatorEntry, f *Facilitator, folder string, dev bool) {
	u, err := url.Parse(e.URL)
	good := err == nil && isWeb(u) && u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && (u.Scheme == "https" || dev)
	if !good {
		// Its text is not repeated: some operators have a key in the path.
		r.say("url", "expected an https URL without user, query or fragment (http in development)")
	}
	f.URL = strings.TrimRight(e.URL, "/")
	if e.TokenFile != "" && e.CDPKeyFile != "" {
		r.say("cdp_key_file", "set beside token_file: one of the two")
		return
	}
	if e.TokenFile != "" {
		text, err := readSecret(within(folder, e.TokenFile))
		token := strings.TrimSpace(text)
		if err == nil && !tokenForm.MatchString(token) {
			err = errors.New("expected one line of printable characters without spaces")
		}
		r.fileError("token_file", err)
		f.Token = NewSecret(token)
	}
	if e.CDPKeyFile != "" {
		f.CDP, err = readCDPKey(within(folder, e.CDPKeyFile))
		r.fileError("cdp_key_file", err)
	}
}

func (r *report) fileError(member string, err error) {
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s.%s: %w", r.at, member, err))
	}
}

func within(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
