package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
