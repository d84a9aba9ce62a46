package apptest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"
)

// A Sheet is a table of rows that tests play, as people read it: on a page of the docs, and printed with what the rows came to.
type Sheet struct {
	Of      string // whose table it is: docs/<of>.md is its page, and internal/app/<of>test plays it
	First   string // the head of the first column
	Columns []string
	Lines   []Line // in the order of the Tally
}

// A Line is one row of a Sheet; lines of one title follow each other.
type Line struct {
	Title, Name string
	Cells       []string
}

// Markdown is the table as a page has it.
func (s Sheet) Markdown() string {
	var (
		b     strings.Builder
		title string
	)
	for _, l := range s.Lines {
		if l.Title != title {
			title = l.Title
			fmt.Fprintf(&b, "\n## %s\n\n| %s | %s |\n|%s\n", title, s.First, strings.Join(s.Columns, " | "), strings.Repeat("---|", len(s.Columns)+1))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", l.Name, strings.Join(l.Cells, " | "))
	}
	return b.String()
}

// Text is the table of what was played, which says of a row that came out otherwise what was wanted.
func (s Sheet) Text(tally *Tally) string {
	var (
		b     strings.Builder
		title string
	)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, l := range s.Lines {
		if tally.At(i) == Unrun {
			continue
		}
		if l.Title != title {
			title = l.Title
			fmt.Fprintf(w, "\n%s\n\t%s\n", title, strings.Join(s.Columns, "\t"))
		}
		line := strings.Join(l.Cells, "\t")
		if tally.At(i) == Otherwise {
			line = "FAILED, want " + line
		}
		fmt.Fprintf(w, "%s\t%s\n", l.Name, line)
	}
	_ = w.Flush() // into memory
	return b.String()
}

// HoldPage holds the file of the page against what it should say, or writes it.
func (s Sheet) HoldPage(t testing.TB, want string, update bool) {
	t.Helper()
	file := "../../../docs/" + s.Of + ".md"
	if update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file) //nolint:gosec // one of two documents
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the table says (%v): go test ./internal/app/%stest -run TestDocs -update", file, err, s.Of)
	}
}
