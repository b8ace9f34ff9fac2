package machines

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestRevision: an object without a revision is older than all; of one whose annotation is no number nothing is known.
func TestRevision(t *testing.T) {
	for text, want := range map[string]struct {
		revision int64
		ok       bool
	}{
		"none": {0, true}, "3": {3, true}, "three": {0, false}, "": {0, false}, "9223372036854775808": {0, false},
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			set := &clusterv1.MachineSet{}
			if text != "none" {
				set.ObjectMeta = metav1.ObjectMeta{Annotations: map[string]string{clusterv1.RevisionAnnotation: text}}
			}
			revision, ok := ParseRevision(set)
			g.Expect(revision).To(Equal(want.revision))
			g.Expect(ok).To(Equal(want.ok))
			g.Expect(Revision(set)).To(Equal(want.revision))
		})
	}
}
