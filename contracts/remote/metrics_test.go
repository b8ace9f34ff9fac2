package remote

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

// TestMetricsAreBounded: however many Clusters there are, the metrics name the worst hundred.
func TestMetricsAreBounded(t *testing.T) {
	g := NewWithT(t)
	var all []series
	for i := range 10 * maxMeasured {
		for _, verb := range []string{"PATCH", "DELETE"} {
			all = append(all, series{cluster: fmt.Sprint("ns/", i), Load: Load{Verb: verb, Waiting: i}})
		}
	}
	all = append(all, all[len(all)-1])
	kept := measured(all)
	g.Expect(kept).To(HaveLen(2 * maxMeasured))
	g.Expect(kept[0].Waiting).To(Equal(10*maxMeasured - 1))
}
