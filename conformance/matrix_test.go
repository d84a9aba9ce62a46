package conformance

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

//go:embed cases.json
var casesJSON []byte

// A kase is one line of cases.json: a piece of official software in a role, what is done with it, and what has to come of it.
type kase struct{ Role, Peer, Scenario, Expect string }

// row is whom it belongs to in the table.
func (k kase) row() string { return k.Role + " " + k.Peer }

// A bench is a peer with everything that it is tried on: what is done, by the name of the scenario.
type bench map[string]func(t *testing.T)

// roles set up a peer.
var roles = map[string]func(t *testing.T, peer string) bench{
	"caller": newCaller,
	"seller": newSeller,
	"token":  newToken,

	"facilitator":           newFacilitator(2),
	"facilitator, v1 kinds": newFacilitator(1),
}

// Every case of cases.json has to pass. What is not installed, what does not run and what cases.json does not name fail too.
func TestMatrix(t *testing.T) {
	t.Parallel()
	var cases []kase
	if err := json.Unmarshal(casesJSON, &cases); err != nil {
		t.Fatal(err)
	}
	result := results{of: map[kase]bool{}}
	var rows []string
	byRow := map[string][]kase{}
	for _, k := range cases {
		if byRow[k.row()] == nil {
			rows = append(rows, k.row())
		}
		byRow[k.row()] = append(byRow[k.row()], k)
	}
	for role := range roles {
		if !slices.ContainsFunc(cases, func(k kase) bool { return k.Role == role }) {
			t.Errorf("cases.json names nobody in the role of a %s", role)
		}
	}
	t.Run("of", func(t *testing.T) {
		for _, row := range rows {
			t.Run(row, func(t *testing.T) {
				t.Parallel()
				try(t, byRow[row], &result)
			})
		}
	})
	passed := result.print(cases, rows)
	if passed != len(cases) {
		t.Errorf("%d cases passed, and cases.json names %d", passed, len(cases))
	}
}

// try runs the cases of one peer.
func try(t *testing.T, cases []kase, result *results) {
	t.Helper()
	role := roles[cases[0].Role]
	if role == nil {
		t.Fatalf("nobody knows how to try a %s", cases[0].Role)
	}
	installed(t, cases[0].Peer)
	b := role(t, cases[0].Peer)
	for _, k := range cases {
		run := b[k.Scenario]
		delete(b, k.Scenario) // a case that is named twice finds none
		t.Run(k.Scenario, func(t *testing.T) {
			t.Parallel()
			defer func() { result.ended(k, !t.Failed()) }()
			if run == nil {
				t.Fatal("nobody knows this scenario, or it was named before")
			}
			run(t)
		})
	}
	for scenario := range b {
		t.Errorf("cases.json does not name the scenario %q", scenario)
	}
}

// installed makes sure that the peer is what it says it is: the package of that version.
func installed(t *testing.T, peer string) {
	t.Helper()
	name, version, _ := strings.Cut(peer, " ")
	for _, folder := range []string{".", "v1"} {
		raw, err := os.ReadFile(filepath.Join(folder, "node_modules", name, "package.json"))
		if err != nil {
			continue
		}
		var manifest struct{ Version string }
		if err := json.Unmarshal(raw, &manifest); err != nil || manifest.Version != version {
			t.Fatalf("%s is installed in version %s (%v), want %s", name, manifest.Version, err, version)
		}
		return
	}
	t.Fatalf("%s is not installed: run scripts/setup test", name)
}

// results are what became of the cases.
type results struct {
	mu sync.Mutex
	of map[kase]bool
}

func (r *results) ended(k kase, passed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[k] = passed
}

func (r *results) cell(k kase) string {
	switch passed, ran := r.of[k]; {
	case passed:
		return "pass"
	case ran:
		return "FAIL"
	}
	return "not run"
}

// print prints the table, and what was expected of each case that has not passed. It returns how many have.
func (r *results) print(cases []kase, rows []string) (passed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var (
		columns []string
		cells   = map[[2]string]string{}
		text    strings.Builder
	)
	for _, k := range cases {
		if !slices.Contains(columns, k.Scenario) {
			columns = append(columns, k.Scenario)
		}
		cells[[2]string{k.row(), k.Scenario}] = r.cell(k)
		if r.of[k] {
			passed++
		}
	}
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t"+strings.Join(columns, "\t"))
	for _, row := range rows {
		line := []string{row}
		for _, column := range columns {
			cell := cells[[2]string{row, column}]
			if cell == "" {
				cell = "-"
			}
			line = append(line, cell)
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	_ = w.Flush()
	for _, k := range cases {
		if ok, ran := r.of[k]; ran && !ok {
			fmt.Fprintf(&text, "FAIL %s, %s: want %s\n", k.row(), k.Scenario, k.Expect)
		}
	}
	if unrun := len(cases) - len(r.of); unrun > 0 {
		fmt.Fprintf(&text, "%d did not run, which counts as failed\n", unrun)
	}
	fmt.Fprintf(&text, "%d passed, %d failed\n", passed, len(cases)-passed)
	fmt.Print(text.String())
	return passed
}
