package internal

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	bodyForm    = regexp.MustCompile(`(?s)\$(\w*)\$.*?\$(\w*)\$`)
	alterForm   = regexp.MustCompile(`(?i)\b(?:ALTER|DROP)\s+TABLE\b`)
	dynamicForm = regexp.MustCompile(`(?i)\bEXECUTE\s`)
	calledForm  = regexp.MustCompile(`(?i)\bEXECUTE\s+(?:FUNCTION|PROCEDURE)\b`)
	ruleForm    = regexp.MustCompile(`(?i)\bCREATE\s+(?:OR\s+REPLACE\s+)?RULE\b`)
	cascadeForm = regexp.MustCompile(`(?i)\bON\s+(?:DELETE|UPDATE)\s+(?:CASCADE|SET)\b`)
	triggerForm = regexp.MustCompile(`(?is)\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:CONSTRAINT\s+)?TRIGGER\s+(\w+).*?\bON\s+(?:public\.)?"?(\w+)`)
)

// quietTriggers are those on the tables of evidence, and why each writes nothing.
var quietTriggers = map[string]string{
	"cooldowns_changed":            "tells the replicas to read the cooldowns again",
	"delistings_only_added":        "refuses",
	"strike_deliveries_only_added": "refuses",
	"deliveries_kept":              "refuses",
	"deliveries_posted":            "posts what the call moved to the books, which no delisting rests on",
}

// brokenBy returns what of a migration would write evidence, when it is applied or from then on: a database that writes by itself is one more writer.
func brokenBy(migration string) []string {
	var out []string
	text := sqlComment.ReplaceAllString(migration, " ")
	for _, body := range bodyForm.FindAllString(text, -1) {
		for _, table := range tablesOf(body) {
			if slices.Contains(evidence, table) {
				out = append(out, "a function writes "+table)
			}
		}
		if dynamicForm.MatchString(calledForm.ReplaceAllString(body, " ")) {
			out = append(out, "a function runs a statement that nobody sees")
		}
	}
	for _, m := range triggerForm.FindAllStringSubmatch(text, -1) {
		if slices.Contains(evidence, strings.ToLower(m[2])) && quietTriggers[m[1]] == "" {
			out = append(out, fmt.Sprintf("trigger %s on %s", m[1], m[2]))
		}
	}
	top := alterForm.ReplaceAllString(bodyForm.ReplaceAllString(text, " "), " ")
	for _, table := range tablesOf(top) {
		if slices.Contains(evidence, table) {
			out = append(out, "the migration itself writes "+table)
		}
	}
	if ruleForm.MatchString(text) {
		out = append(out, "a rule rewrites statements")
	}
	if cascadeForm.MatchString(text) {
		out = append(out, "a foreign key changes rows by itself")
	}
	return out
}

func TestMigrations_TheDatabaseWritesNoEvidenceByItself(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../migrations/*.sql")
	if err != nil || len(files) < 16 {
		t.Fatalf("%d migrations: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, broken := range brokenBy(string(text)) {
			t.Errorf("%s: %s", filepath.Base(file), broken)
		}
	}
	// What is run as SQL from anywhere else would pass by this and by the test of the programs.
	err = filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "migrations"):
			return filepath.SkipDir
		case strings.EqualFold(filepath.Ext(file), ".sql"):
			t.Errorf("%s is SQL outside the migrations", file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMigrations_WhatWritesEvidenceByItselfIsFound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ sql, want string }{
		"a function of a trigger":       {"CREATE FUNCTION f() RETURNS trigger AS $$ BEGIN UPDATE strikes SET state = 'open'; END $$", "a function writes strikes"},
		"with a tag, in small letters":  {"create function f() returns void as $f$ begin delete from only public.deliveries; end $f$", "a function writes deliveries"},
		"a statement that is put later": {"CREATE FUNCTION f() RETURNS void AS $$ BEGIN EXECUTE format('x %s', y); END $$", "that nobody sees"},
		"a trigger that nobody knows":   {"CREATE TRIGGER clears BEFORE INSERT ON strikes FOR EACH ROW EXECUTE FUNCTION f()", "trigger clears on strikes"},
		"a statement of the migration":  {"DELETE FROM cooldowns WHERE until < now();", "itself writes cooldowns"},
		"a rule":                        {"CREATE RULE r AS ON INSERT TO calls DO ALSO SELECT 1", "a rule"},
		"a cascade":                     {"ALTER TABLE x ADD FOREIGN KEY (a) REFERENCES y ON DELETE CASCADE", "a foreign key"},
	} {
		if got := brokenBy(tt.sql); !strings.Contains(strings.Join(got, "\n"), tt.want) {
			t.Errorf("%s: found %q, want one that says %q", name, got, tt.want)
		}
	}
	for name, sql := range map[string]string{
		"a new column":              "ALTER TABLE strikes ADD COLUMN x int NOT NULL DEFAULT 0;",
		"a known trigger":           "CREATE TRIGGER cooldowns_changed AFTER INSERT OR UPDATE OR DELETE ON cooldowns FOR EACH STATEMENT EXECUTE FUNCTION notify_changed('cooldowns')",
		"a function of other rows":  "CREATE FUNCTION f() RETURNS trigger AS $$ BEGIN INSERT INTO service_events (id) SELECT 1 FROM strikes; RETURN NULL; END $$",
		"a comment":                 "-- nobody may UPDATE strikes here\nSELECT 1;",
		"a trigger on other tables": "CREATE TRIGGER t BEFORE UPDATE ON services FOR EACH ROW EXECUTE FUNCTION f()",
	} {
		if got := brokenBy(sql); len(got) > 0 {
			t.Errorf("%s: found %q", name, got)
		}
	}
}
