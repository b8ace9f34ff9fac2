package drain

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/testenv"
)

const (
	waiting      = 45 * time.Second
	pollInterval = 10 * time.Millisecond
)

var (
	env    *testenv.Env
	direct client.WithWatch
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, testenv.Options{}, func(e *testenv.Env) (_ func() error, err error) {
		env = e
		direct, err = client.NewWithWatch(env.Config, client.Options{Scheme: clientgoscheme.Scheme})
		return nil, err
	}))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// world is a namespace, a Node of its own, and a Drainer whose requests are counted.
type world struct {
	t         *testing.T
	g         *WithT
	namespace string
	node      *corev1.Node
	drainer   *Drainer
	config    *rest.Config
	requests  *requestLog
	notified  chan types.NamespacedName
}

// newWorld lets the test run beside others, whose worlds have nothing in common with its own.
func newWorld(t *testing.T, c clock.WithDelayedExecution) *world {
	t.Helper()
	t.Parallel()
	name := testenv.Namespace(t, direct)
	w := &world{t: t, g: NewWithT(t), namespace: name, requests: &requestLog{}, notified: make(chan types.NamespacedName, 1000)}
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}})
	w.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	w.create(w.node)
	w.config = rest.CopyConfig(env.Config)
	w.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return w.requests.over(next) })
	w.drainer = New(Options{Clock: c, Notify: func(key types.NamespacedName) { w.notified <- key }, ProgressInterval: 50 * time.Millisecond})
	t.Cleanup(w.drainer.Close)
	return w
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.g.Expect(direct.Create(w.t.Context(), object)).To(Succeed())
}

// pod makes a pod on the Node.
func (w *world) pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName:   w.node.Name,
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	w.t.Helper()
	w.create(pod)
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	// It may be gone already: an eviction of its predecessor that met it between its forced deletion and its end deletes once more, by
	// name alone (deleteWithoutFinalizers of the API server's registry).
	w.g.Expect(client.IgnoreNotFound(direct.Status().Patch(w.t.Context(), pod, client.MergeFrom(before)))).To(Succeed())
	return pod
}

// budget makes a PodDisruptionBudget for the pods, with the status that its controller would give it.
func (w *world) budget(allowed int32) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(4)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
	w.create(budget)
	w.allow(budget, allowed)
	return budget
}

func (w *world) allow(budget *policyv1.PodDisruptionBudget, allowed int32) {
	w.g.Expect(direct.Get(w.t.Context(), client.ObjectKeyFromObject(budget), budget)).To(Succeed())
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptionsAllowed: allowed,
		CurrentHealthy: 4 + allowed, DesiredHealthy: 4, ExpectedPods: 6,
	}
	w.g.Expect(direct.Status().Update(w.t.Context(), budget)).To(Succeed())
}

// request is what a reconciler would hand over, with the Node as it is now.
func (w *world) request(change ...func(*Request)) Request {
	w.g.Expect(direct.Get(w.t.Context(), client.ObjectKeyFromObject(w.node), w.node)).To(Succeed())
	request := Request{
		Key:     types.NamespacedName{Namespace: "machines", Name: w.namespace},
		Cluster: types.NamespacedName{Namespace: "machines", Name: w.namespace},
		Config:  w.config,
		Node:    w.node.DeepCopy(),
	}
	for _, c := range change {
		c(&request)
	}
	return request
}

func (w *world) step(change ...func(*Request)) Result {
	result, err := w.drainer.Step(w.t.Context(), w.request(change...))
	w.g.Expect(err).NotTo(HaveOccurred())
	return result
}

// end removes a pod, as its kubelet does.
func (w *world) end(names ...string) {
	for _, name := range names {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		w.g.Expect(client.IgnoreNotFound(direct.Delete(w.t.Context(), pod, client.GracePeriodSeconds(0)))).To(Succeed())
	}
}

// terminating reports which of the pods have a deletion timestamp.
func (w *world) terminating() []string {
	pods := &corev1.PodList{}
	w.g.Expect(direct.List(w.t.Context(), pods, client.InNamespace(w.namespace))).To(Succeed())
	var names []string
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			names = append(names, pods.Items[i].Name)
		}
	}
	return names
}

// kept counts the drains and the target clusters that the drainer holds.
func (w *world) kept() (drains, targets int) {
	w.drainer.mu.Lock()
	defer w.drainer.mu.Unlock()
	return len(w.drainer.drains), len(w.drainer.targets)
}

// target is the target cluster of the world's drain.
func (w *world) target() *target {
	key := w.request().Key
	w.drainer.mu.Lock()
	defer w.drainer.mu.Unlock()
	return w.drainer.drains[key].target
}

func (w *world) eventually(check func(Gomega)) {
	w.t.Helper()
	w.g.Eventually(check).WithTimeout(waiting).WithPolling(pollInterval).Should(Succeed())
}

// requestLog counts requests by what they are.
type requestLog struct {
	mu    sync.Mutex
	kinds map[string]int
	// answer may answer a request in place of the server.
	answer func(*http.Request) *http.Response
	// outage lets nothing through; open are the requests under way, by what ends them.
	outage bool
	open   []context.CancelFunc
}

var podPath = regexp.MustCompile(`/pods/[^/]+/eviction$`)

func kindOf(r *http.Request) string {
	switch {
	case podPath.MatchString(r.URL.Path):
		return "evict"
	case r.Method == http.MethodDelete:
		parts := strings.Split(r.URL.Path, "/")
		return "delete " + strings.TrimSuffix(parts[len(parts)-2], "s")
	case r.Method == http.MethodPatch:
		return "patch"
	case r.URL.Query().Get("watch") != "":
		return "watch " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	default:
		return strings.ToLower(r.Method) + " " + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	}
}

func (l *requestLog) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		l.mu.Lock()
		if l.kinds == nil {
			l.kinds = map[string]int{}
		}
		l.kinds[kindOf(r)]++
		answer, outage := l.answer, l.outage
		if r.URL.Query().Get("watch") != "" && !outage {
			ctx, end := context.WithCancel(r.Context())
			l.open = append(l.open, end)
			r = r.WithContext(ctx)
		}
		l.mu.Unlock()
		if outage {
			return refused(r)
		}
		if answer != nil {
			if response := answer(r); response != nil {
				return response, nil
			}
		}
		return next.RoundTrip(r)
	})
}

func (l *requestLog) count() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]int{}
	for kind, number := range l.kinds {
		counts[kind] = number
	}
	return counts
}

func (l *requestLog) setAnswer(answer func(*http.Request) *http.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
