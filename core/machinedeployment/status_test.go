package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

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
