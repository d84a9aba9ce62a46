package server

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/rs/zerolog"

	"market/internal/accesslog"
	"market/internal/call"
	"market/internal/config"
)

var update = flag.Bool("update", false, "write the tables of docs/ instead of comparing them")

const (
	outcomesFile   = "../../docs/outcomes.md"
	operationsFile = "../../docs/operations.md"
	deskFile       = "../../docs/facilitator.md"
)

func readDoc(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocs_TablesAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, name, table string }{
		{outcomesFile, "outcomes", outcomesTable()},
		{outcomesFile, "answers", answersTable()},
		{operationsFile, "environment", environmentTable(config.Describe())},
		{deskFile, "facilitator environment", environmentTable(config.DescribeDesk())},
	} {
		text := readDoc(t, tt.file)
		begin, end := "<!-- begin "+tt.name+": written by go test ./internal/server -run TestDocs -update -->\n", "<!-- end "+tt.name+" -->"
		before, rest, found := strings.Cut(text, begin)
		got, after, ended := strings.Cut(rest, end)
		switch {
		case !found || !ended:
			t.Errorf("%s has no part %q", tt.file, tt.name)
		case got == tt.table:
		case *update:
			if err := os.WriteFile(tt.file, []byte(before+begin+tt.table+end+after), 0o644); err != nil { //nolint:gosec // a document
				t.Fatal(err)
			}
		default:
			t.Errorf("%s, %s: the document has\n%s\nthe code says\n%s", tt.file, tt.name, got, tt.table)
		}
	}
}

// table writes rows for Markdown; the first is the head.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}

func outcomesTable() string {
	dash := strings.NewReplacer("none", "–", "increment", "**+1**", "clear", "**clear**")
	rows := [][]string{{"outcome", "reason", "party", "caller pays", "strikes", "cooldown", "status"}}
	rules, _ := New(Config{Cooldown: time.Minute}).ruleViews()
	for _, r := range rules {
		rows = append(rows, []string{string(r.Outcome), "`" + string(r.Reason) + "`", string(r.Party), r.CallerPays, dash.Replace(r.Strikes),
			dash.Replace(r.Cooldown), r.Status})
	}
	return table(rows)
}

func answersTable() string {
	rows := [][]string{{"reason", "party", "status"}}
	for _, r := range call.AnswerReasons() {
		rows = append(rows, []string{"`" + string(r) + "`", string(call.PartyOf(r)), statusText(r)})
	}
	return table(rows)
}

func environmentTable(variables []config.Variable) string {
	escape := strings.NewReplacer("|", `\|`, "<", `\<`)
	rows := [][]string{{"name", "default", "meaning"}}
	for _, v := range variables {
		given := v.Default
		if given == "" {
			given = "–"
		}
		rows = append(rows, []string{"`" + v.Name + "`", escape.Replace(given), escape.Replace(v.Meaning)})
	}
	return table(rows)
}

var explained = regexp.MustCompile("(?m)^- `([a-z0-9_]+)`: .")

func TestDocs_EveryReasonIsExplainedOnce(t *testing.T) {
	t.Parallel()
	var got []string
	for _, match := range explained.FindAllStringSubmatch(readDoc(t, outcomesFile), -1) {
		got = append(got, match[1])
	}
	want := words(call.Reasons())
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("explained and no reason, or twice: %q, not explained: %q", without(got, want), without(want, got))
	}
	for _, reason := range call.Reasons() {
		if meanings[reason] == "" || strings.ContainsAny(meanings[reason], "[]\n") || strings.Count(meanings[reason], "`")%2 != 0 {
			t.Errorf("the rules page cannot show what %s means: %q", reason, meanings[reason])
		}
	}
	if len(got) != len(slices.Compact(slices.Clone(got))) {
		t.Errorf("a reason is explained twice: %q", got)
	}
}

func TestDocs_EveryFieldOfTheLogLineIsExplained(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	e := echo.New()
	log := zerolog.New(&out).With().Timestamp().Logger()
	e.Use(accesslog.Requests(log, entryOf))
	ctx, leave := context.WithCancel(t.Context())
	e.GET("/", func(c echo.Context) error {
		leave()
		*logOf(c) = line{service: "s", call: call.NewID(), payer: "p", outcome: call.Failed, reason: call.Internal, err: context.Canceled}
		return nil
	})
	e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	var fields map[string]any
	if err := json.Unmarshal(out.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	text := readDoc(t, operationsFile)
	for name := range fields {
		if !strings.Contains(text, "\n| `"+name+"` | ") {
			t.Errorf("operations.md does not explain the field %s", name)
		}
	}
}

var jsonBlock = regexp.MustCompile("(?s)```json\n(.*?)```")

func TestDocs_TheFilesAreAccepted(t *testing.T) {
	t.Parallel()
	blocks := jsonBlock.FindAllStringSubmatch(readDoc(t, operationsFile), -1)
	if len(blocks) != 4 {
		t.Fatalf("operations.md shows %d files, want one of networks, one of plans and two of facilitators, the second with a guard", len(blocks))
	}
	for i, of := range blocks[2:] {
		folder := t.TempDir()
		for name, text := range map[string]string{"networks.json": blocks[0][1], "plans.json": blocks[1][1], "facilitators.json": of[1], "hosted.token": "token"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c, err := config.Load([]string{"MARKET_DEV=1", "MARKET_NETWORKS=" + filepath.Join(folder, "networks.json"),
			"MARKET_FACILITATORS=" + filepath.Join(folder, "facilitators.json"), "MARKET_PLANS=" + filepath.Join(folder, "plans.json"),
			"MARKET_TREASURY_KEY=" + strings.Repeat("1", 64), "MARKET_GAS_KEY=" + strings.Repeat("2", 64)})
		if err != nil || len(c.Networks) == 0 || len(c.Facilitators) != 2-i || len(c.Plans) != 2 || i == 1 && c.Facilitators[0].Source.Guard.Floor == 0 {
			t.Errorf("file %d of facilitators: %d networks, %d facilitators, %d plans: %v", i+1, len(c.Networks), len(c.Facilitators), len(c.Plans), err)
		}
	}
}
