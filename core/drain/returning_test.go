package drain

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tolerant makes a pod tolerate the cordon, as of a ReplicaSet of the Deployment web.
func tolerant(p *corev1.Pod) {
	p.Labels["pod-template-hash"] = "5d9c"
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d9c", UID: types.UID("set-" + p.Namespace), Controller: ptr.To(true),
	}}
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

// replaced stands in for a ReplicaSet controller, a scheduler that may place pods on the cordoned Node, and its kubelet: each
// pod that is being deleted goes at once, and another one comes. It counts those that have come.
func (w *world) replaced(change ...func(*corev1.Pod)) *atomic.Int32 {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	pods, err := direct.Watch(ctx, &corev1.PodList{}, client.InNamespace(w.namespace))
	w.g.Expect(err).NotTo(HaveOccurred())
	// The steps of the drain write the Node of the world.
	name, came, ended := w.node.Name, &atomic.Int32{}, make(chan struct{})
	w.t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		going := map[types.UID]bool{}
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || ctx.Err() != nil || going[pod.UID] || event.Type != watch.Deleted && pod.DeletionTimestamp == nil {
				continue
			}
			going[pod.UID] = true
			successor := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: w.namespace,
					Name:      fmt.Sprintf("back-%d", came.Add(1)),
					Labels:    map[string]string{"app": "web"},
				},
				Spec: corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			}
			for _, c := range change {
				c(successor)
			}
			// The namespace may be gone with the test.
			_ = direct.Create(ctx, successor)
			_ = direct.Delete(ctx, pod, client.GracePeriodSeconds(0))
		}
	}()
	return came
}

// TestPodsThatReturnAreEvictedOncePerReplicaAndInterval: three replicas that tolerate the cordon come back to the Node as
// soon as they have been evicted. The clock moves only when the test moves it, so that what is evicted is evicted by events.
func TestPodsThatReturnAreEvictedOncePerReplicaAndInterval(t *testing.T) {
	const replicas = 3
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	came := w.replaced(tolerant)
	for i := range replicas {
		w.pod(fmt.Sprintf("web-%d", i), tolerant)
	}
	w.step()
	for round := 1; round <= 3; round++ {
		w.g.Eventually(came.Load).WithTimeout(waiting).Should(BeEquivalentTo(round * replicas))
		w.g.Consistently(came.Load).WithTimeout(500*time.Millisecond).Should(BeEquivalentTo(round*replicas), "once per replica and interval")
		w.g.Expect(w.requests.count()["evict"]).To(Equal(round * replicas))
		w.eventually(func(g Gomega) {
			g.Expect(w.step().Message).
				To(ContainSubstring("Deployment " + w.namespace + "/web tolerates the cordon and returns to the Node: remove the toleration"))
		})
		fake.Step(20 * time.Second)
	}
}

// pass moves the clock by intervals until the drain is done.
func (w *world) pass(fake *clocktesting.FakeClock, replicas, most int) {
	w.t.Helper()
	for range most {
		// Every pod that is evicted is replaced before the clock moves on.
		w.eventually(func(g Gomega) {
			result := w.step()
			g.Expect(result.Done || len(result.Returning) == replicas).To(BeTrue(), result.Message)
		})
		if w.step().Done {
			return
		}
		fake.Step(20 * time.Second)
	}
	w.t.Fatalf("The drain has not ended: %s", w.step().Message)
}

func TestADrainContinuesWithoutPodsThatReturn(t *testing.T) {
	const replicas = 2
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	came := w.replaced(tolerant)
	for i := range replicas {
		w.pod(fmt.Sprintf("web-%d", i), tolerant)
	}
	notified := 0
	step := func() Result {
		result := w.step()
		if result.LeftNow {
			notified++
		}
		return result
	}
	for range 6 {
		w.eventually(func(g Gomega) { g.Expect(step().Returning).To(HaveLen(replicas)) })
		fake.Step(20 * time.Second)
	}
	w.eventually(func(g Gomega) { g.Expect(step().Done).To(BeTrue()) })
	w.g.Expect(came.Load()).To(BeEquivalentTo(6*replicas), "once for each interval within two minutes")
	w.g.Expect(step().LeftOwners).To(ConsistOf(Owner{Name: "Deployment " + w.namespace + "/web", ToleratesCordon: true}))
	w.g.Expect(notified).To(Equal(1))

	w.pod("another", tolerant)
	w.g.Consistently(func() bool { return step().Done }).
		WithTimeout(300*time.Millisecond).
		Should(BeTrue(), "another one does not begin it again")
	w.pod("bound")
	w.g.Consistently(func() bool { return step().Done }).
		WithTimeout(300*time.Millisecond).
		Should(BeTrue(), "nor one that is bound to the Node")
}

// TestADrainContinuesWithoutPodsWhoseBudgetHasGrantedEachReplica: the budget has granted its evictions, so they count as returning like any
// other.
func TestADrainContinuesWithoutPodsWhoseBudgetHasGrantedEachReplica(t *testing.T) {
	const replicas = 2
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	w.budget(100)
	came := w.replaced(tolerant)
	for i := range replicas {
		w.pod(fmt.Sprintf("web-%d", i), tolerant)
	}
	w.pass(fake, replicas, 8)
	w.g.Expect(w.step().LeftOwners).To(ConsistOf(Owner{Name: "Deployment " + w.namespace + "/web", ToleratesCordon: true}))
	w.g.Expect(came.Load()).To(BeNumerically(">=", replicas))
}

