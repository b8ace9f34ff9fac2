package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
)

// TestRulesHaveTests: the tests that the README names for the rules of the deletion exist.
func TestRulesHaveTests(t *testing.T) {
	g := NewWithT(t)
	page := doccheck.Read(t, "core/machine/README.md")
	tests := doccheck.Tests(t, "core/machine")
	for _, row := range page.Table(t, "Deletion") {
		g.Expect(row["Test"].Code).NotTo(BeEmpty(), "a rule without a test: %s", row["Situation"].Text)
		for _, name := range row["Test"].Code {
			g.Expect(tests).To(ContainElement(name))
		}
	}
}
