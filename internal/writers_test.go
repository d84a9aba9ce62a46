package internal

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
)

// owners are the packages whose statements may change a table. What is in no list here belongs to the package that its migration was made for.
var owners = map[string][]string{
	"deliveries":         {"delivery"},
	"strikes":            {"strikes", "delivery"},
	"strike_deliveries":  {"strikes", "delivery"},
	"delistings":         {"delivery"},
	"cooldowns":          {"cooldown", "delivery"},
	"services":           {"catalog"},
	"service_events":     {}, // the database writes them itself
	"service_moves":      {}, // migrations do
	"refusal_counts":     {"delivery"},
	"trial_days":         {"delivery"},
	"trial_networks":     {"delivery"},
	"trial_wallets":      {"delivery"},
	"calls":              {"delivery", "payment"},
	"refunds":            {"refund", "delivery"},
	"replicas":           {"replica"},
	"refund_signatures":  {"refund"},
	"answers":            {"answer", "delivery"},
	"siwx_nonces":        {"siwx"},
	"facilitator_rates":  {"desk"},
	"facilitator_sales":  {"desk"},
	"facilitator_undone": {"desk"},
	"audit":              {"audit"},
	"appeals":            {"delivery"},
	"notices":            {"notify"},
	"notice_messages":    {"notify"},
	"notice_channels":    {"notify"},
	"service_probes":     {"delivery"},
	"outages":            {"outage"},
	"source_days":        {"source"},
	"source_state":       {"source"},
	"switches":           {"switches"},

	"provider_notices":       {"letter"},
	"provider_deliveries":    {"letter"},
	"service_notice_secrets": {"catalog"},

	"ledger_entries":      {"ledger"},
	"ledger_transactions": {}, // the database posts them itself
	"ledger_postings":     {},
	"ledger_balances":     {"ledger"},
	"ledger_folded":       {"ledger"},

	"wallets":          {"reconcile"},
	"wallet_transfers": {"reconcile"},
	"suspicions":       {"reconcile"},
	"differences":      {"reconcile"},
	"reconcilings":     {"reconcile"},

	"payouts":           {"payout"},
	"payout_items":      {"payout"},
	"payout_signatures": {"payout"},
	"payout_addresses":  {"payout"},

	"accounts":          {"identity"},
	"account_addresses": {"identity"},
	"sessions":          {"identity"},
	"api_keys":          {"identity"},
	"sign_ins":          {"identity"},
	"admins":            {"identity"},
}

// evidence are the tables on which a delisting rests. Within package delivery too, only two types write them.
var evidence = []string{"deliveries", "strikes", "strike_deliveries", "delistings", "cooldowns"}

// keepers are the domain packages that hold statements over evidence. Their stores are for package delivery alone.
var keepers = []string{"internal/strikes", "internal/cooldown"}

const (
	flow    = "internal/delivery"
	shelves = "internal/catalog"
)

// strikeCauses are those of the moves that strikes make, and the review of them.
var strikeCauses = []string{"strikes", "void", "void_suspended", "void_held"}

// writes says whether a place may write evidence: a method of delivery.Recorder, for calls, or of delivery.Review, for admins.
func (in place) writes() bool {
	receiver, _, _ := strings.Cut(in.function, ".")
	return in.pkg == flow && (receiver == "Recorder" || receiver == "Review")
}

// holds says whether a place may have a keeper in its hands. Whoever has one can call it by an interface of its own, where nobody sees what is written.
func (in place) holds() bool {
	if in.pkg != flow {
		return slices.Contains(keepers, in.pkg)
	}
	if in.function == "" {
		return in.declares == "Recorder" || in.declares == "Review"
	}
	return in.writes() || in.function == "NewRecorder" || in.function == "NewReview"
}

// asked are the packages whose statements are constants, so that what they write can be read: those that hold evidence, and the shelves.
var asked = append([]string{flow, shelves}, keepers...)

// sqlOf is the statement of a call that asks a database something; nil where a call does not.
func sqlOf(call *ast.CallExpr) ast.Expr {
	name, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	switch name.Sel.Name {
	case "Queue":
		return call.Args[0]
	case "Exec", "Query", "QueryRow":
		if _, receives := call.Args[0].(*ast.FuncLit); receives {
			return nil // what becomes of a statement that was queued
		}
		return call.Args[min(1, len(call.Args)-1)] // after the context
	case "Prepare":
		return call.Args[len(call.Args)-1]
	}
	return nil
}

