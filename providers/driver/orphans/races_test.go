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

// TestANameThatCameBack: an object was removed by force, and the next one of its name has an instance of its own. That it has the name does
// not keep the first instance.
func TestANameThatCameBack(t *testing.T) {
	i := newInstallation(t)
	first := i.launch("m")
	i.scan(2)
	i.expunge(first)
	i.uids = "b"
	i.launch("m")
	i.scan(1)
	i.Expect(i.cloud.deleted).To(BeEmpty())
	i.scan(3)
	i.Expect(i.cloud.deleted).To(Equal([]string{"i-m-a"}))
	i.scan(3)
	i.Expect(i.cloud.live()).To(Equal([]string{"i-m-b"}))
}
