package orphans

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
)

// TestRacesNameTests: each race that the guide says to be safe has a test here.
func TestRacesNameTests(t *testing.T) {
	g := NewWithT(t)
	page := doccheck.Read(t, "docs/guides/orphans.md")
	page.CheckLinks(t)
	tests := doccheck.Tests(t, "providers/driver/orphans")
	rows := page.Table(t, "Races")
	g.Expect(rows).NotTo(BeEmpty())
	for _, row := range rows {
		g.Expect(row["Tests"].Code).NotTo(BeEmpty(), "%v", row)
		for _, name := range row["Tests"].Code {
			g.Expect(tests).To(ContainElement(name))
		}
	}
}
