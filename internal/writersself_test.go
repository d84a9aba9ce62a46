package internal

import (
	"strings"
	"testing"
)

// small is a program in which all is well: the least that the rule is about.
func small() map[string][]string {
	return map[string][]string{
		"internal/postgres": {"// postgres.go\npackage postgres\ntype DB interface{ Exec(ctx any, sql string, args ...any) error }"},
		"internal/strikes": {`// strikes.go
package strikes
import "market/internal/postgres"
type Policy struct{ Limit int }
type Store struct{ policy Policy }
func NewStore(p Policy) Store { return Store{p} }
const addSQL = "INSERT INTO strikes (id) VALUES ($1)"
func (Store) Add(db postgres.DB, id int) error { return db.Exec(nil, addSQL, id) }
func (s Store) Both(db postgres.DB) error { return s.Add(db, 1) }
func (Store) Count(db postgres.DB) error { return db.Exec(nil, "SELECT count(*) FROM strikes FOR UPDATE") }`},
		"internal/cooldown": {"// cooldown.go\npackage cooldown\nimport \"market/internal/postgres\"\ntype Store struct{}\n" +
			"func (Store) Start(db postgres.DB) error { return db.Exec(nil, \"insert into cooldowns values ($1)\") }"},
		"internal/catalog": {`// catalog.go
package catalog
import "market/internal/postgres"
type Actor string
type Cause string
const CauseStrikes Cause = "strikes"
const CauseRelisting Cause = "relisting"
func WhyNot(c Cause) error { return nil }
const ActorRecorder Actor = "recorder"
const ActorAdmin Actor = "admin"
type Author struct { Actor Actor }
var Recorder = Author{ActorRecorder}
type Store struct{}
func (Store) Move(db postgres.DB, by Author) error { return db.Exec(nil, "UPDATE services SET state = $1") }
func (s Store) Delist(db postgres.DB) error { return s.Move(db, Recorder) }`},
		"internal/delivery": {`// delivery.go
package delivery
import ("market/internal/catalog"; "market/internal/cooldown"; "market/internal/postgres"; "market/internal/strikes")
const recordSQL = "WITH a AS (INSERT INTO deliveries (id) VALUES ($1)) UPDATE strikes SET state = 'cleared'"
type Recorder struct { strikes strikes.Store; cooldown cooldown.Store; catalog catalog.Store }
func (r *Recorder) Record(db postgres.DB) {
	_ = db.Exec(nil, recordSQL, 1)
	_ = r.strikes.Add(db, 1)
	func() { _ = r.cooldown.Start(db) }()
	_ = r.catalog.Delist(db)
}
type Review struct{ strikes strikes.Store }
func NewReview() Review { return Review{strikes.NewStore(strikes.Policy{})} }
func (v Review) Void(db postgres.DB) { _ = v.strikes.Both(db) }
func (v Review) Relist() catalog.Cause { return catalog.CauseRelisting }`},
	}
}

