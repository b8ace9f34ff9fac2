package machines

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestAClusterOfThePastOwnsNoSet: the cache still has a Cluster that no longer exists, or that was recreated. The garbage collector
// would delete whatever it owned.
func TestAClusterOfThePastOwnsNoSet(t *testing.T) {
	for name, test := range map[string]struct {
		live types.UID
		owns bool
	}{
		"it exists": {"now", true}, "gone": {"", false}, "recreated": {"another", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "now"}}
			set := &clusterv1.MachineSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set)
			if test.live != "" {
				api.WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: test.live}})
			}
			owners, end := OwnedByCluster(t.Context(), api.Build(), set.OwnerReferences, cluster)
			if !test.owns {
				g.Expect(end.Err()).NotTo(HaveOccurred())
				g.Expect(end.Finished()).To(BeFalse())
				g.Expect(end.After()).To(BeNumerically(">", 0), "no event need come")
				return
			}
			g.Expect(end.Finished()).To(BeTrue())
			g.Expect(owners).To(ConsistOf(ClusterReference(cluster)))
			_, end = OwnedByCluster(t.Context(), nil, owners, cluster)
			g.Expect(end.Finished()).To(BeTrue(), "what is owned already costs no request")
		})
	}
}

// TestWithOwner: an owner of the same name and kind is replaced, with what it was; all others stay, and so does the list that was read.
func TestWithOwner(t *testing.T) {
	g := NewWithT(t)
	owner := ClusterReference(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "now"}})
	g.Expect(owner).To(Equal(metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "c", UID: "now"}))
	others := []metav1.OwnerReference{
		{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "d", UID: "d"},
		{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineDeployment", Name: "c", UID: "e"},
		{APIVersion: "example.com/v1", Kind: "Cluster", Name: "c", UID: "f"},
		{APIVersion: "a/b/c", Kind: "Cluster", Name: "c", UID: "g"},
	}
	g.Expect(WithOwner(others, owner)).To(Equal(append(slices.Clone(others), owner)))
	g.Expect(WithOwner(nil, owner)).To(ConsistOf(owner))
	spacious := make([]metav1.OwnerReference, 1, 2)
	g.Expect(WithOwner(spacious, owner)).To(HaveLen(2))
	g.Expect(spacious[:2][1]).To(BeZero(), "nothing is written behind the end of the list that was read")

	earlier := metav1.OwnerReference{
		APIVersion:         "cluster.x-k8s.io/v1beta1",
		Kind:               "Cluster",
		Name:               "c",
		UID:                "before",
		Controller:         ptr.To(true),
		BlockOwnerDeletion: ptr.To(false),
	}
	read := append(slices.Clone(others), earlier)
	got := WithOwner(read, owner)
	replaced := owner
	replaced.Controller, replaced.BlockOwnerDeletion = ptr.To(true), ptr.To(false)
	g.Expect(got).To(Equal(append(slices.Clone(others), replaced)))
	g.Expect(read[len(others)]).To(Equal(earlier))
	broken := owner
	broken.APIVersion = "a/b/c"
	g.Expect(WithOwner([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Cluster", Name: "c"}}, broken)).To(HaveLen(2))
}

// TestAClusterThatCannotBeRead: nothing is concluded.
func TestAClusterThatCannotBeRead(t *testing.T) {
	g := NewWithT(t)
	lost := errors.New("no answer")
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return lost
		},
	})
	_, end := OwnedByCluster(t.Context(), api, nil, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}})
	g.Expect(end.Err()).To(MatchError(lost))
}
