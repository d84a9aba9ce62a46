package replaytest

import (
	"flag"
	"strings"
	"testing"

	"market/internal/app/apptest"
)

var update = flag.Bool("update", false, "write docs/replay.md instead of comparing it")

// The page of the incidents says what the rows say.
func TestDocs_ThePageIsThatOfTheIncidents(t *testing.T) {
	t.Parallel()
	sheet := apptest.Sheet{Of: "replay", First: "incident", Columns: []string{"what came of it then", "what comes of it here"}}
	for _, i := range incidents() {
		sheet.Lines = append(sheet.Lines, apptest.Line{Title: i.title, Name: i.name, Cells: []string{i.then, i.now}})
	}
	sheet.HoldPage(t, strings.TrimLeft(heading+sheet.Markdown(), "\n"), *update)
}

const heading = `
# Incidents, played again

What went wrong elsewhere, and led to this program. ` + "`make replay`" + ` plays each of them against the server as it is put together in production, with
Postgres, a development chain and a facilitator of somebody else; hours and days pass by moving the clock of the database, and by nothing else. Every run
of the tests plays them too, with fewer requests.

This page is written by ` + "`go test ./internal/app/replaytest -run TestDocs -update`" + `.
`
