package machinehealth_test

import (
	"context"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/conditions"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/health"
	"millwright.dev/core/machinehealth"
	"millwright.dev/core/machinehealthcheck"
	"millwright.dev/core/remote"
	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/coretest/workers"
)

var (
	suite  workers.Suite
	direct client.Client
)

func TestMain(m *testing.M) {
	os.Exit(workers.Main(m, func(s workers.Suite) { suite, direct = s, s.Client }))
}

// world is a namespace with a Cluster that is the API server of the test, and a manager with the controllers. The Machine controller
// is played by the test.
type world struct {
	*workers.Fixture
	t *testing.T
	// refuse, if set, may refuse a write by the controllers.
	refuse func(verb string, object client.Object) error
	// writes and rounds count what the controllers do.
	writes, rounds atomic.Int64
	events         *events.FakeRecorder
	freeze         freeze.Source
	defaults       health.Defaults
	kubeconfig     []byte
	// recheck, if not zero, is how often requests of external remediation are looked for; unreadable, if set, is what comes of it.
	recheck    time.Duration
	unreadable func() error
	// transport, if set, is between the manager and the API server.
	transport func(http.RoundTripper) http.RoundTripper
	judge     *machinehealth.Reconciler
}

// newWorld makes a namespace whose Cluster is ready for Machines.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{Fixture: suite.New(t), t: t, events: events.NewFakeRecorder(1000), kubeconfig: suite.Env.Kubeconfig}
	cluster := &clusterv1.Cluster{}
	w.G.Expect(direct.Get(w.Ctx, w.key(workers.ClusterName), cluster)).To(Succeed())
	before := cluster.DeepCopy()
	for _, kind := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition} {
		conditions.Set(&cluster.Status.Conditions, conditions.True(kind, "Done", ""), 1, time.Now())
	}
	w.G.Expect(direct.Status().Patch(w.Ctx, cluster, client.MergeFrom(before))).To(Succeed())
	return w
}

func (w *world) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.Namespace, Name: name}
}

// start runs a manager for the namespace, after the Secret with the kubeconfig.
func (w *world) start() {
	w.t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: shared.SecretName(workers.ClusterName), Labels: map[string]string{clusterv1.ClusterNameLabel: workers.ClusterName}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": w.kubeconfig},
	}
	w.G.Expect(client.IgnoreAlreadyExists(direct.Create(w.Ctx, secret))).To(Succeed())
	w.Start(w.t, workers.Manager{Wrap: w.wrap, SetUp: w.setUp, Transport: w.transport})
}

func (w *world) setUp(_ context.Context, mgr ctrl.Manager) error {
	connections := remote.New(shared.Options{
		Secrets: mgr.GetAPIReader(), Scheme: mgr.GetScheme(), UserAgent: "test", QPS: -1, MinRetry: 50 * time.Millisecond, MaxRetry: time.Second,
		ProbeInterval: time.Second,
	})
	options := controller.Options{MaxConcurrentReconciles: 2}
	connect := &shared.Reconciler{Client: mgr.GetClient(), Connections: connections.Connections, WatchSecrets: true}
	if err := connect.SetupWithManager(mgr, options); err != nil {
		return err
	}
	results := &machinehealth.Results{}
	judge := &machinehealth.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Connections: connections, Results: results, Freeze: w.freeze,
		Recorder: w.events, Clock: clock.RealClock{}, Options: machinehealth.Options{Defaults: w.defaults},
	}
	machinehealth.Recheck(judge, w.recheck, time.Second)
	if w.unreadable != nil {
		judge.APIReader = failing{Reader: judge.APIReader, err: w.unreadable}
	}
	machinehealth.OnRound(judge, func(reconcile.Request) { w.rounds.Add(1) })
	w.judge = judge
	if err := judge.SetupWithManager(mgr, options); err != nil {
		return err
	}
	checks := &machinehealthcheck.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Results: results, Recorder: w.events, Clock: clock.RealClock{},
	}
	return checks.SetupWithManager(mgr, options)
}

// failing reads nothing of the API server.
type failing struct {
	client.Reader
	err func() error
}

func (f failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err()
}

