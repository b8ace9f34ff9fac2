package drain

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var realClock = clock.RealClock{}

func TestStep_OrdinaryPods_AreDrainedWithFewRequests(t *testing.T) {
	w := newWorld(t, realClock)
	for _, name := range []string{"a", "b", "c"} {
		w.pod(name)
	}
	w.pod("static", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })

	first := w.step()
	w.g.Expect(first.Done).To(BeFalse())
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("a", "b", "c")) })
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Pods[Terminating]).To(HaveLen(3))
		g.Expect(result.Pods[Evicting]).To(BeEmpty())
		g.Expect(result.Pods[Staying]).To(HaveLen(1))
		g.Expect(result.Message).To(ContainSubstring("waiting for termination of pods"))
	})
	w.g.Expect(w.node.Spec.Unschedulable).To(BeTrue())

	w.end("a", "b")
	w.g.Consistently(func() bool { return w.step().Done }).WithTimeout(200 * time.Millisecond).Should(BeFalse())
	w.end("c")
	w.g.Eventually(w.notified).WithTimeout(waiting).Should(Receive(Equal(w.request().Key)))
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Done).To(BeTrue())
		g.Expect(result.Message).To(BeEmpty())
	})
	w.g.Expect(w.requests.count()).
		To(Equal(map[string]int{"patch": 1, "watch pods": 1, "watch volumeattachments": 1, "evict": 3}), "streamed lists and watches")
}

func TestStep_NodeCordonedAndEmpty_WritesNothing(t *testing.T) {
	w := newWorld(t, realClock)
	w.node.Spec.Unschedulable = true
	w.g.Expect(direct.Update(t.Context(), w.node)).To(Succeed())
	w.eventually(func(g Gomega) { g.Expect(w.step().Done).To(BeTrue()) })
	w.g.Expect(w.requests.count()).To(Equal(map[string]int{"watch pods": 1, "watch volumeattachments": 1}))
}

func TestStep_EvictionThrottled_WaitsAsAsked(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	w.pod("a")
	w.requests.setAnswer(func(r *http.Request) *http.Response {
		if kindOf(r) != "evict" {
			return nil
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","message":"too busy","code":429,"details":{"retryAfterSeconds":17}}`
		return &http.Response{
			StatusCode: http.StatusTooManyRequests, Request: r, Body: io.NopCloser(bytes.NewBufferString(body)),
			Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"17"}},
		}
	})
	w.step()
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Pods[Blocked]).To(ConsistOf(HaveField("Reason", "too busy")))
		g.Expect(result.Pods[Blocked][0].PodDisruptionBudget).To(BeEmpty())
		g.Expect(result.NextDeadline).To(Equal(fake.Now().Add(17 * time.Second)))
	})
	fake.Step(10 * time.Second)
	w.g.Consistently(func() int { return w.requests.count()["evict"] }).WithTimeout(200 * time.Millisecond).Should(Equal(1))
	w.requests.setAnswer(nil)
	fake.Step(10 * time.Second)
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("a")) })
}

func TestStep_CordonRefused_EvictsNothing(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	w.pod("a")
	w.requests.setAnswer(func(r *http.Request) *http.Response {
		if kindOf(r) != "patch" {
			return nil
		}
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no right to patch","code":403}`
		return &http.Response{
			StatusCode: http.StatusForbidden, Request: r, Body: io.NopCloser(bytes.NewBufferString(body)),
			Header: http.Header{"Content-Type": {"application/json"}},
		}
	})
	w.step()
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Listed).To(BeTrue())
		g.Expect(result.Message).To(ContainSubstring("cannot cordon the Node: no right to patch"))
	})
	w.g.Expect(w.terminating()).To(BeEmpty())
	w.requests.setAnswer(nil)
	fake.Step(5 * time.Second)
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("a")) })
}

func TestStep_PodComesLater_IsEvicted(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("a")) })
	w.pod("late")
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("a", "late")) })
}

func TestEvict_SuccessorOfThePod_IsLeftAlone(t *testing.T) {
	w := newWorld(t, realClock)
	stale := w.pod("a")
	w.end("a")
	w.pod("a", func(p *corev1.Pod) { p.Spec.NodeName = "elsewhere" })
	target, err := newTarget(w.config)
	w.g.Expect(err).NotTo(HaveOccurred())
	answer := toOutcome(target.evict(t.Context(), trim(stale), nil))
	w.g.Expect(answer.ok).To(BeTrue(), "the pod that was meant has gone: %s", answer.reason)
	w.g.Expect(w.terminating()).To(BeEmpty())
}

