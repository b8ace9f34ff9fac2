package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// mutant is one change.
type mutant struct {
	id    int
	where string
	what  string
}

// String says where and what it is.
func (m mutant) String() string { return m.where + " " + m.what }

// edit replaces what is between two offsets by text.
type edit struct {
	from, to int
	text     string
	// depth orders edits at the same place: what belongs to an outer expression opens first and closes last.
	depth int
}

// instrumentation collects the changes of one file.
type instrumentation struct {
	name string
	// statements means that these are left out, too.
	statements bool
	source     []byte
	files      *token.FileSet
	next       int
	edits      []edit
	mutants    []mutant
}

// instrument returns the file with all mutants in it, each behind a call that checks whether it is switched on.
func instrument(name string, source []byte, next int, statements bool) ([]byte, []mutant, error) {
	in := &instrumentation{name: name, statements: statements, source: source, files: token.NewFileSet(), next: next}
	file, err := parser.ParseFile(in.files, name, source, 0)
	if err != nil {
		return nil, nil, err
	}
	depth := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if declared, ok := node.(*ast.GenDecl); ok && declared.Tok != token.VAR {
			return false
		}
		if node == nil {
			depth--
			return true
		}
		depth++
		in.visit(node, depth)
		return true
	})
	return in.apply(), in.mutants, nil
}

func (in *instrumentation) visit(node ast.Node, depth int) {
	switch node := node.(type) {
	case *ast.IfStmt:
		in.force(node.Cond, depth)
	case *ast.SwitchStmt:
		if node.Tag == nil {
			in.cases(node.Body.List, depth)
		}
	case *ast.UnaryExpr:
		if node.Op == token.NOT {
			in.wrap(node, depth, "mutateNot", "! dropped")
		}
	case *ast.ForStmt:
		if node.Cond != nil {
			in.wrap(node.Cond, depth, "mutateNever", "loop skipped")
		}
	case *ast.AssignStmt:
		if node.Tok == token.ADD_ASSIGN || node.Tok == token.SUB_ASSIGN {
			in.wrap(node.Rhs[0], depth, "mutateZero", "not "+node.Tok.String())
		}
	case *ast.BinaryExpr:
		in.binary(node, depth)
	case *ast.BlockStmt:
		in.drop(node.List, depth)
	case *ast.CaseClause:
		in.drop(node.Body, depth)
	case *ast.CommClause:
		in.drop(node.Body, depth)
	case *ast.CallExpr:
		if called, ok := node.Fun.(*ast.Ident); ok && (called.Name == "min" || called.Name == "max") {
			id := in.add(node, "other than "+called.Name)
			in.put(node.Pos(), node.Lparen+1, fmt.Sprintf("mutate%s(%d, ", strings.ToUpper(called.Name[:1])+called.Name[1:], id), depth)
		}
	}
}

func (in *instrumentation) binary(node *ast.BinaryExpr, depth int) {
	op := node.Op.String()
	switch node.Op {
	case token.LAND:
		in.wrap(node.X, depth, "mutateAlways", "left of && dropped")
		in.wrap(node.Y, depth, "mutateAlways", "right of && dropped")
	case token.LOR:
		in.wrap(node.X, depth, "mutateNever", "left of || dropped")
		in.wrap(node.Y, depth, "mutateNever", "right of || dropped")
	case token.EQL, token.NEQ:
		in.wrap(node, depth, "mutateNot", op+" negated")
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		near := in.add(node, op+" off by one")
		in.add(node, op+" negated")
		in.call(node, fmt.Sprintf("mutateCompare(%d, %q, ", near, op), depth)
	case token.SUB:
		in.call(node, fmt.Sprintf("mutateMinus(%d, ", in.add(node, "- is +")), depth)
	case token.ADD:
		if text(node) {
			return
		}
		in.call(node, fmt.Sprintf("mutatePlus(%d, ", in.add(node, "+ is -")), depth)
	}
}