// wrap counts and refuses writes.
func (w *world) wrap(c client.WithWatch) client.Client {
	before := func(verb string, object client.Object) error {
		w.writes.Add(1)
		if w.refuse == nil {
			return nil
		}
		return w.refuse(verb, object)
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := before("create", object); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if err := before("delete", object); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := before("patch", object); err != nil {
				return err
			}
			return c.Patch(ctx, object, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if err := before(sub, object); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
}

// machine makes a Machine, labelled pool=a, and its Node with that condition Ready; without a Node for "".
func (w *world) machine(name string, ready corev1.ConditionStatus, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	w.t.Helper()
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{
			"pool": "a", clusterv1.ClusterNameLabel: workers.ClusterName}},
		Spec: clusterv1.MachineSpec{
			ClusterName: workers.ClusterName, ProviderID: "test:///" + w.Namespace + "/" + name,
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("none")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "test.example.com", Kind: "None", Name: name},
		},
	}
	for _, c := range change {
		c(m)
	}
	w.Create(m)
	if ready != "" {
		w.node(name, ready)
		w.status(name, func(s *clusterv1.MachineStatus) { s.NodeRef.Name = w.nodeName(name) })
	}
	return m
}

func (w *world) nodeName(machine string) string { return w.Namespace + "-" + machine }

// node makes the Node of a Machine.
func (w *world) node(machine string, ready corev1.ConditionStatus) {
	w.t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: w.nodeName(machine)}, Spec: corev1.NodeSpec{ProviderID: "test:///" + w.Namespace + "/" + machine},
	}
	w.Create(node)
	w.t.Cleanup(func() { _ = direct.Delete(context.WithoutCancel(w.Ctx), node) })
	w.reports(machine, ready, 0)
}

// reports has the kubelet of a Machine report Ready, since a while.
func (w *world) reports(machine string, ready corev1.ConditionStatus, since time.Duration) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodeName(machine)}}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(node), node)).To(Succeed())
	before := node.DeepCopy()
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Kubelet", LastHeartbeatTime: now,
		LastTransitionTime: metav1.NewTime(now.Add(-since))}}
	w.G.Expect(direct.Status().Patch(w.Ctx, node, client.MergeFrom(before))).To(Succeed())
}

// status changes the status of a Machine, as the Machine controller does.
func (w *world) status(name string, change func(*clusterv1.MachineStatus)) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		m := &clusterv1.Machine{}
		g.Expect(direct.Get(w.Ctx, w.key(name), m)).To(Succeed())
		before := m.DeepCopy()
		change(&m.Status)
		g.Expect(direct.Status().Patch(w.Ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
	})
}

// check makes a MachineHealthCheck of pool=a, by which a Node must not be other than Ready for a second.
func (w *world) check(name string, change ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	w.t.Helper()
	c := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: workers.ClusterName, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: "False", TimeoutSeconds: ptr.To[int32](1)}}},
		},
	}
	for _, f := range change {
		f(c)
	}
	w.Create(c)
	return c
}

// said is status and reason of a condition of a Machine; "" without one.
func (w *world) said(name, kind string) string {
	m := &clusterv1.Machine{}
	if err := direct.Get(w.Ctx, w.key(name), m); err != nil {
		return err.Error()
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, kind); c != nil {
		return string(c.Status) + "/" + c.Reason
	}
	return ""
}

const (
	succeeded, owner, external = clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineExternallyRemediatedCondition
	well, ill, waiting         = "True/HealthCheckSucceeded", "False/UnhealthyNode", "False/WaitingForRemediation"
)

// becomes waits until a Machine says so.
func (w *world) becomes(name, kind, want string) {
	w.t.Helper()
	w.G.Eventually(func() string { return w.said(name, kind) }).WithTimeout(workers.Timeout).WithPolling(workers.PollInterval).Should(Equal(want))
}

// current reads a MachineHealthCheck.
func (w *world) current(name string) *clusterv1.MachineHealthCheck {
	c := &clusterv1.MachineHealthCheck{}
	w.G.Expect(direct.Get(w.Ctx, w.key(name), c)).To(Succeed())
	return c
}

// counts waits until a MachineHealthCheck has these numbers, and RemediationAllowed that status and reason.
func (w *world) counts(name string, targets, healthy, allowed int32, condition string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		c := w.current(name)
		g.Expect(c.Status.ExpectedMachines).To(HaveValue(Equal(targets)))
		g.Expect(c.Status.CurrentHealthy).To(HaveValue(Equal(healthy)))
		g.Expect(c.Status.RemediationsAllowed).To(HaveValue(Equal(allowed)))
		g.Expect(c.Status.Targets).To(HaveLen(int(targets)))
		g.Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))
		found := meta.FindStatusCondition(c.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
		g.Expect(found).NotTo(BeNil())
		g.Expect(string(found.Status) + "/" + found.Reason).To(Equal(condition))
	})
}

// change changes an object, whatever others write meanwhile.
func change[O client.Object](w *world, object O, f func(O)) {
	w.t.Helper()
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	f(object)
	w.G.Expect(direct.Patch(w.Ctx, object, client.MergeFrom(before))).To(Succeed())
}
