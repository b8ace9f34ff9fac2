package machines

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// What a creator has created counts for it, as long as either the controller, the label or the name shows it.
func TestCreatorCounts(t *testing.T) {
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "d-uid"}}
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "d-bcdfg", UID: "s-uid"}}
	other := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "e", UID: "e-uid"}}
	of := func(owner *clusterv1.MachineSet) []metav1.OwnerReference {
		return []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("MachineSet"))}
	}
	by := func(uid string) map[string]string { return map[string]string{CreatorLabel: uid} }
	now := metav1.Now()
	for name, test := range map[string]struct {
		object metav1.ObjectMeta
		want   bool
	}{
		"controlled by the set":        {object: metav1.ObjectMeta{Name: "x", OwnerReferences: of(set)}, want: true},
		"controlled, labels removed":   {object: metav1.ObjectMeta{Name: "d-bcdfg-hjklm", OwnerReferences: of(set)}, want: true},
		"controlled by another":        {object: metav1.ObjectMeta{Name: "d-bcdfg-hjklm", OwnerReferences: of(other)}},
		"adopted by another":           {object: metav1.ObjectMeta{Name: "d-bcdfg-hjklm", OwnerReferences: of(other), Labels: by("e-uid")}},
		"label alone, other owner":     {object: metav1.ObjectMeta{Name: "x", OwnerReferences: of(other), Labels: by("d-uid")}, want: true},
		"owner alone, other label":     {object: metav1.ObjectMeta{Name: "x", OwnerReferences: of(set), Labels: by("e-uid")}, want: true},
		"excluded, controlled":         {object: metav1.ObjectMeta{Name: "x", OwnerReferences: of(set), Labels: by(NoCreator)}, want: true},
		"label of the deployment":      {object: metav1.ObjectMeta{Name: "x", Labels: by("d-uid")}, want: true},
		"label of the set":             {object: metav1.ObjectMeta{Name: "x", Labels: by("s-uid")}, want: true},
		"label of another":             {object: metav1.ObjectMeta{Name: "d-bcdfg-hjklm", Labels: by("e-uid")}},
		"excluded by a user":           {object: metav1.ObjectMeta{Name: "d-bcdfg-hjklm", Labels: by(NoCreator)}},
		"name of a Machine":            {object: metav1.ObjectMeta{Name: "d-bcdfg-hjklm"}, want: true},
		"name of a set":                {object: metav1.ObjectMeta{Name: "d-bcdfg"}, want: true},
		"name that a user gave":        {object: metav1.ObjectMeta{Name: "d-debug"}},
		"name of another deployment":   {object: metav1.ObjectMeta{Name: "d-east-bcdfg-hjklm"}},
		"other name":                   {object: metav1.ObjectMeta{Name: "e-bcdfg"}},
		"being deleted":                {object: metav1.ObjectMeta{Name: "x", OwnerReferences: of(set), DeletionTimestamp: &now}},
		"preserved":                    {object: metav1.ObjectMeta{Name: "d-bcdfg-hjklm", Labels: map[string]string{PreservedLabel: "d", CreatorLabel: "d-uid"}}},
		"name that is the creator's":   {object: metav1.ObjectMeta{Name: "d"}},
		"beginning of the same letter": {object: metav1.ObjectMeta{Name: "dd-bcdfg"}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(NewCreator(deployment, set).Counts(&test.object)).To(Equal(test.want))
		})
	}
	long := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("s", 70), UID: "l"}}
	NewWithT(t).Expect(NewCreator(long).Counts(&metav1.ObjectMeta{Name: strings.Repeat("s", 58) + "bcdfg"})).To(BeTrue())
}
