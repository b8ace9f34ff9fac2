package remediation_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
)

// TestWantedDuringARollout: a cache that shows a replica in the set that gave it and in the one that got it does not raise the limits that
// are percentages.
func TestWantedDuringARollout(t *testing.T) {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d"}}
	deployment.Spec.Replicas = ptr.To[int32](15)
	set := func(uid string, replicas int32, owner string) remediation.Owned {
		s := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid)}}
		s.Spec.Replicas = ptr.To(replicas)
		if owner != "" {
			s.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}}
		}
		return remediation.Owned{MachineSet: s}
	}
	for name, test := range map[string]struct {
		sets        []remediation.Owned
		deployments []*clusterv1.MachineDeployment
		wanted      int
	}{
		"a replica in two sets":           {[]remediation.Owned{set("old", 15, "d"), set("new", 1, "d")}, []*clusterv1.MachineDeployment{deployment}, 15},
		"a replica in no set":             {[]remediation.Owned{set("old", 14, "d"), set("new", 0, "d")}, []*clusterv1.MachineDeployment{deployment}, 15},
		"a set without a deployment":      {[]remediation.Owned{set("alone", 5, "")}, nil, 5},
		"both":                            {[]remediation.Owned{set("old", 15, "d"), set("alone", 5, "")}, []*clusterv1.MachineDeployment{deployment}, 20},
		"a deployment that was not read":  {[]remediation.Owned{set("old", 14, "d"), set("new", 1, "d")}, nil, 15},
		"a deployment that has no sets":   {nil, []*clusterv1.MachineDeployment{deployment}, 0},
		"a set of which it is the second": {[]remediation.Owned{set("new", 1, "d")}, []*clusterv1.MachineDeployment{deployment}, 15},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(remediation.ViewOf(test.sets, test.deployments).Wanted).To(Equal(test.wanted))
		})
	}
}
