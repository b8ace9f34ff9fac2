package drain

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// BenchmarkDrains compares the beginning of many drains with the API server itself: with the same cordons, watches and
// evictions, sent by as many callers as a drain's requests have places. It reports both in milliseconds, and their ratio.
// How long either takes depends on the computer; the ratio should stay near 1.
//
//	go test ./core/drain -run '^$' -bench Drains -benchtime 1x
func BenchmarkDrains(b *testing.B) {
	const nodes = 1000
	for round := range b.N {
		bare := podsOnNodes(b, fmt.Sprintf("bare-%d-%d", b.N, round), nodes)
		began := time.Now()
		sendBare(b, bare)
		direct := time.Since(began)

		drained := podsOnNodes(b, fmt.Sprintf("drained-%d-%d", b.N, round), nodes)
		began = time.Now()
		drainAll(b, drained)
		took := time.Since(began)
		b.ReportMetric(float64(direct.Milliseconds()), "bare-ms")
		b.ReportMetric(float64(took.Milliseconds()), "drains-ms")
		b.ReportMetric(took.Seconds()/direct.Seconds(), "drains/bare")
	}
}

// podsOnNodes makes Nodes with one pod each, of the same name.
func podsOnNodes(b *testing.B, namespace string, n int) []*corev1.Pod {
	b.Helper()
	must(direct.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(direct.Create(b.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}))
	pods := make([]*corev1.Pod, n)
	inParallel(maxStarting, n, func(i int) {
		name := fmt.Sprintf("%s-%d", namespace, i)
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		must(direct.Create(b.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		must(direct.Create(b.Context(), pods[i]))
	})
	return pods
}

// sendBare sends what drains send, without any drain.
func sendBare(b *testing.B, pods []*corev1.Pod) {
	b.Helper()
	t, err := newTarget(rest.CopyConfig(env.Config))
	must(err)
	defer t.close()
	nodes := &corev1.NodeList{}
	must(direct.List(b.Context(), nodes))
	uids := map[string]types.UID{}
	for i := range nodes.Items {
		uids[nodes.Items[i].Name] = nodes.Items[i].UID
	}
	inParallel(maxStarting, len(pods), func(i int) {
		node := pods[i].Spec.NodeName
		must(t.cordon(b.Context(), node, uids[node]))
		watch, err := t.core.Pods(metav1.NamespaceAll).Watch(b.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
		must(err)
		b.Cleanup(watch.Stop)
		must(t.evict(b.Context(), trim(pods[i]), nil))
	})
}

// drainAll begins the drains of all Nodes, and waits until every pod has been evicted.
func drainAll(b *testing.B, pods []*corev1.Pod) {
	b.Helper()
	notified := make(chan types.NamespacedName, 100*len(pods))
	drainer := New(Options{Notify: func(key types.NamespacedName) { notified <- key }, ProgressInterval: 20 * time.Millisecond})
	defer drainer.Close()
	requests := map[types.NamespacedName]Request{}
	for _, pod := range pods {
		key := types.NamespacedName{Namespace: "m", Name: pod.Spec.NodeName}
		requests[key] = Request{
			Key: key, Cluster: types.NamespacedName{Name: "c"}, Config: env.Config,
			Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}},
		}
		_, err := drainer.Step(b.Context(), requests[key])
		must(err)
	}
	for len(requests) > 0 {
		key := <-notified
		request, waiting := requests[key]
		if !waiting {
			continue
		}
		result, err := drainer.Step(b.Context(), request)
		must(err)
		if len(result.Pods[Terminating]) > 0 {
			delete(requests, key)
		}
	}
}
