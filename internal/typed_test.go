package internal

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is what import paths of ours begin with.
const module = "market/"

// A program is Go source with the types of its own packages. What it imports from elsewhere is taken as unknown: what is asked here is which of our own
// constants and methods are used where, and that needs no compiler and no build cache.
type program struct {
	fset     *token.FileSet
	packages map[string]*checked // by path without the module: "internal/strikes"
}

// A checked package is one of ours.
type checked struct {
	path  string
	files []*ast.File
	types *types.Package
	info  *types.Info
	begun bool
}

// load parses and checks sources by package path. Files for other systems and other build tags are taken in as well: a redeclaration is no reason not
// to look at both.
func load(t *testing.T, sources map[string][]string) *program {
	t.Helper()
	p := &program{fset: token.NewFileSet(), packages: map[string]*checked{}}
	for pkg, files := range sources {
		c := &checked{path: pkg, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
		for _, text := range files {
			name, source, _ := strings.Cut(text, "\n")
			file, err := parser.ParseFile(p.fset, strings.TrimPrefix(name, "// "), source, 0)
			if err != nil {
				t.Fatal(err)
			}
			c.files = append(c.files, file)
		}
		p.packages[pkg] = c
	}
	for _, pkg := range slices.Sorted(maps.Keys(p.packages)) {
		if _, err := p.Import(module + pkg); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// Import is for the type checker.
func (p *program) Import(name string) (*types.Package, error) {
	c, ours := p.packages[strings.TrimPrefix(name, module)]
	if !ours || !strings.HasPrefix(name, module) {
		unknown := types.NewPackage(name, path.Base(name))
		unknown.MarkComplete()
		return unknown, nil
	}
	if c.types == nil {
		if c.begun {
			return nil, errors.New("import cycle at " + name)
		}
		c.begun = true
		config := types.Config{Importer: p, Error: func(error) {}, FakeImportC: true}
		c.types, _ = config.Check(name, p.fset, c.files, c.info) // whatever comes from elsewhere is unknown, and an error each
	}
	return c.types, nil
}

// product reads the sources of all our programs: without tests, and without what only tests are built from.
func product(t *testing.T) map[string][]string {
	t.Helper()
	sources := map[string][]string{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(filepath.ToSlash(file), "../"))
		if d.IsDir() {
			if d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "testdata" || slices.Contains(testOnly, strings.TrimPrefix(name, "internal/")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		sources[path.Dir(name)] = append(sources[path.Dir(name)], "// "+name+"\n"+string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sources
}
