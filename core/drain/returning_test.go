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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tolerant makes a pod tolerate the cordon.
func tolerant(p *corev1.Pod) {
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

// TestStep_PodsReturn_AreEvictedOncePerInterval: three replicas that tolerate the cordon come back to the Node as
// soon as they have been evicted. The clock moves only when the test moves it, so that what is evicted is evicted by events.
func TestStep_PodsReturn_AreEvictedOncePerInterval(t *testing.T) {
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
				To(ContainSubstring("left alone for a moment, since they have returned to the cordoned Node: pods " + w.namespace + "/back-"))
		})
		fake.Step(20 * time.Second)
	}
}

// TestStep_ForcedAndPodsReturn_DeletesEachReplicaOnce: it is done without those that have come since.
func TestStep_ForcedAndPodsReturn_DeletesEachReplicaOnce(t *testing.T) {
	w := newWorld(t, clocktesting.NewFakeClock(time.Now()))
	came := w.replaced(tolerant)
	w.pod("web", tolerant)
	w.eventually(func(g Gomega) {
		result := w.step(func(r *Request) { r.Mode = Forced })
		g.Expect(result.Done).To(BeTrue())
		g.Expect(result.Pods[Staying]).To(HaveLen(1))
	})
	w.g.Consistently(came.Load).WithTimeout(300 * time.Millisecond).Should(BeEquivalentTo(1))
}
