package drain

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestManyNodesDrainAtOnce has three callers begin drains of many Nodes, each blocked by a budget, so that
// none can end: all have tried to evict within seconds, and no caller is held up.
func TestManyNodesDrainAtOnce(t *testing.T) {
	const nodes, callers = 300, 3
	w := newWorld(t, realClock)
	w.budget(0)
	requests := make([]Request, nodes)
	inParallel(callers*4, nodes, func(i int) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.namespace, i)}}
		must(direct.Create(t.Context(), node))
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("p%d", i), Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		must(direct.Create(t.Context(), pod))
		before := pod.DeepCopy()
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		must(direct.Status().Patch(t.Context(), pod, client.MergeFrom(before)))
		requests[i] = Request{
			Key: types.NamespacedName{Namespace: "m", Name: node.Name}, Cluster: types.NamespacedName{Name: "c"},
			Config: w.config, Node: node,
		}
	})

	began := time.Now()
	inParallel(callers, nodes, func(i int) {
		_, err := w.drainer.Step(t.Context(), requests[i])
		must(err)
	})
	w.g.Expect(time.Since(began)).To(BeNumerically("<", 10*time.Second), "Step does not wait for the network")
	w.g.Eventually(func() int {
		blocked := 0
		for i := range requests {
			result, err := w.drainer.Step(t.Context(), requests[i])
			must(err)
			blocked += len(result.Blocked)
		}
		return blocked
	}).WithTimeout(30 * time.Second).WithPolling(500 * time.Millisecond).Should(Equal(nodes))
	t.Logf("%d drains had begun after %s", nodes, time.Since(began).Round(time.Millisecond))
	w.g.Expect(w.requests.count()["patch"]).To(Equal(nodes))
	w.g.Expect(w.requests.count()["watch pods"]).To(Equal(nodes))
}

// inParallel calls do for 0 to n-1 from a number of goroutines.
func inParallel(workers, n int, do func(int)) {
	var running sync.WaitGroup
	next := make(chan int)
	for range workers {
		running.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	running.Wait()
}
