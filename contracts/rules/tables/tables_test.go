package tables_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/rules/tables"
)

// TestPagesAreUpToDate: what people read is what code cites.
func TestPagesAreUpToDate(t *testing.T) {
	for page, subjects := range tables.Pages {
		t.Run(page, func(t *testing.T) {
			g := NewWithT(t)
			content, err := os.ReadFile(filepath.Join("..", "..", page)) // one of Pages
			g.Expect(err).NotTo(HaveOccurred())
			updated, err := tables.Page(string(content), subjects)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(updated == string(content)).To(BeTrue(), "run `make generate`")
		})
	}
}

// TestEveryRuleIsInOnePage, with its level and its text.
func TestEveryRuleIsInOnePage(t *testing.T) {
	g := NewWithT(t)
	pages := map[rules.Subject]int{}
	for _, subjects := range tables.Pages {
		for _, subject := range subjects {
			pages[subject]++
		}
	}
	for _, rule := range rules.All() {
		g.Expect(pages[rule.Subject]).To(Equal(1), "%s", rule.Subject)
		row := tables.Table([]rules.Rule{rule})
		g.Expect(strings.Count(row, "\n")).To(Equal(3), "%s", rule.ID)
		g.Expect(row).To(ContainSubstring("| " + string(rule.Level)))
		g.Expect(row).To(ContainSubstring("| " + rule.Text + " |"))
		if rule.Source != "" {
			g.Expect(row).To(ContainSubstring("[" + string(rule.ID) + "](" + rule.Source + ")"))
		}
	}
}

// TestAPageWithoutItsLines is not written over.
func TestAPageWithoutItsLines(t *testing.T) {
	g := NewWithT(t)
	for _, text := range []string{"", "# Title\n", "<!-- Rules of Core: written by make generate from contracts/rules -->\nno end"} {
		_, err := tables.Page(text, []rules.Subject{rules.Core})
		g.Expect(err).To(MatchError(ContainSubstring("are missing")))
	}
	kept, err := tables.Page("before\n<!-- Rules of Core: written by make generate from contracts/rules -->\nold\n<!-- End of the rules of Core -->\nafter",
		[]rules.Subject{rules.Core})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(And(HavePrefix("before\n"), HaveSuffix("\nafter"), Not(ContainSubstring("old")), ContainSubstring("CO-001")))
}
