package notify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declared returns the kinds that the files of this package declare.
func declared(t *testing.T) []Kind {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []Kind
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if of, named := spec.Type.(*ast.Ident); !named || of.Name != "Kind" || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: a kind that is no literal", file)
				return true
			}
			word, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Error(err)
			}
			kinds = append(kinds, Kind(word))
			return true
		})
	}
	return kinds
}

func TestKinds_AreAllThatAreDeclared(t *testing.T) {
	t.Parallel()
	all, found := Kinds(), declared(t)
	for _, kind := range found {
		if !slices.Contains(all, kind) {
			t.Errorf("%s is not among Kinds", kind)
		}
	}
	slices.Sort(all)
	if len(found) != len(all) || len(slices.Compact(all)) != len(found) {
		t.Errorf("%d kinds are declared, and %d are listed", len(found), len(all))
	}
}

// An operator who is told something can look up what it means, and when it is over.
func TestKinds_AreExplainedInTheOperationsManual(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(manual), "## What you are told\n")
	if !found {
		t.Fatal("the manual has no section of what the operator is told")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var explained []Kind
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		kind, isRow := strings.CutPrefix(cells[0], "| `")
		if !isRow {
			continue
		}
		kind = strings.TrimSuffix(kind, "`")
		explained = append(explained, Kind(kind))
		if len(cells) != 4 {
			t.Errorf("the row of %s has %d cells, want its kind, its subject, when it is raised and when it is over", kind, len(cells))
		}
	}
	want := Kinds()
	slices.Sort(want)
	slices.Sort(explained)
	if !slices.Equal(explained, want) {
		t.Errorf("the manual explains %v, want %v", explained, want)
	}
}
