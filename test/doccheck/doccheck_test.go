package doccheck_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
)

const page = "# Title\n\n" +
	"See [the architecture](../architecture.md#nowhere-at-all) and [here](#reasons).\n\n" +
	"## Reasons\n\n| Condition | Reasons |\n|---|---|\n| `Ready` | `Ready`, or\n| `Paused` | `Paused` and `NotPaused`, *never* else |\n\n" +
	"### Deeper\n\n| Condition | Reasons |\n|---|---|\n| `Deep` | `InDeep` |\n\n" +
	"## Examples\n\n```yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n```\n\n" +
	"```yaml fragment\nmetadata: {}\n```\n\n```sh\nls\n```\n"

// recorder records what a check would report.
type recorder struct {
	testing.TB
	reports []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.reports = append(r.reports, fmt.Sprintf(format, args...))
}

func TestTables(t *testing.T) {
	g := NewWithT(t)
	p := doccheck.Parse("docs/reference/x.md", []byte(page))
	g.Expect(p.Headings()).To(Equal([]string{"Title", "Reasons", "Deeper", "Examples"}))
	g.Expect(p.Keys(t, "Reasons", "Reasons")).To(Equal([]string{"Ready", "Paused", "NotPaused", "InDeep"}), "with the sections below")
	g.Expect(p.Keys(t, "Deeper", "Condition")).To(Equal([]string{"Deep"}))
	g.Expect(p.Table(t, "Reasons")[1]["Reasons"].Text).To(Equal("Paused and NotPaused, never else"))
}

func TestCompareLooksBothWays(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{TB: t}
	p := doccheck.Parse("x.md", nil)
	doccheck.Compare(r, p, "reasons", []string{"A", "B"}, []string{"B", "A"})
	g.Expect(r.reports).To(BeEmpty())
	doccheck.Compare(r, p, "reasons", []string{"A", "Old"}, []string{"A", "New"})
	g.Expect(r.reports).
		To(ConsistOf(ContainSubstring("does not have: Old"), ContainSubstring("does not document these reasons of the code: New")))
}

func TestExamples(t *testing.T) {
	g := NewWithT(t)
	objects := doccheck.Parse("x.md", []byte(page)).Examples(t, "Examples")
	g.Expect(objects).To(HaveLen(2))
	g.Expect(objects[1].GetName()).To(Equal("b"))
}

func TestLinks(t *testing.T) {
	g := NewWithT(t)
	r := &recorder{TB: t}
	doccheck.Parse("docs/reference/x.md", []byte(page)).CheckLinks(r)
	g.Expect(r.reports).To(ConsistOf(ContainSubstring("../architecture.md#nowhere-at-all leads nowhere")))
	r.reports = nil
	doccheck.Parse("docs/reference/x.md", []byte(strings.ReplaceAll(page, "#nowhere-at-all", ""))).CheckLinks(r)
	g.Expect(r.reports).To(BeEmpty())
}

func TestConstants(t *testing.T) {
	g := NewWithT(t)
	values := doccheck.Constants(t, doccheck.Named("Reason"), "core/machine")
	g.Expect(values).To(ContainElements("ClusterDoesNotExist", "WaitingForPreDrainHook"), "its own and the Cluster API's")
	g.Expect(values).NotTo(ContainElement("ScalingUp"), "not what it does not use")
}
