package doccheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"millwright.dev/test/testenv"
)

// Page is a parsed markdown file.
type Page struct {
	// Path is the file, relative to the root of the repository.
	Path string

	source []byte
	root   ast.Node
}

// Read parses the file with that path below the root of the repository.
func Read(t testing.TB, path string) *Page {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(path)))
	if err != nil {
		t.Fatalf("Reading the page: %v", err)
	}
	return Parse(path, source)
}

// Parse parses markdown; path is what messages and relative links refer to.
func Parse(path string, source []byte) *Page {
	markdown := goldmark.New(goldmark.WithExtensions(extension.Table))
	return &Page{Path: path, source: source, root: markdown.Parser().Parse(text.NewReader(source))}
}

// Headings are the texts of all headings, in order.
func (p *Page) Headings() []string {
	var found []string
	for node := p.root.FirstChild(); node != nil; node = node.NextSibling() {
		if node.Kind() == ast.KindHeading {
			found = append(found, p.text(node))
		}
	}
	return found
}

// section is what is below the heading with that text, down to the next heading of its level or above; the
// whole page for "". It fails the test when there is no such heading.
func (p *Page) section(t testing.TB, heading string) []ast.Node {
	t.Helper()
	var inside []ast.Node
	level := 0
	for node := p.root.FirstChild(); node != nil; node = node.NextSibling() {
		title, isHeading := node.(*ast.Heading)
		switch {
		case heading == "" || level > 0 && (!isHeading || title.Level > level):
			inside = append(inside, node)
		case level > 0:
			return inside
		case isHeading && p.text(node) == heading:
			level = title.Level
		}
	}
	if heading != "" && level == 0 {
		t.Fatalf("%s has no heading %q", p.Path, heading)
	}
	return inside
}

// text is what a reader sees of a node, without markup.
func (p *Page) text(node ast.Node) string {
	var b strings.Builder
	p.walk(node, func(inner ast.Node) {
		switch n := inner.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(p.source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		}
	})
	return strings.TrimSpace(b.String())
}

// code are the code spans within a node.
func (p *Page) code(node ast.Node) []string {
	var spans []string
	p.walk(node, func(inner ast.Node) {
		if inner.Kind() == ast.KindCodeSpan {
			spans = append(spans, p.text(inner))
		}
	})
	return spans
}

// walk visits a node and all within it.
func (p *Page) walk(node ast.Node, visit func(ast.Node)) {
	_ = ast.Walk(node, func(inner ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(inner)
		}
		return ast.WalkContinue, nil
	})
}
