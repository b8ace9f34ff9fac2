package machineset

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRemediationStorm has two sets of one deployment remediate at once, while every second patch and deletion meets a
// conflict: whenever one looks, no more Machines go than the limit allows, and in the end no unhealthy one is left.
func TestRemediationStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deployment := w.deployment("1", ptr.To(intstr.FromInt32(3)))
	// As many as its sets have, since creation stops above that.
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = ptr.To[int32](12)
	w.G.Expect(direct.Patch(w.Ctx, deployment, client.MergeFrom(before))).To(Succeed())
	w.set(6, of(deployment, "s", "1"))
	w.set(6, of(deployment, "twin", "1"))
	w.start(t)
	w.Eventually(func(g Gomega) { g.Expect(w.living()).To(HaveLen(12)) })
	w.Stop()
	unhealthy := append(w.namesIn("s"), w.namesIn("twin")...)
	w.findUnhealthy(unhealthy...)
	storm := &storm{}
	w.start(t, storm.wrap)
	most := 0
	w.Eventually(func(g Gomega) {
		going := w.deletingNow()
		if going > 3 {
			t.Fatalf("%d go at once", going)
		}
		most = max(most, going)
		// They are released together, when there is no room left.
		if going == 3 || w.remaining(unhealthy) == going {
			w.endMachines()
		}
		w.bringUp()
		g.Expect(w.remaining(unhealthy)).To(BeZero())
		g.Expect(w.living()).To(HaveLen(12))
	})
	w.Stop()
	w.G.Expect(most).To(Equal(3), "and as many as it allows do")
	w.G.Expect(storm.failed).To(BeNumerically(">", 5), "the storm was one")
}

// remaining counts those of the Machines that are still there.
func (w *world) remaining(names []string) int {
	remaining := 0
	for _, name := range names {
		if w.fate(name) != "gone" {
			remaining++
		}
	}
	return remaining
}
