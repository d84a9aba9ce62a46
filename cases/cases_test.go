// Package cases holds the list of public bug reports that we turn into tests, and says which of them have one. A test that covers a case
// has its number in its name or its comment.
package cases

import (
	_ "embed"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

//go:embed cases.tsv
var list string

// groups are what the letters mean. In a finished one every case is covered, or excepted with a reason.
var groups = []struct {
	letter, name string
	finished     bool
}{
	{"H", "header decoding", true},
	{"M", "requirement matching", true},
	{"S", "signature", true},
	{"T", "time", true},
	{"V", "value", true},
	{"R", "replay and race", true},
	{"X", "settlement", true},
	{"P", "proxying", true},
	{"N", "provider URLs", true},
	{"F", "refunds", true},
	{"O", "payouts", true},
	{"C", "discovery, catalog, strikes", true},
	{"W", "web and CORS", true},
	{"A", "admin", true},
	{"J", "jobs and webhooks", false},
}

type entry struct{ number, group, title, excepted string }

func entries(t *testing.T) []entry {
	t.Helper()
	var all []entry
	for line := range strings.Lines(list) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := append(strings.Split(line, "\t"), "")
		if len(columns) < 4 {
			t.Fatalf("line of %d columns: %q", len(columns), line)
		}
		all = append(all, entry{columns[0], columns[1], columns[2], columns[3]})
	}
	return all
}

var numberForm = regexp.MustCompile(`\bB[0-9]{2,3}\b`)

// covered returns, by number, the test files that name a case.
func covered(t *testing.T) map[string][]string {
	t.Helper()
	files := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == "cases" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, number := range numberForm.FindAllString(string(text), -1) {
			if name := strings.TrimPrefix(filepath.ToSlash(path), "../"); !slices.Contains(files[number], name) {
				files[number] = append(files[number], name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestCases_EveryCaseOfAFinishedGroupIsCoveredOrExcepted(t *testing.T) {
	t.Parallel()
	files := covered(t)
	all := entries(t)
	var known []string
	passed, failed := 0, 0
	for _, g := range groups {
		for _, e := range all {
			if e.group != g.letter {
				continue
			}
			known = append(known, e.number)
			state := "covered   " + strings.Join(files[e.number], ", ")
			switch {
			case len(files[e.number]) > 0:
				passed++
			case e.excepted != "":
				state = "excepted  " + e.excepted
				passed++
			case g.finished:
				state = "MISSING"
				failed++
				t.Errorf("%s (%s) has no test: %s", e.number, g.name, e.title)
			default:
				state = "open"
			}
			t.Logf("%s  %-4s %-60.60s %s", g.letter, e.number, e.title, state)
		}
	}
	if len(known) != len(all) {
		t.Errorf("%d cases are listed, %d stand in a group that is known", len(all), len(known))
	}
	for number := range files {
		if !slices.Contains(known, number) {
			t.Errorf("%v name case %s, which is not listed", files[number], number)
		}
	}
	t.Logf("%d passed, %d failed", passed, failed)
}
