package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestKubeletBehind(t *testing.T) {
	tests := []struct {
		name, want, have string
		behind           bool
	}{
		{"the same", "v1.36.3", "v1.36.3", false},
		{"without the v, as before admission", "1.36.3", "v1.36.3", false},
		{"older", "v1.36.4", "v1.36.3", true},
		{"a longer number", "v1.36.1", "v1.36.10", true},
		{"a distribution's suffix", "v1.36.3", "v1.36.3-eks-5e0fdde", false},
		{"build metadata", "v1.36.3", "v1.36.3+k3s1", false},
		{"another suffix than asked for", "v1.36.3+k3s2", "v1.36.3+k3s1", true},
		// Upstream's core never calls such a Machine up to date.
		{"no version asked for", "", "v1.36.3", false},
		{"not reported yet", "v1.36.3", "", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := &scope{Base: base{Object: &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: test.want}}}}
			g.Expect(s.kubeletBehind()).To(BeEmpty(), "without a Node nothing is known")
			s.Object.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: test.have}
			g.Expect(s.kubeletBehind() != "").To(Equal(test.behind))
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
