package shortage

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

// scraped returns the metrics of some Memories without their help: "name failure domain, type, limit scope, market, value".
func scraped(g *GomegaWithT, some ...*Memory) []string {
	c := &memories{present: collector.present, refused: collector.refused, all: map[weak.Pointer[Memory]]struct{}{}}
	for _, m := range some {
		c.add(m)
	}
	registry := prometheus.NewPedanticRegistry()
	g.Expect(registry.Register(c)).To(Succeed())
	families, err := registry.Gather()
	runtime.KeepAlive(some) // The collector does not.
	g.Expect(err).NotTo(HaveOccurred())
	var lines []string
	for _, f := range families {
		g.Expect(f.GetHelp()).To(HaveSuffix("."))
		for _, m := range f.GetMetric() {
			line := strings.TrimPrefix(f.GetName(), "millwright_cloud_")
			for _, l := range m.GetLabel() {
				line += " " + l.GetValue()
			}
			lines = append(lines, fmt.Sprintf("%s %v", line, m.GetCounter().GetValue()+m.GetGauge().GetValue()))
		}
	}
	return lines
}

func TestMetrics(t *testing.T) {
	r := newRig(t)
	r.Expect(collector.all).To(HaveKey(weak.Make(r.Memory)))
	r.Report("r", asked, lacking(false))
	r.Report("r", candidate("m5", "a2", "spot"), lacking(false))
	r.Report("r", asked, lacking(true))
	r.Report("r", candidate("c5", "a2", "spot"), lacking(true))
	r.Report("r", candidate("c5", "a2", "spot"), nil)
	r.Saw("r", candidate("m5", "b1", "od"), r.fake.Now())
	refusals := []string{"capacity_refusals_total a c5 r spot 1", "capacity_refusals_total a m5 r spot 3"}
	r.Expect(scraped(r.GomegaWithT, r.Memory)).To(Equal(append(refusals,
		"shortages a  r  2", "shortages a m5 r spot 1", "shortages b m5 r od 1")))
	other := newRig(t)
	other.Report("r", asked, lacking(false))
	r.Expect(scraped(r.GomegaWithT, r.Memory, other.Memory)).To(ContainElements(
		"capacity_refusals_total a m5 r spot 4", "shortages a m5 r spot 2"))
	r.passes(DefaultTTL)
	r.Expect(scraped(r.GomegaWithT, r.Memory)).To(Equal(refusals), "shortages end without any call")
	r.passes(countedFor - DefaultTTL - 1)
	r.Report("r", asked, lacking(false))
	r.passes(1)
	r.Expect(scraped(r.GomegaWithT, r.Memory)).To(Equal([]string{"capacity_refusals_total a m5 r spot 4", "shortages a m5 r spot 1"}))
	r.passes(-time.Hour)
	r.Expect(scraped(r.GomegaWithT, r.Memory)).To(HaveLen(2))
	r.passes(countedFor)
	r.Expect(scraped(r.GomegaWithT, r.Memory)).To(BeEmpty(), "a clock that is set back keeps nothing")
}

func TestMetricsAreBounded(t *testing.T) {
	r := newRig(t)
	for i := range maxCounted + 200 {
		r.Report("r", candidate(fmt.Sprint("t", i), "a1", ""), lacking(false))
	}
	r.Report("r", candidate("t0", "a1", ""), lacking(false))
	r.passes(DefaultTTL)
	r.Expect(scraped(r.GomegaWithT, r.Memory)).To(And(HaveLen(maxCounted+1), ContainElements(
		"capacity_refusals_total  other r  200", "capacity_refusals_total a t0 r  2")))
	r.Report("\xff", asked, lacking(false))
	r.Expect(scraped(r.GomegaWithT, r.Memory)).To(HaveLen(maxCounted+1), "what is no UTF-8 spoils nothing")
	r.Expect(r.Mark("\xff", []driver.Candidate{asked})[0].ShortSince).NotTo(BeZero())
}

func TestMetricsKeepNoMemoryAlive(t *testing.T) {
	g := NewWithT(t)
	p := weak.Make(New(clock.RealClock{}, 0))
	g.Eventually(func() *Memory {
		runtime.GC()
		return p.Value()
	}).Should(BeNil())
	New(clock.RealClock{}, 0)
	g.Expect(collector.all).NotTo(HaveKey(p))
}
