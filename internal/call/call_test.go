package call_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"market/internal/call"
)

// declared returns the values of all constants of a type, as the source declares them: a constant that somebody forgets to put on its
// list is found here.
func declared(t *testing.T, typeName string) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, constants(t, parsed, typeName)...)
	}
	return values
}

func constants(t *testing.T, file *ast.File, typeName string) (values []string) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == typeName {
			for _, v := range spec.Values {
				text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, text)
			}
		}
		return true
	})
	return values
}

func listed[T ~string](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

func TestWords_EveryConstantIsOnItsList(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]string{
		"Outcome": listed(call.Outcomes()),
		"Party":   listed(call.Parties()),
		"Origin":  listed(call.Origins()),
		"Reason":  listed(call.Reasons()),
		"State":   listed(call.States()),
	} {
		want := declared(t, name)
		slices.Sort(want)
		slices.Sort(list)
		if len(want) == 0 || !slices.Equal(want, list) {
			t.Errorf("%s: the list has %q, the source declares %q", name, list, want)
		}
	}
}

func TestRows_AReasonThatEndsACallHasOneRow(t *testing.T) {
	t.Parallel()
	seen := map[call.Reason]bool{}
	for _, row := range call.Rows() {
		if seen[row.Reason] {
			t.Errorf("%s has two rows: its party could not be told from it", row.Reason)
		}
		seen[row.Reason] = true
		if !slices.Contains(call.Outcomes(), row.Outcome) || !slices.Contains(call.Parties(), row.Party) {
			t.Errorf("row %v has an outcome or a party that is none", row)
		}
	}
	for _, r := range call.AnswerReasons() {
		if seen[r] {
			t.Errorf("%s ends a call and is listed as one that does not", r)
		}
	}
}

func TestMoves_EveryStateIsFinalOrHasAnExit(t *testing.T) {
	t.Parallel()
	for _, s := range call.States() {
		exits := 0
		for _, m := range call.Moves() {
			if m.From == s {
				exits++
			}
		}
		switch {
		case s.Final() && exits > 0:
			t.Errorf("%s is final and has %d exits", s, exits)
		case !s.Final() && exits == 0:
			t.Errorf("%s is not final and has no exit", s)
		}
	}
}

func TestMoves_NoMoveTwiceAndEveryStateIsReached(t *testing.T) {
	t.Parallel()
	seen := map[call.Move]bool{}
	reached := map[call.State]bool{call.Settling: true}
	for _, m := range call.Moves() {
		if seen[m] {
			t.Errorf("move %v stands twice", m)
		}
		seen[m], reached[m.To] = true, true
	}
	for _, s := range call.States() {
		if !reached[s] {
			t.Errorf("nothing leads to %s", s)
		}
	}
}

func TestFinalState_EveryOutcomeHasOne(t *testing.T) {
	t.Parallel()
	for _, o := range call.Outcomes() {
		if s := call.FinalState(o); !s.Final() || !slices.Contains(call.States(), s) {
			t.Errorf("outcome %s ends in %q, which is no final state", o, s)
		}
	}
}
