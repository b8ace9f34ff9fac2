package drain

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAFightOverTheCordonIsBounded counts the patches of a drain whose Node a user uncordons as soon as it is cordoned.
func TestAFightOverTheCordonIsBounded(t *testing.T) {
	g := NewWithT(t)
	c, start := cordon{}, time.Unix(1e9, 0)
	patches, held := 0, false
	node := func(unschedulable bool) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Unschedulable: unschedulable}}
	}
	cordoned := func(now time.Time) {
		patches++
		c.attempt, c.done, c.last = attempt{}, true, now
		c.observe(node(true), now, DefaultMinRetry)
	}
	now := start
	for ; now.Sub(start) < time.Hour; now = now.Add(100 * time.Millisecond) {
		c.observe(node(false), now, DefaultMinRetry)
		if c.done || !c.due(now) {
			held = true
			g.Expect(c.reason).To(ContainSubstring("another client uncordons Node n"))
			p := &plan{}
			c.plan(p)
			g.Expect(p.next).To(Equal(c.retryAt), "it comes back by itself")
			continue
		}
		cordoned(now)
	}
	t.Log(patches)
	g.Expect(held).To(BeTrue())
	g.Expect(patches).To(BeNumerically(">", freeCordons), "it is tried again")
	g.Expect(patches).To(BeNumerically("<=", 25))

	cordoned(now.Add(maxCordonPause))
	now = now.Add(maxCordonPause + cordonMemory + time.Second)
	c.observe(node(false), now, DefaultMinRetry)
	g.Expect(c.due(now)).To(BeTrue(), "a cordon that has stood for long is no fight")
}

// TestAFightOverTheCordonIsReported: what is waited for, and what to do, is in the message, and nothing is evicted meanwhile.
func TestAFightOverTheCordonIsReported(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.budget(0)
	uncordon := func() {
		w.eventually(func(g Gomega) {
			w.step()
			g.Expect(w.node.Spec.Unschedulable).To(BeTrue())
		})
		w.node.Spec.Unschedulable = false
		w.g.Expect(direct.Update(t.Context(), w.node)).To(Succeed())
	}
	w.step()
	for range freeCordons {
		uncordon()
		w.step()
	}
	w.g.Expect(w.step().Message).To(ContainSubstring("another client uncordons Node " + w.node.Name + " each time it is cordoned"))
	w.g.Expect(w.requests.count()["patch"]).To(Equal(freeCordons))
	w.eventually(func(g Gomega) {
		g.Expect(w.requests.count()["patch"]).To(Equal(freeCordons+1), "nothing has to wake it")
		g.Expect(w.step().Message).NotTo(ContainSubstring("somebody"))
	})
}

// TestACordonThatIsUndoneBeforeItIsSeen: a controller that uncordons a Node at once is faster than the caller, who
// never sees it cordoned.
func TestACordonThatIsUndoneBeforeItIsSeen(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.budget(0)
	old := w.request().Node
	for n := range freeCordons {
		w.eventually(func(g Gomega) {
			w.step(func(request *Request) { request.Node = old })
			g.Expect(w.requests.count()["patch"]).To(Equal(n + 1))
			g.Expect(direct.Get(t.Context(), client.ObjectKeyFromObject(w.node), w.node)).To(Succeed())
			g.Expect(w.node.Spec.Unschedulable).To(BeTrue())
		})
		w.node.Spec.Unschedulable = false
		w.g.Expect(direct.Update(t.Context(), w.node)).To(Succeed())
		old = w.request().Node
	}
	w.eventually(func(g Gomega) {
		g.Expect(w.step().Message).To(ContainSubstring("another client uncordons Node " + w.node.Name + " each time it is cordoned"))
	})
	w.eventually(func(g Gomega) {
		g.Expect(w.requests.count()["patch"]).To(Equal(freeCordons+1), "nothing has to wake it")
	})
}

// TestTheCordonIsForOneNodeAlone: the Node was deleted and another one has its name. That is not cordoned, and its pods stay,
// until the caller has seen it.
func TestTheCordonIsForOneNodeAlone(t *testing.T) {
	w := newWorld(t, realClock)
	first, second := w.node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node.Name}}
	w.g.Expect(direct.Delete(t.Context(), first.DeepCopy())).To(Succeed())
	w.create(second)
	w.node = second
	pod := w.pod("a")
	unaware := func(request *Request) { request.Node = first }
	w.eventually(func(g Gomega) {
		g.Expect(w.step(unaware).Message).To(ContainSubstring("cannot cordon the Node: another Node has its name now"))
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