// A test that nothing makes fail proves nothing: each of these is somebody who writes past the recorder.
func TestWriters_WhoeverWritesElsewhereIsFound(t *testing.T) {
	t.Parallel()
	if broken := load(t, small()).broken(); len(broken) > 0 {
		t.Fatalf("where all is well: %q", broken)
	}
	const head = "import (\"market/internal/catalog\"; \"market/internal/cooldown\"; \"market/internal/postgres\"; \"market/internal/strikes\")\n" +
		"var _ = catalog.Author{}\nvar _ cooldown.X\nvar _ strikes.Policy\nvar _ postgres.DB\n"
	for name, tt := range map[string]struct{ pkg, source, want string }{
		"a statement in the server":           {"internal/server", "func f(db postgres.DB) { db.Exec(`DELETE FROM strikes`) }", "writes strikes"},
		"in small letters, over lines":        {"internal/server", "func f(db postgres.DB) { db.Exec(\"delete\\n from\\n only strikes\") }", "writes strikes"},
		"with its schema, in quotes":          {"internal/server", "const s = `UPDATE \"public\".\"strikes\" SET x = 1`", "writes strikes"},
		"with a comment in between":           {"internal/server", "const s = `UPDATE /* why */ strikes SET x = 1`", "writes strikes"},
		"a merge":                             {"internal/server", "const s = `MERGE INTO cooldowns c USING x ON true`", "writes cooldowns"},
		"a truncation of several":             {"internal/server", "const s = `TRUNCATE answers, deliveries CASCADE`", "writes deliveries"},
		"a copy":                              {"internal/server", "const s = `COPY strike_deliveries FROM STDIN`", "writes strike_deliveries"},
		"a table that is dropped":             {"internal/server", "const s = `DROP TABLE IF EXISTS strikes`", "writes strikes"},
		"the driver's copy":                   {"internal/server", "func f(db any) { db.CopyFrom(nil) }", "copies into a table"},
		"in a command":                        {"cmd/market", "const s = `INSERT INTO delistings VALUES (1)`", "writes delistings"},
		"put together from parts":             {"internal/server", "const s = `UPD` + `ATE str` + `ikes SET x = 1`", "writes strikes"},
		"put together from constants":         {"internal/server", "const a = `UPDATE `\nconst b = `strikes`\nvar s = a + b + ` SET x = 1`", "writes strikes"},
		"a table that is put in later":        {"internal/server", "func f(t string) string { return `UPDATE ` + t + ` SET x = 1` }", "whose table is not written"},
		"a table that is formatted in":        {"internal/server", "func f(t string) string { return fmt.Sprintf(`DELETE FROM %s`, t) }", "whose table is not written"},
		"a state of a service":                {"internal/server", "const s = `UPDATE services SET state = 'listed'`", "writes services"},
		"a constant of another package":       {"internal/server", "func f(db postgres.DB) { db.Exec(strikes.AllSQL) }", "writes strikes"},
		"elsewhere in the flow":               {"internal/delivery", "func (p *Path) f(db postgres.DB) { db.Exec(recordSQL) }", "Path.f writes deliveries"},
		"the recorder's tables in the keeper": {"internal/strikes", "const s = `DELETE FROM deliveries`", "writes deliveries"},
		"a statement that is no constant":     {"internal/delivery", "var s = `DELETE FROM deliveries`", "is no constant"},
		"a call of a keeper's method":         {"internal/server", "func f(s *strikes.Store) { s.Add(nil, 1) }", "uses internal/strikes.Add"},
		"of one that calls such":              {"internal/server", "func f(x strikes.Both2) { x.S.Both(nil) }", "uses internal/strikes.Both"},
		"of a method as a value":              {"internal/delivery", "func f(s strikes.Store) any { return s.Add }", "uses internal/strikes.Add"},
		"from the flow's path":                {"internal/delivery", "func (p *Path) f(c cooldown.Store) { c.Start(nil) }", "uses internal/cooldown.Start"},
		"a keeper that is made elsewhere":     {"internal/app", "var adds interface{ Add() } = strikes.NewStore(strikes.Policy{})", "names internal/strikes.NewStore"},
		"a keeper that is held elsewhere":     {"internal/app", "type a struct{ c cooldown.Store }", "names internal/cooldown.Store"},
		"a delisting from elsewhere":          {"internal/server", "func f(s catalog.Store) { s.Delist(nil) }", "uses internal/catalog.Delist"},
		"through an interface":                {"internal/server", "type d interface{ Delist(postgres.DB) error }", "asks for Delist"},
		"a move in the recorder's name":       {"internal/server", "func f(s catalog.Store) { s.Move(nil, catalog.Recorder) }", "acts as the recorder"},
		"under its name spelled out":          {"internal/server", "func f(s catalog.Store) { s.Move(nil, catalog.Author{Actor: `recorder`}) }", "acts as the recorder"},
		"a move for strikes":                  {"internal/server", "var c = catalog.CauseStrikes", "names a move that strikes"},
		"a move for strikes, spelled out":     {"internal/server", "func f(c catalog.Cause) {}\nfunc g() { f(`strikes`) }", "names a move that strikes"},
		"from the flow, past its recorder":    {"internal/delivery", "func f(s catalog.Store) { s.Move(nil, catalog.Recorder) }", "acts as the recorder"},
		"a keeper behind an interface of the flow": {"internal/delivery",
			"type a interface{ Add(db postgres.DB, id int) error }\nfunc f(db postgres.DB) { var x a = strikes.Store{}; x.Add(db, 1) }", "names internal/strikes.Store"},
		"one that is made for it": {"internal/delivery",
			"type a interface{ Add(db postgres.DB, id int) error }\nfunc f(db postgres.DB) { var x a = strikes.NewStore(strikes.Policy{}); x.Add(db, 1) }", "names internal/strikes.NewStore"},
		"the recorder's own, taken out of it": {"internal/delivery",
			"type a interface{ Add(db postgres.DB, id int) error }\nfunc f(r *Recorder, db postgres.DB) { var x a = r.strikes; x.Add(db, 1) }", "holds a keeper"},
		"a keeper at the top of the flow":       {"internal/delivery", "var adds any = strikes.Store{}", "names internal/strikes.Store"},
		"a keeper in another type of the flow":  {"internal/delivery", "type path struct{ cooldown cooldown.Store }", "names internal/cooldown.Store"},
		"a keeper under another name":           {"internal/delivery", "type keeper = strikes.Store", "names internal/strikes.Store"},
		"small letters, and a table put in":     {"internal/delivery", "func f(db postgres.DB, t string) { db.Exec(nil, `update ` + t + ` set state = 'open'`) }", "is no constant"},
		"words that are joined":                 {"internal/delivery", "func f(db postgres.DB) { db.Exec(nil, strings.Join([]string{`INSERT INTO`, `strikes`, `VALUES (1)`}, ` `)) }", "is no constant"},
		"a statement that is handed in":         {"internal/catalog", "func f(db postgres.DB, sql string) { db.Exec(nil, sql) }", "is no constant"},
		"one that is queued":                    {"internal/delivery", "func f(b *pgx.Batch, sql string) { b.Queue(sql, `SELECT 1`) }", "is no constant"},
		"the way to the database, under a name": {"internal/delivery", "func f(db postgres.DB, sql string) { do := db.Exec; do(nil, sql) }", "out of sight"},
		"a relisting in the server":             {"internal/server", "func f(s catalog.Store) { s.Move2(nil, catalog.CauseRelisting) }", "names a relisting"},
		"a relisting by the recorder":           {"internal/delivery", "func (r *Recorder) f() { r.catalog.Move2(nil, catalog.CauseRelisting) }", "names a relisting"},
		"a relisting, spelled out":              {"internal/delivery", "func f() catalog.Cause { return `relisting` }", "names a relisting"},
	} {
		program := small()
		program["internal/strikes"] = append(program["internal/strikes"],
			"// more.go\npackage strikes\nconst AllSQL = `DELETE FROM strikes`\ntype Both2 struct{ S Store }")
		program[tt.pkg] = append(program[tt.pkg], "// bad.go\npackage "+tt.pkg[strings.LastIndex(tt.pkg, "/")+1:]+"\n"+headOf(tt.pkg, head)+tt.source)
		broken := load(t, program).broken()
		if len(broken) == 0 || !strings.Contains(strings.Join(broken, "\n"), tt.want) {
			t.Errorf("%s: found %q, want one that says %q", name, broken, tt.want)
		}
		for _, b := range broken {
			if !strings.HasPrefix(b, "bad.go:") {
				t.Errorf("%s: what is well is taken for broken: %s", name, b)
			}
		}
	}
}

