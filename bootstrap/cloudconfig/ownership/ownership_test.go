package ownership

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// TestIsOfNamesake: an export that is applied again has the UID of the earlier Machine in its owner references. A copy under another name
// is not the Machine's.
func TestIsOfNamesake(t *testing.T) {
	for name, test := range map[string]struct {
		owner string
		uid   types.UID
		names string
		want  bool
	}{
		"an export":                    {"m", "earlier", "c", true},
		"the Machine's own":            {"m", "now", "c", false},
		"the Machine names another":    {"m", "earlier", "other", false},
		"the owner is of another name": {"n", "earlier", "c", false},
		"the Machine names none":       {"m", "earlier", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			owner := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: test.owner, UID: test.uid}}
			config := &bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine")),
			}}}
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "now"}}
			machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "CloudConfig", Name: test.names,
			}
			g.Expect(IsOfNamesake(config, machine)).To(Equal(test.want))
		})
	}
}
