package doccheck

import (
	"bytes"
	"testing"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
)

// Row is a line of a table: its cells by the titles of their columns.
type Row map[string]Cell

// Cell is one field of a table.
type Cell struct {
	// Text is what a reader sees, without markup.
	Text string
	// Code are the code spans in it.
	Code []string
}

// Table returns the rows of all tables below a heading, up to the next heading of its level or above. It fails the
// test when there is none.
func (p *Page) Table(t testing.TB, heading string) []Row {
	t.Helper()
	var rows []Row
	for _, node := range p.section(t, heading) {
		p.walk(node, func(inner ast.Node) {
			if inner.Kind() == tables.KindTable {
				rows = append(rows, p.rows(inner)...)
			}
		})
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table with rows below %q", p.Path, heading)
	}
	return rows
}

// Keys returns the code spans of one column of the tables below a heading: what the table documents. It fails the
// test when no table has such a column.
func (p *Page) Keys(t testing.TB, heading, column string) []string {
	t.Helper()
	var keys []string
	found := false
	for _, row := range p.Table(t, heading) {
		cell, ok := row[column]
		found = found || ok
		keys = append(keys, cell.Code...)
	}
	if !found {
		t.Fatalf("%s has no table with a column %q below %q", p.Path, column, heading)
	}
	return keys
}

// CheckRows reports lines that begin as a row of a table and are in none, as after an empty line in its midst: readers see them as text.
func (p *Page) CheckRows(t testing.TB) {
	t.Helper()
	p.walk(p.root, func(node ast.Node) {
		if node.Kind() != ast.KindParagraph {
			return
		}
		for i := range node.Lines().Len() {
			segment := node.Lines().At(i)
			if line := bytes.TrimSpace(segment.Value(p.source)); bytes.HasPrefix(line, []byte("|")) {
				t.Errorf("%s: this row is in no table: %s", p.Path, line)
			}
		}
	})
}

func (p *Page) rows(table ast.Node) []Row {
	var titles []string
	var rows []Row
	for line := table.FirstChild(); line != nil; line = line.NextSibling() {
		row := Row{}
		column := 0
		for cell := line.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if line.Kind() == tables.KindTableHeader {
				titles = append(titles, p.text(cell))
			} else if column < len(titles) {
				row[titles[column]] = Cell{Text: p.text(cell), Code: p.code(cell)}
			}
			column++
		}
		if line.Kind() == tables.KindTableRow {
			rows = append(rows, row)
		}
	}
	return rows
}