// TestADrainDoesNotGoOnWithoutPodsThatABudgetProtects: the end of the machine honours no budget, so one that has not granted
// an eviction is waited for.
func TestADrainDoesNotGoOnWithoutPodsThatABudgetProtects(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	w.budget(0)
	w.eventually(func(g Gomega) { g.Expect(w.step().Done).To(BeTrue()) })
	w.pod("web", tolerant)
	w.eventually(func(g Gomega) { g.Expect(w.step().Returning).To(HaveLen(1)) })
	w.neverDone(fake)
}

// TestADrainDoesNotGoOnWithoutPodsWithClaims: their volumes would be torn from them.
func TestADrainDoesNotGoOnWithoutPodsWithClaims(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	claimed := func(p *corev1.Pod) { tolerant(p); claiming("data", 0)(p) }
	came := w.replaced(claimed)
	w.pod("db", claimed)
	w.eventually(func(g Gomega) { g.Expect(w.step().Returning).To(HaveLen(1)) })
	w.neverDone(fake)
	w.g.Expect(came.Load()).To(BeNumerically(">", 6), "it is evicted time and again")
}

// neverDone moves the clock beyond the grace.
func (w *world) neverDone(fake *clocktesting.FakeClock) {
	w.t.Helper()
	for range 9 {
		w.eventually(func(g Gomega) {
			result := w.step()
			g.Expect(len(result.Returning) + len(result.Blocked)).To(Equal(1))
			g.Expect(result.Done).To(BeFalse())
		})
		fake.Step(20 * time.Second)
	}
	w.eventually(func(g Gomega) {
		result := w.step()
		g.Expect(result.Done).To(BeFalse())
		g.Expect(result.Message).To(ContainSubstring(
			"except for pods with PersistentVolumeClaims, and those whose PodDisruptionBudget has not granted the eviction of each replica"))
	})
}

// TestPodsOfEverNewOwnersReturn: a client that creates pods with spec.nodeName can name another owner each time, or none.
func TestPodsOfEverNewOwnersReturn(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	came := w.replaced()
	w.pod("agent")
	w.eventually(func(g Gomega) {
		g.Expect(w.step().Message).
			To(ContainSubstring("Pod " + w.namespace + "/back-1 returns to the cordoned Node without tolerating the cordon"))
	})
	w.g.Consistently(came.Load).WithTimeout(500*time.Millisecond).Should(BeEquivalentTo(1), "an interval each")
	w.pass(fake, 1, 7)
}

// TestPodsThatSetTheNodeThemselvesReturn: they need no toleration.
func TestPodsThatSetTheNodeThemselvesReturn(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	intolerant := func(p *corev1.Pod) { tolerant(p); p.Spec.Tolerations = nil }
	came := w.replaced(intolerant)
	w.pod("web", intolerant)
	w.eventually(func(g Gomega) {
		g.Expect(w.step().Message).
			To(ContainSubstring("Deployment " + w.namespace + "/web returns to the cordoned Node without tolerating the cordon"))
	})
	w.g.Consistently(came.Load).WithTimeout(500 * time.Millisecond).Should(BeEquivalentTo(1))
	w.pass(fake, 1, 7)
}

// TestPodsOfAForgedOwnerAreTreatedAlone: anyone who may create pods may name any owner, and holds up nothing by that but its
// own pod: what was on the Node before is evicted at once, and waited for.
func TestPodsOfAForgedOwnerAreTreatedAlone(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	w.pod("rightful", tolerant)
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("rightful")) })
	w.pod("forged", tolerant)
	w.eventually(func(g Gomega) { g.Expect(w.step().Returning).To(HaveLen(1)) })
	fake.Step(20 * time.Second)
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("forged", "rightful")) })
	w.end("forged")
	for range 8 {
		w.pod("forged", tolerant)
		w.eventually(func(g Gomega) { g.Expect(w.step().Returning).To(Or(HaveLen(1), BeEmpty())) })
		fake.Step(20 * time.Second)
		w.end("forged")
	}
	w.g.Expect(w.step().Done).To(BeFalse())
	w.g.Expect(w.step().Terminating).To(HaveLen(1), "the rightful one ends in its own time")
}

// TestRestartDoesNotEvictPodsThatReturnAtOnce: the process before may have evicted their predecessors a moment ago.
func TestRestartDoesNotEvictPodsThatReturnAtOnce(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Now())
	w := newWorld(t, fake)
	w.node.Spec.Unschedulable = true
	w.g.Expect(direct.Update(t.Context(), w.node)).To(Succeed())
	w.pod("tolerant", tolerant)
	w.pod("other")
	w.step()
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("other")) })
	w.g.Consistently(w.terminating).WithTimeout(300 * time.Millisecond).Should(ConsistOf("other"))
	fake.Step(20 * time.Second)
	w.eventually(func(g Gomega) { g.Expect(w.terminating()).To(ConsistOf("other", "tolerant")) })
}

// TestAForcedDrainDeletesPodsThatReturnOnce: it is done without those that have come since.
func TestAForcedDrainDeletesPodsThatReturnOnce(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(time.Now()))
	came := w.replaced(tolerant)
	w.pod("web", tolerant)
	w.eventually(func(g Gomega) {
		result := w.step(func(r *Request) { r.Mode = Forced })
		g.Expect(result.Done).To(BeTrue())
		g.Expect(result.LeftOwners).To(HaveLen(1))
	})
	w.g.Consistently(came.Load).WithTimeout(300 * time.Millisecond).Should(BeEquivalentTo(1))
}
