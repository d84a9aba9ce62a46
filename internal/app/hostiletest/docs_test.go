package hostiletest

import (
	"fmt"
	"strings"
	"testing"
)

// The page of all rows says what the rows say.
func TestDocs_ThePageIsThatOfTheTable(t *testing.T) {
	t.Parallel()
	sheet(numbered()).HoldPage(t, page(), *update)
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
	b.WriteString(sheet(rows).Markdown())
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
