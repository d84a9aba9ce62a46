package corpustest

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/corpus.md instead of comparing it")

// The page of all rows says what the rows say.
func TestDocs_ThePageIsThatOfTheTable(t *testing.T) {
	t.Parallel()
	sheet(numbered()).HoldPage(t, page(), *update)
}

// page is the table for people.
func page() string {
	var b strings.Builder
	rows := numbered()
	fmt.Fprintf(&b, `# What happens to calls, and what becomes of them

Each line is something that happens to a market, with what becomes of the last call in it, and what is left of it all. All %d are played by
`+"`make corpus`"+` and by every run of the tests, over HTTP, against the server as it is put together in production, with Postgres and a development
chain: what the caller gets, what the record of the call says, the open strikes and the rest of the service, whether it is still listed, and what the
chain has moved. A reason that a call can end with and that no line comes to fails the tests. What the words mean is in [outcomes.md](outcomes.md).

The service fails with 500 where a line says that it fails and not how. It rests for one minute after a failure; a call "after the rest" is made
61 seconds after the failure. Three strikes within 24 hours delist. Callers come from outside, each from an address of its own, and pay, unless the line
says otherwise. "caller gets" is the status of the last answer; – where the call came to its end when nobody was there to be told. Money is
that of all calls of the line. Numbers such as B87 are cases of public bug reports.

This page is written by `+"`go test ./internal/app/corpustest -run TestDocs -update`"+`.
`, len(rows))
	b.WriteString(sheet(rows).Markdown())
	return b.String()
}
