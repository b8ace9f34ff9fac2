package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/version"
)

// TestClocksThatDiffer: the clock of the core is far from that of the API server, which sets the times of birth and deletion. A Machine is
// available after the seconds that it must have been ready, rests then, and its drain is forced after the timeout and not before.
func TestClocksThatDiffer(t *testing.T) {
	t.Cleanup(func() { core.Restart(t) })
	for name, ahead := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			core.Ahead = ahead
			t.Cleanup(func() { core.Ahead = 0 })
			core.Restart(t)
			f := newFixture(t, version.V1Beta2)
			f.machine.Spec.MinReadySeconds = ptr.To[int32](2)
			f.machine.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](300)
			node := f.run()
			f.awaitsNothing()

			f.heldPod(node.Name)
			f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
			f.draining("held")
			f.patchMachine(func(m *clusterv1.Machine) { m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](3) })
			f.forced(node, "nodeDrainTimeoutSeconds, 3s, is over")
		})
	}
}
