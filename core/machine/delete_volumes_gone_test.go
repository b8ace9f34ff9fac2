package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machine"
)

// staysAttached checks that no volume is detached.
func (f *fixture) staysAttached(va *storagev1.VolumeAttachment) {
	f.t.Helper()
	f.Consistently(func() bool { f.refresh(va); return va.DeletionTimestamp == nil }).
		WithTimeout(time.Second).
		Should(BeTrue(), "it stays attached")
}

// TestAForcedDrainLeavesVolumesToTheirTimeout: forced means pods. The volumes have a timeout of their own, and the machine
// may write to them as long as it runs.
func TestAForcedDrainLeavesVolumesToTheirTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](3)
	f.machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = ptr.To[int32](600)
	node := f.run()
	f.heldPod(node.Name)
	va := f.attachedVolume("data", node.Name)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.recorded(machine.DrainForcedEvent, "nodeDrainTimeoutSeconds, 3s, is over")
	f.isDeleting(clusterv1.MachineDeletingWaitingForVolumeDetachReason)
	f.staysAttached(va)
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())
	f.isDeleting(clusterv1.MachineDeletingWaitingForVolumeDetachReason)
	f.Expect(core.Client.Delete(t.Context(), va)).To(Succeed())
	f.eventuallyGone(f.machine)
}

// TestForceDeletionDetachesWhenTheInstanceIsGone: who wants the machine to go at once need not wait for volumes, but they are
// detached when nothing can write to them any more.
func TestForceDeletionDetachesWhenTheInstanceIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	va := f.attachedVolume("data", f.run().Name)
	f.setFinalizers(f.infra, providerFinalizer)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.isDeleting(clusterv1.MachineDeletingWaitingForVolumeDetachReason)
	f.annotate(f.machine, machine.ForceDeletionAnnotation, ptr.To("true"))
	f.isDeleting(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
	f.staysAttached(va)
	f.setFinalizers(f.infra)
	f.eventuallyGone(va)
	f.eventuallyGone(f.machine)
}