// headOf leaves out what a package of the ground would import from above itself.
func headOf(pkg, head string) string {
	if pkg == "internal/strikes" {
		return ""
	}
	return head
}

// What only looks like a statement is none.
func TestWriters_WhoeverReadsOrSpeaksIsNot(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"a reading":             "const s = `SELECT * FROM strikes s JOIN deliveries d ON true`",
		"a lock":                "const s = `SELECT 1 FROM services WHERE id = $1 FOR NO KEY UPDATE`",
		"a lock of one table":   "const s = `SELECT 1 FROM strikes s FOR UPDATE OF s SKIP LOCKED`",
		"another table":         "const s = `UPDATE providers SET strikes = 1`",
		"prose":                 "const s = `an update of deliveries comes later; insert your coin`",
		"prose that ends so":    "const s = `this needs an update `",
		"a conflict":            "const s = `INSERT INTO providers VALUES (1) ON CONFLICT (id) DO UPDATE SET strikes = 1`",
		"a comment in SQL":      "const s = `SELECT 1 -- never DELETE FROM strikes`",
		"a policy":              "func f() strikes.Policy { return strikes.Policy{Limit: 3} }",
		"an admin's move":       "func f(s catalog.Store) { s.Move(nil, catalog.Author{catalog.ActorAdmin}) }",
		"a cause in words":      "func f(c catalog.Cause) bool { switch c { case catalog.CauseStrikes: return true }; return c == catalog.CauseStrikes }",
		"a table of causes":     "var w = map[catalog.Cause]string{catalog.CauseStrikes: `for its strikes`}",
		"the word in a view":    "var s = map[string]string{`actor`: `recorder`}",
		"an Add of another":     "func f(wg sync.WaitGroup) { wg.Add(1) }",
		"a Start of another":    "func f(a interface{ Start() }) { a.Start() }",
		"asking why not":        "func f() error { return catalog.WhyNot(catalog.CauseRelisting) }",
		"a query of an address": "func f(u *url.URL) any { return u.Query() }",
		"a field that is named": "type v struct{ Delist bool }",
	} {
		program := small()
		program["internal/server"] = []string{"// fine.go\npackage server\nimport (\"market/internal/catalog\"; \"market/internal/strikes\"; \"sync\")\n" + source}
		if broken := load(t, program).broken(); len(broken) > 0 {
			t.Errorf("%s: found %q", name, broken)
		}
	}
}
