package internal

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

var (
	sqlComment = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/`)
	// A statement that changes a table, or what is in it. The name may be quoted and may name its schema; TRUNCATE takes several.
	changeForm = regexp.MustCompile(`(?is)\b(INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE(?:\s+TABLE)?|COPY|(?:ALTER|DROP)\s+TABLE(?:\s+IF\s+EXISTS)?)` +
		`\s+(?:ONLY\s+)?((?:(?:"?\w+"?\s*\.\s*)?"?[a-z_]\w*"?(?:\s*,\s*)?)+)`)
	tableName = regexp.MustCompile(`^(?:"?\w+"?\s*\.\s*)?"?(\w+)"?$`)
	// A statement whose table is put in when the program runs: nobody can tell what it writes. Only what is written as SQL is here is taken for it.
	openForm = regexp.MustCompile(`(?s)(?:^|[^A-Z])\s*(INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE(?:\s+TABLE)?|COPY)\s+(?:ONLY\s+)?"?(?:%|$)`)
	lockForm = regexp.MustCompile(`\b(?:FOR|KEY|DO|ON|BEFORE|AFTER|INSTEAD OF|OR)\s+UPDATE\b`)
)

// someTable stands for a table whose name is not in the statement.
const someTable = "?"

// tablesOf returns the tables that a text changes, as far as it is SQL.
func tablesOf(text string) []string {
	if !strings.ContainsAny(text, " \t\n") {
		return nil // a word, or the code of a contract
	}
	text = lockForm.ReplaceAllString(sqlComment.ReplaceAllString(text, " "), " ")
	var tables []string
	for _, m := range changeForm.FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[2], ",") {
			if of := tableName.FindStringSubmatch(strings.TrimSpace(name)); of != nil {
				tables = append(tables, strings.ToLower(of[1]))
			}
		}
	}
	if openForm.MatchString(text) {
		tables = append(tables, someTable)
	}
	return tables
}

// A place is where something is done in a program.
type place struct {
	pkg      string // "internal/strikes"
	function string // "Recorder.write"; empty at the top of a file
	declares string // the type, in a declaration of types there
	constant bool   // in a declaration of constants there
	at       token.Pos
}

// A change is a table that a constant text changes, and where the text stands.
type change struct {
	place
	table string
}

// walk calls visit for every node of a package, with the function that it is in. visit says whether to go on into the node.
func (p *program) walk(c *checked, visit func(place, ast.Node) bool) {
	for _, file := range c.files {
		for _, decl := range file.Decls {
			in := place{pkg: c.path}
			switch d := decl.(type) {
			case *ast.FuncDecl:
				in.function = nameOf(d)
			case *ast.GenDecl:
				in.constant = d.Tok == token.CONST
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if n == nil {
					return false
				}
				in.at = n.Pos()
				if spec, ok := n.(*ast.TypeSpec); ok && in.function == "" {
					in.declares = spec.Name.Name
				}
				return visit(in, n)
			})
		}
	}
}

// nameOf is the name of a function as "Receiver.Method" or "Function".
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return "?." + f.Name.Name
}

// textOf is the value of a constant text, put together as the compiler would, from parts and from constants of any package.
func (c *checked) textOf(n ast.Node) (string, bool) {
	e, ok := n.(ast.Expr)
	if !ok {
		return "", false
	}
	value := c.info.Types[e].Value
	if id, ok := e.(*ast.Ident); ok && value == nil {
		if declared, ok := c.info.Defs[id].(*types.Const); ok {
			value = declared.Val()
		}
	}
	if value == nil || value.Kind() != constant.String {
		return "", false
	}
	return constant.StringVal(value), true
}

// changes returns every table that a package's constant texts change: where a text is put together, and wherever its constant is used. The parts of a
// text that is known as a whole say less than the whole, and are left out.
func (p *program) changes(c *checked) []change {
	var out []change
	p.walk(c, func(in place, n ast.Node) bool {
		text, ok := c.textOf(n)
		if ok {
			for _, table := range tablesOf(text) {
				out = append(out, change{in, table})
			}
		}
		return !ok
	})
	return out
}
