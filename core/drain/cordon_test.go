package drain

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCordon_NodeUncordonedTimeAndAgain_PausesBetweenPatches counts the patches of a drain whose Node another client uncordons
// as soon as it is cordoned.
func TestCordon_NodeUncordonedTimeAndAgain_PausesBetweenPatches(t *testing.T) {
	c, patches := cordon{}, 0
	for now := start; now.Sub(start) < time.Minute; now = now.Add(100 * time.Millisecond) {
		c.observe(&corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}}, now)
		if !c.done && c.due(now) {
			patches++
			c = cordon{done: true, version: "1", attempt: attempt{retryAt: now.Add(2 * time.Second)}}
		}
	}
	g := NewWithT(t)
	g.Expect(patches).To(Equal(30))
	c.observe(&corev1.Node{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}, start.Add(time.Hour))
	g.Expect(c.done).To(BeTrue(), "the caller's Node is older than the patch")
}

// TestCordon_OtherNodeOfTheName_IsLeftAlone: the Node was deleted and another one has its name. That is not cordoned, and its pods stay,
// until the caller has seen it.
func TestCordon_OtherNodeOfTheName_IsLeftAlone(t *testing.T) {
	w := newWorld(t, realClock)
	first, second := w.node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node.Name}}
	w.g.Expect(direct.Delete(t.Context(), first.DeepCopy())).To(Succeed())
	w.create(second)
	w.node = second
	pod := w.pod("a")
	unaware := func(request *Request) { request.Node = first }
	w.eventually(func(g Gomega) {
		g.Expect(w.step(unaware).Message).To(ContainSubstring("cannot cordon the Node: "))
	})
	w.g.Expect(direct.Get(t.Context(), client.ObjectKeyFromObject(second), second)).To(Succeed())
	w.g.Expect(second.Spec.Unschedulable).To(BeFalse())
	w.g.Expect(direct.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	w.g.Expect(pod.DeletionTimestamp).To(BeNil())
	w.g.Expect(w.requests.count()["evict"]).To(BeZero())

	w.eventually(func(g Gomega) {
		w.step()
		g.Expect(client.IgnoreNotFound(direct.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))).To(Succeed())
		g.Expect(pod.DeletionTimestamp).NotTo(BeNil())
	})
}