func TestStep_PodsOfDaemonSets_StayUnlessOrphaned(t *testing.T) {
	w := newWorld(t, realClock)
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
	w.create(set)
	owned := func(uid types.UID) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: uid, Controller: ptr.To(true)},
			}
		}
	}
	w.pod("agent", owned(set.UID))
	w.pod("orphan", owned("gone"))
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("orphan")) })
	w.end("orphan")
	w.eventually(func(g Gomega) { g.Expect(w.step().Done).To(BeTrue()) })
	w.g.Expect(w.requests.count()["watch daemonsets"]).To(Equal(1))
}

func TestStep_NodeUnreachable_EndsWithoutItsPods(t *testing.T) {
	w := newWorld(t, realClock)
	w.node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	w.g.Expect(direct.Status().Update(t.Context(), w.node)).To(Succeed())
	w.pod("a")
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("a")) })
	w.eventually(func(g Gomega) { g.Expect(w.step().Done).To(BeTrue()) })
	w.g.Expect(w.terminating()).To(ConsistOf("a"), "its kubelet cannot end it")
}

func TestStep_AfterARestart_Resumes(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("a")) })
	w.drainer.Close()
	_, err := w.drainer.Step(t.Context(), w.request())
	w.g.Expect(err).To(HaveOccurred(), "a closed Drainer says so")

	before := w.requests.count()["evict"]
	w.drainer = New(Options{})
	t.Cleanup(w.drainer.Close)
	w.eventually(func(g Gomega) { g.Expect(w.step().Pods[Terminating]).To(HaveLen(1)) })
	w.end("a")
	w.eventually(func(g Gomega) { g.Expect(w.step().Done).To(BeTrue()) })
	w.g.Expect(w.requests.count()["evict"]).To(Equal(before), "what terminates is not evicted again")
}

func TestCordon_NodeUncordoned_IsCordonedAgain(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.step()
	w.eventually(func(g Gomega) {
		w.step()
		g.Expect(w.node.Spec.Unschedulable).To(BeTrue())
	})
	w.step()
	w.node.Spec.Unschedulable = false
	w.g.Expect(direct.Update(t.Context(), w.node)).To(Succeed())
	w.eventually(func(g Gomega) {
		w.step()
		g.Expect(w.node.Spec.Unschedulable).To(BeTrue())
	})
	w.g.Expect(w.requests.count()["patch"]).To(Equal(2))
}

func TestForget_LeavesNothingBehind(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a")
	w.budget(0)
	settle := func() int {
		runtime.GC()
		return runtime.NumGoroutine()
	}
	before := settle()
	for range 20 {
		w.step()
		w.drainer.Forget(w.request().Key)
	}
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.step().Pods[Blocked]).To(HaveLen(1)) })
	w.drainer.Forget(w.request().Key)
	w.drainer.Forget(types.NamespacedName{Name: "never was"})
	drains, _ := w.kept()
	w.g.Expect(drains).To(BeZero())
	w.drainer.Close()
	_, targets := w.kept()
	w.g.Expect(targets).To(BeZero())
	// The transports of this test's own client live on, with two goroutines for a connection.
	w.g.Eventually(settle).WithTimeout(waiting).WithPolling(pollInterval).Should(BeNumerically("<=", before+2))
}

func TestStep_OtherConfig_MakesAnotherConnection(t *testing.T) {
	w := newWorld(t, realClock)
	w.pod("a", func(p *corev1.Pod) { p.Labels = map[string]string{"cluster.x-k8s.io/drain": "wait-completed"} })
	w.eventually(func(g Gomega) { g.Expect(w.step().Pods[Completing]).To(HaveLen(1)) })
	first := w.target()

	w.step()
	w.g.Expect(w.target()).To(BeIdenticalTo(first))
	w.config = rest.CopyConfig(w.config)
	w.step()
	w.g.Expect(w.target()).NotTo(BeIdenticalTo(first))
}

func TestStep_EmptyRequest_Fails(t *testing.T) {
	g := NewWithT(t)
	drainer := New(Options{})
	defer drainer.Close()
	_, err := drainer.Step(t.Context(), Request{})
	g.Expect(err).To(HaveOccurred())
}
