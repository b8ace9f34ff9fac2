package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// The kubelet of an image may have any patch version. The Machine is up to date while its owner wants nothing else.
func TestSetUpToDateCondition_KubeletOfAnotherVersion_IsUpToDate(t *testing.T) {
	for _, kubelet := range []string{"v1.36.3", "v1.36.1", "v1.36.10", "v1.36.3-eks-5e0fdde", "v1.36.3+k3s1", "v1.37.0", ""} {
		t.Run(kubelet, func(t *testing.T) {
			g := NewWithT(t)
			s := &scope{
				Base: base{Now: noon, Object: &clusterv1.Machine{
					Spec:   clusterv1.MachineSpec{Version: "v1.36.3"},
					Status: clusterv1.MachineStatus{NodeInfo: &corev1.NodeSystemInfo{KubeletVersion: kubelet}},
				}},
				machineSet:        &clusterv1.MachineSet{},
				machineDeployment: &clusterv1.MachineDeployment{},
			}
			s.setUpToDateCondition()
			g.Expect(meta.FindStatusCondition(s.Object.Status.Conditions, clusterv1.MachineUpToDateCondition)).To(
				HaveField("Status", metav1.ConditionTrue))
		})
	}
}

// The kubeadm control plane with the feature gate InPlaceUpdates waits for the core to call the hook UpdateMachine. After a minute
// the condition says that this core does not, instead of waiting in silence. An updater of its own sets no pending hook.
func TestUpdatingCondition_HookPendingForAMinute_ReportsThatNothingUpdates(t *testing.T) {
	tests := map[string]struct {
		hooks  string
		since  time.Duration // since Updating has been True; 0 if it is not yet
		reason string
		after  time.Duration
	}{
		"another updater":              {"", time.Hour, clusterv1.MachineInPlaceUpdatingReason, 0},
		"another hook":                 {"BeforeClusterUpgrade", time.Hour, clusterv1.MachineInPlaceUpdatingReason, 0},
		"asked for a moment ago":       {"UpdateMachine", 0, clusterv1.MachineInPlaceUpdatingReason, time.Minute},
		"asked for 40 s ago":           {"UpdateMachine", 40 * time.Second, clusterv1.MachineInPlaceUpdatingReason, 20 * time.Second},
		"asked for a minute ago":       {"UpdateMachine", time.Minute, clusterv1.MachineInPlaceUpdateFailedReason, 0},
		"beside another hook, an hour": {"A,UpdateMachine", time.Hour, clusterv1.MachineInPlaceUpdateFailedReason, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &scope{Base: base{Now: noon, Object: &clusterv1.Machine{}}}
			s.Object.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
			if test.hooks != "" {
				s.Object.Annotations[runtimev1.PendingHooksAnnotation] = test.hooks
			}
			if test.since > 0 {
				s.Object.Status.Conditions = []metav1.Condition{{
					Type: clusterv1.MachineUpdatingCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-test.since)),
				}}
			}
			condition, deadline := s.updatingCondition()
			g.Expect(condition.Status).To(Equal(metav1.ConditionTrue))
			g.Expect(condition.Reason).To(Equal(test.reason))
			g.Expect(deadline.After()).To(Equal(test.after))
		})
	}
}

// TestUpToDateIsLookedAtWhenARolloutIsDue: by the clock of this process alone. That of the API server, which says when the set
// was created, may be ahead of it or behind.
func TestUpToDateIsLookedAtWhenARolloutIsDue(t *testing.T) {
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		g := NewWithT(t)
		due := noon.Add(time.Minute)
		s := &scope{
			Base:              base{Now: noon, Object: &clusterv1.Machine{}},
			machineSet:        &clusterv1.MachineSet{},
			machineDeployment: &clusterv1.MachineDeployment{},
		}
		s.machineSet.CreationTimestamp = metav1.NewTime(due.Add(ahead))
		s.machineDeployment.Spec.Rollout.After = metav1.NewTime(due)
		g.Expect(s.setUpToDateCondition().After()).To(Equal(time.Minute), "a set created %s after it", ahead)
		s.Now = due
		g.Expect(s.setUpToDateCondition().After()).To(BeZero())
	}
}
