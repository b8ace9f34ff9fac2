package doccheck

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"

	"millwright.dev/test/testenv"
)

// CheckLinks reports relative links that lead to no file of the repository or, in markdown, to no heading. Links
// to other hosts are not followed.
func (p *Page) CheckLinks(t testing.TB) {
	t.Helper()
	p.walk(p.root, func(node ast.Node) {
		link, ok := node.(*ast.Link)
		if !ok {
			return
		}
		target, err := url.Parse(string(link.Destination))
		if err != nil {
			t.Errorf("%s: %v", p.Path, err)
			return
		}
		if target.Scheme == "" && target.Host == "" && !p.leads(target) {
			t.Errorf("%s: the link %s leads nowhere", p.Path, link.Destination)
		}
	})
}

// leads reports whether a relative link has a target.
func (p *Page) leads(target *url.URL) bool {
	page := p
	if target.Path != "" {
		file := path.Join(path.Dir(p.Path), target.Path)
		full := filepath.Join(testenv.Root(), filepath.FromSlash(file))
		if _, err := os.Stat(full); err != nil {
			return false
		}
		if target.Fragment == "" || path.Ext(file) != ".md" {
			return true
		}
		source, err := os.ReadFile(full)
		if err != nil {
			return false
		}
		page = Parse(file, source)
	}
	return page.hasAnchor(target.Fragment)
}

func (p *Page) hasAnchor(anchor string) bool {
	for _, heading := range p.Headings() {
		if slug(heading) == anchor {
			return true
		}
	}
	return false
}

// slug is the anchor that a heading gets where the pages are read: lower case, without punctuation, with dashes.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r > 127:
			return r
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(heading))
}
