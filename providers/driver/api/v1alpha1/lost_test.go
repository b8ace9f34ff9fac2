package v1alpha1_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/inframachine"
	"millwright.dev/providers/driver/api/v1alpha1"
)

// TestLostReasons: the kit reports lost instances by the reasons of the contract, in the same words. InstanceFailed is none: what has
// run may run still, whatever the cloud reports. InvalidConfiguration neither: another Machine of that template would fare no better.
func TestLostReasons(t *testing.T) {
	NewWithT(t).Expect(slices.Collect(maps.Keys(inframachine.LostReasons))).To(ConsistOf(
		v1alpha1.InstanceTerminatedReason, v1alpha1.InstanceVanishedReason, v1alpha1.InstanceInterruptedReason,
		v1alpha1.InterruptionImminentReason, v1alpha1.InstanceLaunchFailedReason, v1alpha1.InstanceLaunchTimeoutReason,
		v1alpha1.InstanceStoppedReason, clusterv1.ObjectDeletedReason,
	))
}

// TestWaitingForMachineDeletionReason_IsThatOfTheContract: the core recognizes by it that the provider holds the instance.
func TestWaitingForMachineDeletionReason_IsThatOfTheContract(t *testing.T) {
	NewWithT(t).Expect(v1alpha1.WaitingForMachineDeletionReason).To(Equal(inframachine.WaitingForMachineDeletionReason))
}
