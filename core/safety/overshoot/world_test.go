package overshoot_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/core/index"
	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/refuse"
)

var (
	// suite is what the tests share; each has a namespace of its own.
	suite workers.Suite
	// direct reads and writes without a cache.
	direct client.Client
)

func TestMain(m *testing.M) {
	os.Exit(workers.Main(m, func(s workers.Suite) { suite, direct = s, s.Client }))
}

// world is a namespace with a Cluster, and reconcilers that are called by the test, whose cache can lie.
type world struct {
	*workers.Fixture
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	// hides are the names of Machines that the cache does not show; ghosts is how many it shows of each set that there are not.
	hides  map[string]bool
	ghosts int
	// refused refuses patches.
	refused refuse.Patches
	// deployments and sets are the reconcilers; guard is theirs.
	deployments, sets *overshoot.Reconciler
	guard             *overshoot.Guard
	// change is applied to both when they are created.
	change func(*overshoot.Reconciler)
	lists  atomic.Int32
}

func newWorld(t *testing.T, change ...func(*overshoot.Reconciler)) *world {
	t.Helper()
	w := &world{
		Fixture: suite.New(t), clock: clocktesting.NewFakeClock(time.Now()), recorder: events.NewFakeRecorder(100), hides: map[string]bool{},
		change: func(r *overshoot.Reconciler) {
			for _, c := range change {
				c(r)
			}
		},
	}
	w.restart()
	return w
}

// restart is another process: it knows nothing but what is written.
func (w *world) restart() {
	w.guard = &overshoot.Guard{}
	inner, err := client.NewWithWatch(suite.Env.Config, client.Options{Scheme: direct.Scheme(), Mapper: direct.RESTMapper()})
	w.G.Expect(err).NotTo(HaveOccurred())
	made := func() *overshoot.Reconciler {
		r := &overshoot.Reconciler{
			Client: interceptor.NewClient(w.refused.Wrap(inner).(client.WithWatch), interceptor.Funcs{List: w.cached}), APIReader: w.live(inner),
			Guard: w.guard, Recorder: w.recorder, Options: overshoot.DefaultOptions(), Clock: w.clock,
		}
		w.change(r)
		return r
	}
	w.deployments, w.sets = made(), made().ForSets()
}

// live counts the lists that are asked of the API server.
func (w *world) live(inner client.WithWatch) client.Reader {
	return interceptor.NewClient(inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.lists.Add(1)
			return c.List(ctx, list, options...)
		},
	})
}

// cached lists Machines by their set, as a cache with its index does.
func (w *world) cached(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	found, ok := list.(*clusterv1.MachineList)
	if !ok {
		return c.List(ctx, list, options...)
	}
	of := (&client.ListOptions{}).ApplyOptions(options)
	if err := c.List(ctx, found, client.InNamespace(of.Namespace)); err != nil {
		return err
	}
	var items []clusterv1.Machine
	for _, machine := range found.Items {
		controller := index.NoController
		if owner := metav1.GetControllerOf(&machine); owner != nil {
			controller = string(owner.UID)
		}
		if !w.hides[machine.Name] && of.FieldSelector.String() == index.Controller+"="+controller {
			items = append(items, machine)
		}
	}
	for range w.ghosts {
		items = append(items, clusterv1.Machine{})
	}
	found.Items = items
	return nil
}

// deployment creates a MachineDeployment with a number of replicas and a surge of one.
func (w *world) deployment(name string, replicas int32) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: workers.ClusterName, Replicas: &replicas, Template: workers.MachineTemplate("t"),
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
		},
	}
	w.Create(deployment)
	return deployment
}

// set creates a MachineSet that has read its spec, of a deployment or of none.
func (w *world) set(name string, replicas int32, deployment *clusterv1.MachineDeployment) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: workers.ClusterName, Replicas: &replicas, Template: workers.MachineTemplate("t"),
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
		},
	}
	if deployment != nil {
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, clusterv1.GroupVersion.WithKind("MachineDeployment"))}
	}
	w.Create(set)
	w.observe(set)
	return set
}

// observe is what a set does that has read its spec.
func (w *world) observe(set *clusterv1.MachineSet) {
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
	set.Status.ObservedGeneration = set.Generation
	w.G.Expect(direct.Status().Update(w.Ctx, set)).To(Succeed())
}

// scale gives an object another number of replicas.
func (w *world) scale(object client.Object, replicas int32) {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	w.G.Expect(direct.Patch(w.Ctx, object, patch)).To(Succeed())
}

// machines creates Machines as a user would, with an owner reference to their set. They have a finalizer.
func (w *world) machines(set *clusterv1.MachineSet, names ...string) {
	for _, name := range names {
		machine := &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.Namespace, Name: name, Finalizers: []string{"test/kept"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))},
			},
			Spec: workers.MachineTemplate("t").Spec,
		}
		w.Create(machine)
	}
}

// remove has Machines deleted, which does not end them.
func (w *world) remove(names ...string) {
	for _, name := range names {
		w.G.Expect(direct.Delete(w.Ctx, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}})).To(Succeed())
	}
}

// annotate sets an annotation of an object, label a label; nil as the value removes it.
func (w *world) annotate(object client.Object, key, value string) {
	w.patch(object, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, value))
}

func (w *world) label(object client.Object, value string) {
	w.patch(object, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, overshoot.FrozenLabel, value))
}

func (w *world) patch(object client.Object, patch string) {
	w.G.Expect(direct.Patch(w.Ctx, object, client.RawPatch("application/merge-patch+json", []byte(patch)))).To(Succeed())
}

// reconciler is that for a kind.
func (w *world) reconciler(object client.Object) *overshoot.Reconciler {
	if _, ok := object.(*clusterv1.MachineSet); ok {
		return w.sets
	}
	return w.deployments
}

// reconcile reconciles an object, which is then as the API server has it, and returns when it is to be again.
func (w *world) reconcile(object client.Object) time.Duration {
	result, err := w.try(object)
	w.G.Expect(err).NotTo(HaveOccurred())
	return result
}

func (w *world) try(object client.Object) (time.Duration, error) {
	result, err := w.reconciler(object).Reconcile(w.Ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	w.G.Expect(client.IgnoreNotFound(direct.Get(w.Ctx, client.ObjectKeyFromObject(object), object))).To(Succeed())
	return result.RequeueAfter, err
}

// frozen is the label of an object; "none" without.
func frozen(object client.Object) string {
	value, ok := object.GetLabels()[overshoot.FrozenLabel]
	return map[bool]string{true: value, false: "none"}[ok]
}

// events are those since the last call.
func (w *world) events() []string {
	found := []string{}
	for {
		select {
		case event := <-w.recorder.Events:
			found = append(found, event)
		default:
			return found
		}
	}
}

// metric is the reason that the metric has for an object, "" without.
func (w *world) metric(object client.Object) string {
	families, err := metrics.Registry.Gather()
	w.G.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() != "millwright_creation_frozen" {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range series.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			if labels["namespace"] == object.GetNamespace() && labels["name"] == object.GetName() {
				return labels["reason"]
			}
		}
	}
	return ""
}

// pause pauses the Cluster, or ends that.
func (w *world) pause(paused bool) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: workers.ClusterName}}
	w.patch(cluster, fmt.Sprintf(`{"spec":{"paused":%t}}`, ptr.Deref(&paused, false)))
}
