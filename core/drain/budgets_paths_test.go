package drain

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

func TestStep_BudgetRefuses_IsBlockedUntilItAllows(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	w.pod("a")
	w.pod("b")
	budget := w.budget(0)
	w.step()
	w.g.Eventually(w.notified).WithTimeout(waiting).Should(Receive())
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Pods[Blocked]).To(HaveLen(2))
		g.Expect(result.Pods[Blocked][0].PodDisruptionBudget).To(Equal("web"))
		g.Expect(result.Message).To(ContainSubstring("PodDisruptionBudget " + w.namespace + "/web forbids it"))
		g.Expect(result.NextDeadline).To(BeTemporally(">", fake.Now()))
	})
	w.g.Expect(w.requests.count()["evict"]).To(Equal(2))
	w.g.Consistently(func() int { return w.requests.count()["evict"] }).WithTimeout(200*time.Millisecond).Should(Equal(2), "nothing is polled")

	fake.Step(3 * time.Second)
	w.eventually(func(g Gomega) { g.Expect(w.requests.count()["evict"]).To(Equal(4)) })
	w.g.Expect(w.step().Pods[Blocked]).To(HaveLen(2), "a retry does not look like progress")

	w.allow(budget, 1)
	w.eventually(func(g Gomega) {
		fake.Step(time.Second)
		g.Expect(w.terminating()).To(HaveLen(1))
	})
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Pods[Blocked]).To(HaveLen(1))
		g.Expect(result.Pods[Terminating]).To(HaveLen(1))
	})
}

// TestBudgetChanged_AllowsEviction_RetriesAtOnce stops the clock, so that no retry by time can be what does it.
func TestBudgetChanged_AllowsEviction_RetriesAtOnce(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(time.Now()))
	w.pod("a")
	w.pod("b")
	budget := w.budget(0)
	w.step()
	w.eventually(func(g Gomega) {
		g.Expect(w.step().Pods[Blocked]).To(HaveLen(2))
		g.Expect(w.requests.count()["watch poddisruptionbudgets"]).To(Equal(1))
	})
	w.allow(budget, 1)
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(HaveLen(1)) })
	w.g.Expect(direct.Delete(t.Context(), budget)).To(Succeed())
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(HaveLen(2)) })
	w.g.Expect(w.requests.count()["evict"]).To(BeNumerically("<=", 6), "only what is allowed is tried")
}

func TestExplain_BudgetCannotBeSatisfied_IsNamed(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.drainer = New(Options{ProgressInterval: time.Hour, Notify: func(key types.NamespacedName) { w.notified <- key }})
	t.Cleanup(w.drainer.Close)
	budget := w.budget(0)
	budget.Status.ExpectedPods, budget.Status.CurrentHealthy, budget.Status.DesiredHealthy = 1, 1, 1
	w.g.Expect(direct.Status().Update(t.Context(), budget)).To(Succeed())
	message := w.step().Message
	for !strings.Contains(message, "PodDisruptionBudget "+w.namespace+"/web can never be satisfied") {
		w.g.Eventually(w.notified).WithTimeout(waiting).Should(Receive(), "that is reported at once: %s", message)
		message = w.step().Message
	}
	second := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "second"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(0)), Selector: withLabel("app", "web")},
	}
	w.create(second)
	w.eventually(func(g Gomega) {
		g.Expect(w.step().Message).To(ContainSubstring("several PodDisruptionBudgets select it, so the API server refuses every eviction; leave one of them: second, web"))
	})
}
