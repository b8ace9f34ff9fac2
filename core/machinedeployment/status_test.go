package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
)

// TestNumbersAreThoseOfTheSets: a deployment counts as its sets do, also Machines that are being deleted or updated in place.
func TestNumbersAreThoseOfTheSets(t *testing.T) {
	g := NewWithT(t)
	deleted, updated := serving("deleted"), serving("updated")
	deleted.DeletionTimestamp = ptr.To(metav1.NewTime(start.Add(time.Minute)))
	updated.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	all := []*clusterv1.Machine{serving("m"), deleted, updated}
	s := rollout(nil, all, wants(3))
	s.setStatus(nil)
	ready, available := machines.Serving(all)
	g.Expect(s.Object.Status.ReadyReplicas).To(HaveValue(Equal(ready)))
	g.Expect(s.Object.Status.AvailableReplicas).To(HaveValue(Equal(available)))
	g.Expect(ready).To(BeEquivalentTo(1))
	g.Expect(available).To(BeEquivalentTo(1))
}

// TestNumbersForOlderClients: those of v1beta1 count what is missing of what is wanted as unavailable.
func TestNumbersForOlderClients(t *testing.T) {
	for name, test := range map[string]struct {
		wanted      int32
		unavailable int32
	}{"one is missing": {4, 3}, "as many as wanted": {3, 2}, "too many": {2, 2}, "none is wanted": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			up := serving("up")
			up.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "v1.36.1"}
			s := rollout([]*clusterv1.Machine{member("old", time.Hour)},
				[]*clusterv1.Machine{up, member("new", 0, conditions.True(clusterv1.MachineReadyCondition, "Ready", ""))}, wants(test.wanted))
			s.settings.selector = labels.SelectorFromSet(labels.Set{"a": "b"})
			s.Object.Generation = 7
			//nolint:staticcheck // clients of v1beta1 read them
			converted := clusterv1.Conditions{{Type: "Ready", Status: "True"}}
			s.Object.Status.Deprecated = &clusterv1.MachineDeploymentDeprecatedStatus{
				V1Beta1: &clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{Conditions: converted}, //nolint:staticcheck // as above
			}
			s.setStatus(nil)
			status := s.Object.Status
			//nolint:staticcheck // clients of v1beta1 read them
			g.Expect(*status.Deprecated.V1Beta1).To(Equal(clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{
				Conditions: converted, ReadyReplicas: 2, AvailableReplicas: 1, UpdatedReplicas: 2, UnavailableReplicas: test.unavailable,
			}))
			g.Expect(status.Versions).To(Equal([]clusterv1.StatusVersion{{Version: "v1.36.1", Replicas: 1}}))
			g.Expect(status.Selector).To(Equal("a=b"))
			g.Expect(status.ObservedGeneration).To(BeEquivalentTo(7))
		})
	}
}

// TestNothingIsCountedThatIsNotRead: the numbers that there are stay, and the generation is not reported as observed.
func TestNothingIsCountedThatIsNotRead(t *testing.T) {
	g := NewWithT(t)
	s := rollout(nil, nil, unreadable)
	s.Object.Generation, s.Object.Status.ObservedGeneration, s.Object.Status.Replicas = 7, 6, ptr.To[int32](3)
	s.setStatus(nil)
	g.Expect(s.Object.Status.ObservedGeneration).To(BeEquivalentTo(6))
	g.Expect(s.Object.Status.Replicas).To(HaveValue(BeEquivalentTo(3)))
}

// TestPhaseOfADeploymentThatGoes: until its object no longer exists.
func TestPhaseOfADeploymentThatGoes(t *testing.T) {
	for _, s := range []*scope{rollout(nil, servingAll(1), goes), rollout(nil, nil, goes), rollout(nil, nil, goes, unreadable)} {
		s.setStatus(nil)
		NewWithT(t).Expect(s.Object.Status.Phase).To(Equal("ScalingDown"))
	}
}

func TestRevisionIsSet(t *testing.T) {
	g := NewWithT(t)
	s := rollout(nil, nil)
	setRevision(s)
	g.Expect(s.Object.Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, "2"))
	s = rollout(nil, nil, func(s *scope) { s.current = nil })
	setRevision(s)
	g.Expect(s.Object.Annotations).NotTo(HaveKey(clusterv1.RevisionAnnotation), "no set has one")
}