// broken returns what in a program is against the rule that only delivery's Recorder and Review write evidence, and that every table has its owners.
func (p *program) broken() []string {
	var out []string
	complain := func(in place, format string, args ...any) {
		at := p.fset.Position(in.at)
		out = append(out, fmt.Sprintf("%s:%d: %s: %s", at.Filename, at.Line, in.pkg, fmt.Sprintf(format, args...)))
	}
	writers := p.writers()
	delists := map[string]bool{} // names of the catalog's methods that strikes alone may lead to
	for object := range writers {
		if object.Pkg().Path() == module+shelves {
			delists[object.Name()] = true
		}
	}
	for _, c := range p.packages {
		for _, change := range p.changes(c) {
			owned, known := owners[change.table]
			switch {
			case change.table == someTable:
				complain(change.place, "a statement whose table is not written in it")
			case known && !slices.Contains(owned, strings.TrimPrefix(c.path, "internal/")):
				complain(change.place, "writes %s, which belongs to %v", change.table, owned)
			case slices.Contains(evidence, change.table) && change.function == "" && !change.constant:
				complain(change.place, "a statement that writes %s and is no constant", change.table)
			case slices.Contains(evidence, change.table) && c.path == flow && change.function != "" && !change.writes():
				complain(change.place, "%s writes %s; Recorder and Review do", change.function, change.table)
			}
		}
		compared, called := map[ast.Node]bool{}, map[ast.Node]bool{}
		p.walk(c, func(in place, n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				called[n.Fun] = true
				if sql := sqlOf(n); sql != nil && slices.Contains(asked, c.path) {
					if _, constant := c.textOf(sql); !constant {
						complain(in, "a statement that is no constant")
					}
				}
			case *ast.SelectorExpr:
				switch name := n.Sel.Name; {
				case name == "CopyFrom":
					complain(in, "copies into a table past every statement")
				case slices.Contains([]string{"Exec", "Query", "QueryRow", "Queue", "Prepare"}, name) && !called[n] && slices.Contains(asked, c.path):
					complain(in, "takes %s away, to be called out of sight", name)
				}
			case *ast.Ident:
				used := c.info.Uses[n]
				if used == nil || used.Pkg() == nil || used.Pkg() == c.types {
					break
				}
				switch of := strings.TrimPrefix(used.Pkg().Path(), module); {
				case writers[used] && !in.writes():
					complain(in, "uses %s.%s, which writes evidence", of, used.Name())
				case slices.Contains(keepers, of) && strings.HasSuffix(used.Name(), "Store") && !in.holds():
					complain(in, "names %s.%s, which is for delivery's Recorder and Review alone", of, used.Name())
				case of == shelves && (used.Name() == "Recorder" || used.Name() == "ActorRecorder") && !in.writes():
					complain(in, "acts as the recorder")
				}
			case *ast.InterfaceType:
				for _, method := range n.Methods.List {
					for _, name := range method.Names {
						if c.path != shelves && delists[name.Name] {
							complain(in, "asks for %s through an interface, where nobody sees who writes", name.Name)
						}
					}
				}
			}
			compares := c.compares(n, compared)
			if c.isKeeper(n) && !in.holds() {
				complain(in, "holds a keeper")
			}
			if c.path != shelves && (c.path != flow || in.function != "") && !strings.HasPrefix(in.function, "Review.") && !compares && c.isWord(n, "Cause", "relisting") {
				complain(in, "names a relisting, which Review makes")
			}
			// A table of the flow moves nothing; what uses it does.
			if c.path == shelves || in.writes() || c.path == flow && in.function == "" || compares {
				return true
			}
			switch {
			case c.isWord(n, "Actor", "recorder"):
				complain(in, "acts as the recorder")
			case c.isWord(n, "Cause", strikeCauses...):
				complain(in, "names a move that strikes or their review make")
			}
			return true
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// compares notes the operands of a comparison, the cases of a switch and the keys of a table: a word that is only looked for there moves nothing. It
// says whether the node is one that was noted.
func (c *checked) compares(n ast.Node, compared map[ast.Node]bool) bool {
	switch n := n.(type) {
	case *ast.CaseClause:
		for _, e := range n.List {
			compared[e] = true
		}
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			compared[n.X], compared[n.Y] = true, true
		}
	case *ast.CallExpr: // asking what stands against a move makes none
		name, _ := n.Fun.(*ast.SelectorExpr)
		if name != nil && name.Sel.Name == "WhyNot" {
			for _, e := range n.Args {
				compared[e] = true
			}
		}
	case *ast.KeyValueExpr:
		compared[n.Key] = true
	case *ast.SelectorExpr:
		if compared[n] {
			compared[n.Sel] = true
		}
	}
	return compared[n]
}

// isKeeper says whether an expression is the store of a keeper, or points to one.
func (c *checked) isKeeper(n ast.Node) bool {
	e, ok := n.(ast.Expr)
	if !ok || c.info.Types[e].Type == nil {
		return false
	}
	of := types.Unalias(c.info.Types[e].Type)
	if pointer, ok := of.(*types.Pointer); ok {
		of = types.Unalias(pointer.Elem())
	}
	named, ok := of.(*types.Named)
	return ok && named.Obj().Pkg() != nil && strings.HasSuffix(named.Obj().Name(), "Store") &&
		slices.Contains(keepers, strings.TrimPrefix(named.Obj().Pkg().Path(), module))
}

// isWord says whether an expression is one of these words of a type of the catalog's, however it is spelled.
func (c *checked) isWord(n ast.Node, of string, words ...string) bool {
	e, ok := n.(ast.Expr)
	if !ok {
		return false
	}
	t := c.info.Types[e]
	named, ok := t.Type.(*types.Named)
	return ok && t.Value != nil && t.Value.Kind() == constant.String && slices.Contains(words, constant.StringVal(t.Value)) &&
		named.Obj().Name() == of && named.Obj().Pkg().Path() == module+shelves
}

// writers returns the functions outside delivery that write evidence: those of the keepers and of the catalog that hold such a statement, or that make
// a move for strikes, and whatever of the same package calls them.
func (p *program) writers() map[types.Object]bool {
	writers := map[types.Object]bool{}
	for _, path := range append([]string{shelves}, keepers...) {
		c := p.packages[path]
		if c == nil {
			continue
		}
		named := map[string]bool{}
		for _, change := range p.changes(c) {
			if change.function != "" && slices.Contains(evidence, change.table) {
				named[change.function] = true
			}
		}
		for grew := true; grew; {
			grew = false
			p.walk(c, func(in place, n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok || in.function == "" {
					return true
				}
				object := c.info.Uses[id]
				of := writers[object] || path == shelves && object != nil && object.Pkg() == c.types && object.Name() == "Recorder"
				if of && !named[in.function] {
					named[in.function], grew = true, true
				}
				return true
			})
			for _, file := range c.files {
				for _, decl := range file.Decls {
					if f, ok := decl.(*ast.FuncDecl); ok && named[nameOf(f)] && !writers[c.info.Defs[f.Name]] {
						writers[c.info.Defs[f.Name]], grew = true, true
					}
				}
			}
		}
	}
	return writers
}

// What delists a service is irreversible, so what feeds it has one writer: delivery.Recorder for calls and delivery.Review for admins.
func TestWriters_OnlyTheRecorderAndReviewWriteEvidence(t *testing.T) {
	t.Parallel()
	p := load(t, product(t))
	for _, broken := range p.broken() {
		t.Error(broken)
	}

	// The search finds what is there: else it would find nothing anywhere.
	var found []string
	for object := range p.writers() {
		found = append(found, strings.TrimPrefix(object.Pkg().Path(), module+"internal/")+"."+object.Name())
	}
	for _, want := range []string{"strikes.Add", "cooldown.Start", "catalog.Delist"} {
		if !slices.Contains(found, want) {
			t.Errorf("%s was not found among the writers %v", want, found)
		}
	}
	var tables []string
	for _, change := range p.changes(p.packages[flow]) {
		if change.writes() {
			tables = append(tables, change.table)
		}
	}
	for _, want := range []string{"deliveries", "strikes"} {
		if !slices.Contains(tables, want) {
			t.Errorf("the recorder was not seen to write %s", want)
		}
	}
}
