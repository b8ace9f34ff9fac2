package rewritten

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Each difference names the label with both values. Labels of others count only if the selector excludes them.
func TestDifferences(t *testing.T) {
	selector, err := labels.Parse("pool=a,!quarantine")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	wanted := &Wanted{Labels: map[string]string{"pool": "a", "tier": "front"}, Selector: selector, Owner: "u"}
	owned := []metav1.OwnerReference{{Kind: "MachineSet", Name: "s", UID: "u", Controller: ptr.To(true)}}
	for name, test := range map[string]struct {
		labels map[string]string
		owners []metav1.OwnerReference
		want   []string
		found  bool
	}{
		"as sent":              {labels: map[string]string{"pool": "a", "tier": "front", "other": "x"}, owners: owned, found: true},
		"other value":          {labels: map[string]string{"pool": "x", "tier": "front"}, owners: owned, want: []string{`label pool is "x", "a" is wanted`}},
		"not selected by":      {labels: map[string]string{"pool": "a"}, owners: owned, want: []string{`label tier is missing, "front" is wanted`}, found: true},
		"added and excluded":   {labels: map[string]string{"pool": "a", "tier": "front", "quarantine": "y"}, owners: owned, want: []string{`label quarantine is "y", and the selector excludes that`}},
		"without owner":        {labels: map[string]string{"pool": "a", "tier": "front"}, want: []string{"the owner reference is missing"}},
		"of another":           {labels: wanted.Labels, owners: []metav1.OwnerReference{{UID: "v", Controller: ptr.To(true)}}, want: []string{"the owner reference is missing"}},
		"owner, no controller": {labels: wanted.Labels, owners: []metav1.OwnerReference{{UID: "u"}}, want: []string{"the owner reference is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: test.labels, OwnerReferences: test.owners}}
			g.Expect(wanted.Differences(machine)).To(Equal(test.want))
			g.Expect(wanted.Found(machine)).To(Equal(test.found))
			g.Expect(Mentioned(Line("Machine", machine, test.want), "Machine", "m")).To(BeTrue())
			wanted.Restore(machine)
			g.Expect(wanted.matches(machine)).To(BeTrue())
		})
	}
}
