package hostiletest

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const docsFile = "../../../docs/hostile.md"

// The page of all rows says what the rows say.
func TestDocs_ThePageIsThatOfTheTable(t *testing.T) {
	t.Parallel()
	want := page()
	if *update {
		if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(docsFile)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the table says (%v): go test ./internal/app/hostiletest -run TestDocs -update", docsFile, err)
	}
}

// page is the table for people.
func page() string {
	var b strings.Builder
	rows := numbered()
	fmt.Fprintf(&b, `# What a hostile service can do to a call

Each line is something that a service does to a call that is paid for, and how that call ends. All %d are played by `+"`make hostile`"+` and by every run
of the tests: real payments on a development chain, through the server as it is put together in production, to a service on raw TCP, TLS, HTTP/2 and
DNS. Each line is held against what the caller gets, what the books and the chain say, how often the service was asked, and what the call did to
the service. What the words mean is in [outcomes.md](outcomes.md).

In every line: no header of the service reaches the caller but those that describe the body; the service is asked once a call; a caller that was not
served has all of its money back; and the memory of the server grows by less than %d MiB while twelve lines are played at once, whatever a service sends.
Numbers such as B93 are cases of public bug reports.

This page is written by `+"`go test ./internal/app/hostiletest -run TestDocs -update`"+`.
`, len(rows), heapMax>>20)
	title := ""
	for _, p := range rows {
		if p.title != title {
			title = p.title
			fmt.Fprintf(&b, "\n## %s\n\n| the service | %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)+1))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", p.name, strings.Join(p.want.cells(), " | "))
	}
	return b.String()
}

// Two rows of one name would hide each other.
func TestTable_NamesAreSentencesOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range numbered() {
		if seen[p.title+p.name] || strings.ContainsAny(p.name, "|`\n") {
			t.Errorf("the name %q stands twice, or breaks the page", p.name)
		}
		seen[p.title+p.name] = true
	}
	if n := len(seen); n < 60 {
		t.Errorf("%d rows are left", n)
	}
}
