// Package internal holds the rule of the import directions, as a test.
package internal

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers, from the bottom up. An import points down and never sideways.
var layers = [][]string{
	{"call", "money", "refusal", "config", "wire", "crash", "capacity", "pulse", "plan", "eip4361"},
	{"chain", "devnet", "postgres", "secretbox", "accesslog", "source", "jobs"},
	{"catalog", "payment", "strikes", "cooldown", "refund", "payout", "ledger", "readiness", "replica", "answer", "siwx", "audit", "outage", "notify", "letter", "identity", "switches", "reconcile"},
	{"facilitator", "upstream", "caller", "metrics"},
	{"delivery"},
	{"watch"},
	{"server", "desk"},
	{"app"},
}

// sideways lists the imports inside one layer that are meant, each with its reason.
var sideways = map[[2]string]string{
	{"refusal", "call"}:    "a refusal names its reason, and there is one list of reasons",
	{"crash", "call"}:      "there is a point before and after each move of the table, however many it gets",
	{"config", "crash"}:    "only a program that can be told to die takes the variable that tells it to",
	{"plan", "refusal"}:    "who meets a limit is told of the plan, by the one who knows the plans",
	{"plan", "call"}:       "a refusal names its reason, and there is one list of reasons",
	{"config", "plan"}:     "the operator's table is checked by the limits themselves: there is one list of them",
	{"source", "postgres"}: "all replicas together reserve, in the database",
}

// leaves may be imported by anything below cmd.
var leaves = []string{"migrations", "web", "contracts", "docs"}

// testOnly may be imported by tests and by cmd/demo, never by the product.
var testOnly = []string{"devnet", "postgres/pgtest", "app/apptest", "notify/notifytest"}

func layerOf(pkg string) int {
	top, _, _ := strings.Cut(pkg, "/")
	return slices.IndexFunc(layers, func(l []string) bool { return slices.Contains(l, top) })
}

// importsOf returns, by package, what its files import of this module. Tests count only where asked for.
func importsOf(t *testing.T, root string, tests bool) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || (strings.HasSuffix(file, "_test.go") && !tests) {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		out[pkg] = append(out[pkg], []string{}...)
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if strings.HasPrefix(name, "market/") {
				out[pkg] = append(out[pkg], strings.TrimPrefix(name, "market/"))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestImports_PointDownAndNeverSideways(t *testing.T) {
	t.Parallel()
	for pkg, imports := range importsOf(t, ".", false) {
		if pkg == "." {
			continue
		}
		from := layerOf(pkg)
		if from < 0 {
			t.Errorf("internal/%s stands in no layer", pkg)
			continue
		}
		for _, name := range imports {
			target, inside := strings.CutPrefix(name, "internal/")
			if !inside {
				if !slices.Contains(leaves, strings.Split(name, "/")[0]) {
					t.Errorf("internal/%s imports %s, which is neither internal nor a leaf", pkg, name)
				}
				continue
			}
			top := strings.Split(pkg, "/")[0]
			if strings.Split(target, "/")[0] == top {
				continue // inside one domain
			}
			if to := layerOf(target); to >= from && sideways[[2]string{top, target}] == "" {
				t.Errorf("internal/%s imports internal/%s: not down", pkg, target)
			}
		}
	}
}

func TestImports_TheProductHoldsNothingMadeForTests(t *testing.T) {
	t.Parallel()
	for root, of := range map[string]string{".": "internal", "../cmd/market": "cmd/market"} {
		for pkg, imports := range importsOf(t, root, false) {
			for _, name := range imports {
				target := strings.TrimPrefix(name, "internal/")
				if slices.Contains(testOnly, target) && !slices.ContainsFunc(testOnly, func(p string) bool { return strings.HasPrefix(pkg, p) }) {
					t.Errorf("%s imports %s", path.Join(of, pkg), name)
				}
			}
		}
	}
}
