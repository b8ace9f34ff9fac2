package drain

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestStep_ManyNodes_NoCallerWaits has ten callers, like ten workers of a controller, begin the drains of hundreds of Nodes,
// each with a pod that does not end: all are evicted, no caller is held up, and no request is sent twice. How fast the drains of a
// thousand begin is measured by make bench-drain.
func TestStep_ManyNodes_NoCallerWaits(t *testing.T) {
	const nodes, callers = 300, 10
	w := newWorld(t, realClock)
	// Nothing reads the notifications of this one.
	w.drainer = New(Options{})
	t.Cleanup(w.drainer.Close)
	var connections atomic.Int32
	w.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connections.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	requests := make([]Request, nodes)
	inParallel(callers, nodes, func(i int) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.namespace, i)}}
		must(direct.Create(t.Context(), node))
		must(direct.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: fmt.Sprintf("p%d", i)},
			Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}))
		requests[i] = Request{
			Key: types.NamespacedName{Namespace: "m", Name: node.Name}, Cluster: types.NamespacedName{Name: "c"},
			Config: w.config, Node: node,
		}
	})

	// No answer comes before all have begun.
	gate, stepped := make(chan struct{}), make(chan struct{})
	w.requests.setAnswer(func(*http.Request) *http.Response { <-gate; return nil })
	go func() {
		defer close(stepped)
		inParallel(callers, nodes, func(i int) {
			_, err := w.drainer.Step(t.Context(), requests[i])
			must(err)
		})
	}()
	w.g.Eventually(stepped).WithTimeout(time.Minute).Should(BeClosed(), "Step does not wait for the network")
	close(gate)
	w.g.Eventually(func() int { return w.requests.count()["evict"] }).
		WithTimeout(2*time.Minute).
		WithPolling(100*time.Millisecond).Should(BeNumerically(">=", nodes), "an answer that is late is asked for again")
	w.g.Eventually(func() int {
		terminating := 0
		for i := range requests {
			result, err := w.drainer.Step(t.Context(), requests[i])
			must(err)
			terminating += len(result.Pods[Terminating])
		}
		return terminating
	}).WithTimeout(time.Minute).WithPolling(500 * time.Millisecond).Should(Equal(nodes))
	// Three requests for each Node share them. Ten have room for all, but a request that finds none that is free dials, and on a busy
	// processor many do before the first dial ends.
	w.g.Expect(connections.Load()).To(BeNumerically("<", nodes), "connections are shared")
	t.Logf("%d connections", connections.Load())
	counts := w.requests.count()
	w.g.Expect(counts).To(HaveKeyWithValue("watch volumeattachments", 1))
	if counts["evict"] == nodes {
		// No answer was late.
		w.g.Expect(counts).To(And(HaveKeyWithValue("patch", nodes), HaveKeyWithValue("watch pods", nodes)))
	}
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
