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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
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
	// freezing, if set, has the next manager freeze with these options, by what it knows of its target.
	freezing   *freeze.Options
	defaults   health.Defaults
	kubeconfig []byte
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
	return newWorldAlone(t)
}

// newWorldAlone makes one beside which no other test runs: they all have the Nodes of one API server.
func newWorldAlone(t *testing.T) *world {
	t.Helper()
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
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Namespace,
			Name:      shared.SecretName(workers.ClusterName),
			Labels:    map[string]string{clusterv1.ClusterNameLabel: workers.ClusterName},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": w.kubeconfig},
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
	if w.freezing != nil {
		w.freeze = freeze.New(*w.freezing, clock.RealClock{}, freeze.Connected{Connections: connections})
	}
	results := &machinehealth.Results{}
	judge := &machinehealth.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Connections: connections, Results: results, Freeze: w.freeze,
		Recorder: w.events, Clock: clock.RealClock{}, Options: machinehealth.Options{Defaults: w.defaults},
	}
	machinehealth.Recheck(judge, w.recheck)
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
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			if err := before(sub, object); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		},
	})
}

const (
	succeeded, owner, external = clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
		clusterv1.MachineExternallyRemediatedCondition
	well, ill, waiting = "True/HealthCheckSucceeded", "False/UnhealthyNode", "False/WaitingForRemediation"
)
