package machinedeployment

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/core/machineset"
	"millwright.dev/core/safety/overshoot"
	"millwright.dev/test/coretest/workers"
)

// world is a namespace with a Cluster and templates a and b, and a manager with both controllers and one that
// plays the Machine controller.
type world struct {
	*workers.Fixture
	machines *machinePlayer
	// clock is that of the deployment controller; nil for the real one.
	clock clock.PassiveClock
	// change may alter the deployment controller before it starts.
	change func(*Reconciler)
	// wire may put something between the manager and the network.
	wire func(http.RoundTripper) http.RoundTripper
	// overshoot has the guard against overshoots run as well.
	overshoot *overshoot.Options
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Fixture: suite.New(t)}
	for _, name := range []string{"a", "b"} {
		w.Create(w.Template(workers.InfraTemplateKind, name))
	}
	w.Create(w.Template(workers.ConfigTemplateKind, "a"))
	return w
}

// deployment makes a MachineDeployment that fits the world; change may alter it before it is created.
func (w *world) deployment(replicas int32, change ...func(*clusterv1.MachineDeployment)) {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "d"},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: workers.ClusterName,
			Replicas:    &replicas,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Template:    workers.MachineTemplate("a"),
		},
	}
	for _, c := range change {
		c(deployment)
	}
	w.Create(deployment)
}

// start runs a manager for this namespace alone; wrap may put something between it and the API server.
func (w *world) start(t *testing.T, wrap ...func(client.WithWatch) client.Client) {
	t.Helper()
	m := workers.Manager{Transport: w.wire, SetUp: w.setUp}
	if len(wrap) > 0 {
		m.Wrap = wrap[0]
	}
	w.Start(t, m)
}

// setUp adds both controllers and the one that plays the third.
func (w *world) setUp(_ context.Context, mgr ctrl.Manager) error {
	options := controller.Options{MaxConcurrentReconciles: 2}
	guard := &overshoot.Guard{}
	informers := external.NewInformers(&version.Resolver{Reader: mgr.GetCache()}, mgr.GetCache(), mgr.GetAPIReader(), mgr.GetRESTMapper())
	sets := &machineset.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Informers: informers, Overshoot: guard}
	if w.overshoot != nil {
		pattern := &overshoot.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Guard: guard, Options: *w.overshoot}
		if err := overshoot.Setup(mgr, pattern, options); err != nil {
			return err
		}
	}
	if err := sets.SetupWithManager(mgr, options); err != nil {
		return err
	}
	deployments := &Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Clock: w.clock, Overshoot: guard, Informers: informers,
	}
	if w.change != nil {
		w.change(deployments)
	}
	if err := deployments.SetupWithManager(mgr, options); err != nil {
		return err
	}
	if w.machines == nil {
		w.machines = &machinePlayer{}
	}
	return ctrl.NewControllerManagedBy(mgr).Named("machine-player").For(&clusterv1.Machine{}).WithOptions(options).Complete(w.machines)
}

func (w *world) current() *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKey{Namespace: w.Namespace, Name: "d"}, deployment)).To(Succeed())
	return deployment
}

// scaleBy patches the scale subresource, as autoscalers do.
func (w *world) scaleBy(delta int32) {
	scale := &autoscalingv1.Scale{}
	deployment := w.current()
	w.G.Expect(direct.SubResource("scale").Get(w.Ctx, deployment, scale)).To(Succeed())
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, scale.Spec.Replicas+delta)
	w.G.Expect(direct.SubResource("scale").Patch(w.Ctx, deployment, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

func (w *world) update(change func(*clusterv1.MachineDeployment)) {
	deployment := w.current()
	before := deployment.DeepCopy()
	change(deployment)
	w.G.Expect(direct.Patch(w.Ctx, deployment, client.MergeFrom(before))).To(Succeed())
}

// allSets are the sets of the deployment, those that are kept as history included.
func (w *world) allSets() []clusterv1.MachineSet {
	list := &clusterv1.MachineSetList{}
	w.G.Expect(direct.List(w.Ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	return list.Items
}

// listSets are the sets that are to have Machines.
func (w *world) listSets() []clusterv1.MachineSet {
	return slices.DeleteFunc(w.allSets(), func(set clusterv1.MachineSet) bool { return ptr.Deref(set.Spec.Replicas, 0) == 0 })
}

// running is satisfied when the deployment has n Machines, all available and up to date, of one set.
func (w *world) running(n int32) func(Gomega) {
	return func(g Gomega) {
		deployment := w.current()
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(deployment.Status.Replicas).To(HaveValue(Equal(n)))
		g.Expect(deployment.Status.AvailableReplicas).To(HaveValue(Equal(n)))
		g.Expect(deployment.Status.UpToDateReplicas).To(HaveValue(Equal(n)))
		g.Expect(deployment.Status.Phase).To(Equal("Running"))
		g.Expect(w.listSets()).To(HaveLen(1))
	}
}
