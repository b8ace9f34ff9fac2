package remote

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// TestWhichChangesOfNodesAreNotified: that a Node appears, changes in a field that is cached, or goes, also when its end was missed.
func TestWhichChangesOfNodesAreNotified(t *testing.T) {
	node := func(version, label string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version, Labels: map[string]string{"l": label}}}
	}
	type notice struct {
		label string
		gone  bool
	}
	for name, test := range map[string]struct {
		does func(cache.ResourceEventHandler)
		want []notice
	}{
		"it appears":                 {func(h cache.ResourceEventHandler) { h.OnAdd(node("1", "a"), false) }, []notice{{"a", false}}},
		"it changes":                 {func(h cache.ResourceEventHandler) { h.OnUpdate(node("1", "a"), node("2", "b")) }, []notice{{"b", false}}},
		"nothing of it is different": {func(h cache.ResourceEventHandler) { h.OnUpdate(node("1", "a"), node("2", "a")) }, nil},
		"it is read again":           {func(h cache.ResourceEventHandler) { h.OnUpdate(node("1", "a"), node("1", "a")) }, nil},
		"it goes":                    {func(h cache.ResourceEventHandler) { h.OnDelete(node("1", "a")) }, []notice{{"a", true}}},
		"it has gone unseen": {
			func(h cache.ResourceEventHandler) {
				h.OnDelete(cache.DeletedFinalStateUnknown{Key: "n", Obj: node("1", "a")})
			}, []notice{{"a", true}},
		},
		"what is no Node": {func(h cache.ResourceEventHandler) {
			h.OnAdd(&corev1.Pod{}, false)
			h.OnUpdate(&corev1.Pod{}, node("1", "a"))
			h.OnUpdate(node("1", "a"), &corev1.Pod{})
			h.OnDelete(&corev1.Pod{})
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []notice
			test.does(nodeHandler(func(node *corev1.Node, gone bool) { got = append(got, notice{node.Labels["l"], gone}) }))
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

// TestNodesOfAProviderID: a Node without one is under none.
func TestNodesOfAProviderID(t *testing.T) {
	g, index := NewWithT(t), indexers[byProviderID]
	g.Expect(index(&corev1.Node{Spec: corev1.NodeSpec{ProviderID: "p"}})).To(Equal([]string{"p"}))
	g.Expect(index(&corev1.Node{})).To(BeEmpty())
	g.Expect(index(&corev1.Pod{})).To(BeEmpty())
}
