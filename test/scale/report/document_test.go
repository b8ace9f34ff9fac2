package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/controlplane"
)

// measured are results of the runs that docs/performance.md shows.
func measured() []File {
	phases := func(requests int, cpu float64) []Phase {
		return []Phase{
			{Name: "scale-up", Machines: 100, Requests: requests, CPUSeconds: cpu, WallSeconds: 3, PeakRSSBytes: 50 << 20},
			{Name: "idle", Machines: 100},
			{Name: "delete", Machines: 100, Requests: 1400, PodsEvicted: 300, CPUSeconds: cpu, WallSeconds: 2, DeletesMachines: true},
		}
	}
	pair := func(setting string, n int) []Run {
		return []Run{
			{Core: "upstream", Version: "v1", Setting: setting, N: n, Phases: phases(2400, 4)},
			{Core: "ours", Version: "abc", Setting: setting, N: n, Phases: phases(1000, 1), Leftovers: map[string]int{}},
		}
	}
	grown := func(n int, peak int64) Run {
		r := Run{Core: "ours", Version: "abc", Setting: "first", N: n, Phases: phases(1000, 1)}
		r.Phases[0].PeakRSSBytes = peak
		return r
	}
	return []File{
		{Host: Host{CPUs: 2, Model: "m", Go: "go1"}, Runs: append(pair("first", 300), pair("second", 100)...)},
		{Host: Host{CPUs: 2, Model: "m", Go: "go1"}, Runs: pair("first", 1000)},
		{Host: Host{CPUs: 2, Model: "m", Go: "go1"}, Runs: []Run{grown(3000, 400<<20), grown(100, 50<<20)}},
	}
}

// TestDocument writes results into the sections of the page that shows them.
func TestDocument(t *testing.T) {
	g := NewWithT(t)
	root, err := controlplane.Root()
	g.Expect(err).NotTo(HaveOccurred())
	page, err := os.ReadFile(filepath.Join(root, "docs", "performance.md")) // within the repository
	g.Expect(err).NotTo(HaveOccurred())

	updated, err := Document(string(page), measured())
	g.Expect(err).NotTo(HaveOccurred(), "the page has a section for each measurement, and no other")
	g.Expect(updated).To(ContainSubstring("| scale-up | requests per Machine | ≤ 11.0 | 10.0 | 10.0 | 10.0 | |"))
	g.Expect(updated).To(ContainSubstring("| delete | requests per Machine, beside one per evicted Pod | ≤ 11.0 | 11.0 |"))
	g.Expect(updated).To(ContainSubstring("| delete | CPU, of upstream's | ≤ 0.40 | 0.25 |"))
	g.Expect(updated).To(ContainSubstring("| all | KiB of the peak for each further Machine, from N = 100 to 3000 | ≤ 60 | | | | **124, missed** |"))
	g.Expect(updated).To(ContainSubstring("The cores were ours abc, upstream v1."))
	again, err := Document(updated, measured())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(updated), "written twice it is the same")
	before, _, _ := strings.Cut(string(page), "<!-- bench:")
	g.Expect(updated).To(HavePrefix(before), "what is not between the marks stays")
}

func TestDocumentIsWhole(t *testing.T) {
	g := NewWithT(t)
	_, err := Document("<!-- bench:other -->\n<!-- bench:end -->", measured())
	g.Expect(err).To(MatchError(ContainSubstring("no results for the sections other")))
	_, err = Document("", measured())
	g.Expect(err).To(MatchError(ContainSubstring("no section <!-- bench:first-1000 -->")))
	_, err = Document("", measured()[:1])
	g.Expect(err).To(MatchError(ContainSubstring("the growth of ours")))
}
