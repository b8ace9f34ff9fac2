package machineset

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest/workers"
)

// TestPausedBetweenTwoWrites: the process dies between two of the writes that make up Machines with their objects, and the Cluster is
// paused before there is another. That one leaves what is half done as it is, and completes it once the Cluster is not paused any more:
// nothing is created twice or left over.
func TestPausedBetweenTwoWrites(t *testing.T) {
	t.Parallel()
	creations := workers.Crashes{
		Counts: func(write string) bool { return strings.HasPrefix(write, "create ") }, Alone: "create MachineV1Beta2 1",
		Want: map[string]int{"create Machine": 2, "create MachineV1Beta2": 2, "create ConfigV1Beta2": 2},
	}
	for _, after := range []bool{false, true} {
		creations.Run(t, after, func(t *testing.T, c *workers.Crash) {
			w := newWorld(t)
			w.set(2)
			first := true
			w.Survive(c, func(wrap ...func(client.WithWatch) client.Client) {
				if !first {
					w.resumePaused(t, wrap...)
					return
				}
				first = false
				w.start(t, wrap...)
			}, w.complete(2))
			w.Eventually(w.settled(2))
		})
	}
}

// resumePaused starts a process while the Cluster is paused, and unpauses the Cluster once that is reported.
func (w *world) resumePaused(t *testing.T, wrap ...func(client.WithWatch) client.Client) {
	t.Helper()
	w.pause(true)
	half := w.all()
	w.start(t, wrap...)
	w.Eventually(w.reports(clusterv1.PausedCondition, clusterv1.PausedReason, "Cluster c"))
	w.G.Expect(w.all()).To(Equal(half))
	w.pause(false)
}

func (w *world) pause(paused bool) {
	cluster := &clusterv1.Cluster{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: workers.ClusterName}, cluster)).To(Succeed())
	before := cluster.DeepCopy()
	cluster.Spec.Paused = &paused
	w.G.Expect(direct.Patch(w.Ctx, cluster, client.MergeFrom(before))).To(Succeed())
}

// all names what exists.
func (w *world) all() (names []string) {
	for _, machine := range w.Machines() {
		names = append(names, "Machine "+machine.Name)
	}
	slices.Sort(names)
	return slices.Concat(names, w.children(workers.InfraKind), w.children(workers.ConfigKind))
}