// drop leaves out each statement that only has an effect: a call, a sent value, or an assignment to what has been declared before.
func (in *instrumentation) drop(list []ast.Stmt, depth int) {
	if !in.statements {
		return
	}
	for _, statement := range list {
		switch s := statement.(type) {
		case *ast.AssignStmt:
			if s.Tok != token.ASSIGN {
				continue
			}
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && mustRun(call.Fun) {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt:
		default:
			continue
		}
		in.put(statement.Pos(), statement.Pos(), fmt.Sprintf("if mutateDo(%d) { ", in.add(statement, "dropped")), depth)
		in.put(statement.End(), statement.End(), " }", -depth)
	}
}

// mustRun is true for what locks, since unlocking without it ends the process, and for what ends a function.
func mustRun(called ast.Expr) bool {
	switch called := called.(type) {
	case *ast.SelectorExpr:
		return slices.Contains([]string{"Lock", "RLock", "Unlock", "RUnlock"}, called.Sel.Name)
	case *ast.Ident:
		return called.Name == "panic"
	}
	return false
}

// force makes a condition always true, and never.
func (in *instrumentation) force(cond ast.Expr, depth int) {
	in.wrap(cond, depth, "mutateAlways", "condition always true")
	in.wrap(cond, depth, "mutateNever", "condition never true")
}

// text reports whether a sum has a literal text in it: texts for users are not compared.
func text(node ast.Expr) bool {
	switch node := node.(type) {
	case *ast.BasicLit:
		return node.Kind == token.STRING
	case *ast.BinaryExpr:
		return node.Op == token.ADD && (text(node.X) || text(node.Y))
	}
	return false
}

// cases does so with each condition of a switch.
func (in *instrumentation) cases(clauses []ast.Stmt, depth int) {
	for _, clause := range clauses {
		for _, cond := range clause.(*ast.CaseClause).List {
			in.force(cond, depth)
		}
	}
}

// wrap puts an expression into a call.
func (in *instrumentation) wrap(node ast.Expr, depth int, function, what string) {
	id := in.add(node, what)
	in.put(node.Pos(), node.Pos(), fmt.Sprintf("%s(%d, ", function, id), depth)
	in.put(node.End(), node.End(), ")", -depth)
}

// call turns a binary expression into a call.
func (in *instrumentation) call(node *ast.BinaryExpr, opening string, depth int) {
	in.put(node.Pos(), node.Pos(), opening, depth)
	in.put(node.OpPos, node.OpPos+token.Pos(len(node.Op.String())), ",", depth)
	in.put(node.End(), node.End(), ")", -depth)
}

func (in *instrumentation) add(node ast.Node, what string) int {
	at := in.files.Position(node.Pos())
	text := string(in.source[at.Offset:in.files.Position(node.End()).Offset])
	in.mutants = append(
		in.mutants,
		mutant{
			id:    in.next,
			where: fmt.Sprintf("%s:%d", in.name, at.Line),
			what:  fmt.Sprintf("%s: %s", what, strings.Join(strings.Fields(text), " ")),
		},
	)
	in.next++
	return in.next - 1
}

func (in *instrumentation) put(from, to token.Pos, text string, depth int) {
	in.edits = append(in.edits, edit{in.files.Position(from).Offset, in.files.Position(to).Offset, text, depth})
}

// apply applies the edits from the end of the file.
func (in *instrumentation) apply() []byte {
	slices.SortStableFunc(in.edits, func(a, b edit) int {
		if a.from != b.from {
			return a.from - b.from
		}
		return a.depth - b.depth
	})
	var out strings.Builder
	at := 0
	for _, e := range in.edits {
		out.Write(in.source[at:max(at, e.from)])
		out.WriteString(e.text)
		at = max(at, e.to)
	}
	out.Write(in.source[at:])
	return []byte(out.String())
}
