package approval

import (
	"context"
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/remote"
	"millwright.dev/test/testenv"
)

var (
	env    *testenv.Env
	scheme = testenv.Scheme(bootstrapv1.AddToScheme)
)

func TestMain(m *testing.M) {
	options := testenv.Options{APIServerArgs: map[string]string{"authorization-mode": "Node,RBAC"}}
	os.Exit(testenv.Main(m, options, func(e *testenv.Env) (func() error, error) {
		env = e
		return nil, createNodesNamespace()
	}))
}

// createNodesNamespace does what config/target-cluster does.
func createNodesNamespace() error {
	admin, err := client.New(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	if err != nil {
		return err
	}
	return admin.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: nodeaccess.DefaultNamespace}})
}

// fixture is a real target cluster, and a management cluster as the manager's cache shows it.
type fixture struct {
	*WithT
	t         *testing.T
	remote    client.Client
	connected bool
	// live is what the reconciler reads without a cache; nil for what the cache has.
	live    client.Reader
	cluster *clusterv1.Cluster
	machine *clusterv1.Machine
	config  *bootstrapv1.CloudConfig
	names   nodeaccess.Names
	events  *events.FakeRecorder
	// outcomes, if set, are notified of requests.
	outcomes *Outcomes
	// refusals, if set, bound the events.
	refusals *refusals
	// watchFilter is that of the manager.
	watchFilter string
}

func newFixture(t *testing.T, namespace string) *fixture {
	t.Helper()
	f := &fixture{WithT: NewWithT(t), t: t, connected: true, events: events.NewFakeRecorder(100)}
	f.remote = f.as("", nil)
	f.cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster"}}
	f.machine = &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "machine-1", UID: "uid-of-machine-1", CreationTimestamp: metav1.Now()},
		Spec: clusterv1.MachineSpec{ClusterName: "cluster", ProviderID: "aws:///a/i-1", Bootstrap: clusterv1.Bootstrap{
			ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: "CloudConfig", APIGroup: bootstrapv1.GroupVersion.Group, Name: "config"},
		}},
	}
	f.config = &bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "config",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.machine, clusterv1.GroupVersion.WithKind("Machine"))},
	}}
	f.names = nodeaccess.NamesFor(namespace, "cluster", "machine-1")
	f.Expect(f.remote.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: nodeaccess.DefaultNamespace,
			Name:      f.names.Object(),
			Labels:    map[string]string{nodeaccess.HashLabel: f.names.Hash},
		},
		Data: map[string][]byte{node.JoinTokenKey: []byte("abcdef.0123456789abcdef")},
	})).To(Succeed())
	return f
}

// as returns a client that impersonates.
func (f *fixture) as(user string, groups []string) client.Client {
	config := rest.CopyConfig(env.Config)
	if user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")}
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	return c
}

func (f *fixture) GetReader(context.Context, client.ObjectKey) (client.Reader, error) {
	return f.GetUncachedClient(context.Background(), client.ObjectKey{})
}

func (f *fixture) GetUncachedClient(context.Context, client.ObjectKey) (client.Client, error) {
	if !f.connected {
		return nil, &remote.NotConnectedError{Reason: remote.Unreachable, Message: "the API server does not answer"}
	}
	return f.remote, nil
}

func (f *fixture) reconcile(request string) error {
	_, err := f.try(request)
	return err
}

func (f *fixture) try(request string) (reconcile.Result, error) {
	home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(f.cluster, f.machine, f.config).WithStatusSubresource(f.machine).
		WithIndex(&clusterv1.Machine{}, hashIndex, indexHash).WithIndex(&clusterv1.Machine{}, nodeIndex, indexNode).Build()
	live := client.Reader(home)
	if f.live != nil {
		live = f.live
	}
	r := &Reconciler{
		Client:      home,
		APIReader:   live,
		Targets:     f,
		Recorder:    f.events,
		Outcomes:    f.outcomes,
		refusals:    f.refusals,
		WatchFilter: f.watchFilter,
	}
	result, err := r.Reconcile(f.t.Context(), Request{Cluster: client.ObjectKeyFromObject(f.cluster), Name: request})
	f.machine.ResourceVersion, f.cluster.ResourceVersion, f.config.ResourceVersion = "", "", ""
	return result, err
}

// ask creates the request as the holder of the join token.
func (f *fixture) ask(name string) {
	f.t.Helper()
	csr := firstRequest(f.t)
	csr.ObjectMeta = metav1.ObjectMeta{Name: name}
	csr.Spec.Username, csr.Spec.Groups = "", nil
	f.Expect(f.as("system:bootstrap:abcdef", []string{f.names.JoinGroup()}).Create(f.t.Context(), csr)).To(Succeed())
}

func (f *fixture) approved(name string) bool {
	csr := &certificatesv1.CertificateSigningRequest{}
	f.Expect(f.as("", nil).Get(f.t.Context(), client.ObjectKey{Name: name}, csr)).To(Succeed())
	return len(csr.Status.Conditions) == 1 && csr.Status.Conditions[0].Type == certificatesv1.CertificateApproved
}

var pausedAnnotation = map[string]string{clusterv1.PausedAnnotation: ""}

func TestReconcile(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*fixture)
		want   bool
		says   string
	}{
		"approves":                         {func(*fixture) {}, true, "Approved"},
		"not connected":                    {func(f *fixture) { f.connected = false }, false, ""},
		"paused":                           {func(f *fixture) { f.cluster.Spec.Paused = ptr.To(true) }, false, ""},
		"the Machine is paused":            {func(f *fixture) { f.machine.Annotations = pausedAnnotation }, false, ""},
		"the CloudConfig is paused":        {func(f *fixture) { f.config.Annotations = pausedAnnotation }, false, ""},
		"a CloudConfig of another Machine": {func(f *fixture) { f.config.OwnerReferences[0].UID = "another" }, false, ""},
		"a CloudConfig of another manager": {func(f *fixture) { f.watchFilter = "mine" }, false, ""},
		"a CloudConfig of this manager": {func(f *fixture) {
			f.watchFilter, f.config.Labels = "mine", map[string]string{clusterv1.WatchLabel: "mine"}
		}, true, "Approved"},
		"left to others":                     {func(f *fixture) { f.config.Spec.Bootstrap.CSRApproval = bootstrapv1.CSRApprovalControllerManager }, false, ""},
		"another provider":                   {func(f *fixture) { f.machine.Spec.Bootstrap.ConfigRef.Kind = "KubeadmConfig" }, false, ""},
		"no CloudConfig":                     {func(f *fixture) { f.config.Name = "another" }, false, ""},
		"another Cluster":                    {func(f *fixture) { f.cluster.Name = "another" }, false, ""},
		"the Machine is linked":              {func(f *fixture) { f.machine.Status.NodeRef.Name = "machine-1" }, false, "has a Node already"},
		"linked with a Node of another name": {func(f *fixture) { f.machine.Status.NodeRef.Name = "attacker" }, true, "Approved"},
		"no Secret":                          {func(f *fixture) { f.Expect(f.remote.Delete(t.Context(), f.nodeSecret())).To(Succeed()) }, false, "a join token of this Machine"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, fmt.Sprintf("ns-%x", name))
			f.ask("csr-" + f.names.Hash)
			tc.change(f)
			f.Expect(f.reconcile("csr-" + f.names.Hash)).To(Succeed())
			f.Expect(f.approved("csr-" + f.names.Hash)).To(Equal(tc.want))
			if tc.says == "" {
				f.Expect(f.events.Events).NotTo(Receive())
			} else {
				f.Expect(f.events.Events).To(Receive(ContainSubstring(tc.says)))
			}
		})
	}
}

func (f *fixture) nodeSecret() *corev1.Secret {
	secret := &corev1.Secret{}
	f.Expect(f.as("", nil).Get(f.t.Context(), client.ObjectKey{Namespace: nodeaccess.DefaultNamespace, Name: f.names.Object()}, secret)).
		To(Succeed())
	return secret
}

// Between the record and the approval the program may end: the same request is approved afterwards,
// and still no other.
func TestACrashBeforeTheApproval(t *testing.T) {
	f := newFixture(t, "crash")
	f.ask("crash-1")
	whole := f.remote
	withWatch, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	f.remote = interceptor.NewClient(withWatch, interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return errors.New("the program has exited")
		},
	})
	f.Expect(f.reconcile("crash-1")).NotTo(Succeed())
	f.Expect(f.nodeSecret().Annotations[ApprovedAnnotation]).To(HavePrefix("crash-1/"))
	f.remote = whole
	f.Expect(f.reconcile("crash-1")).To(Succeed())
	f.Expect(f.approved("crash-1")).To(BeTrue())
	f.Expect(f.reconcile("crash-1")).To(Succeed(), "what is decided is left alone")
	f.ask("crash-2")
	f.Expect(f.reconcile("crash-2")).To(Succeed())
	f.Expect(f.approved("crash-2")).To(BeFalse())
}

// Two requests at once: only one of the two records can be written.
func TestTwoAtOnce(t *testing.T) {
	f := newFixture(t, "race")
	f.Eventually(func(g Gomega) {
		for _, name := range []string{"race-1", "race-2"} {
			old := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
			g.Expect(client.IgnoreNotFound(f.remote.Delete(t.Context(), old))).To(Succeed())
			f.ask(name)
		}
		g.Expect(f.get("race-1").CreationTimestamp).To(Equal(f.get("race-2").CreationTimestamp), "neither is the later one")
	}).Should(Succeed())
	whole := f.remote
	withWatch, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	f.remote = interceptor.NewClient(withWatch, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			f.remote = whole
			f.Expect(f.reconcile("race-2")).To(Succeed(), "another worker is faster")
			return c.Update(ctx, obj, opts...)
		},
	})
	f.Expect(f.reconcile("race-1")).To(Succeed(), "to lose a race is no error")
	f.Expect(f.approved("race-2")).To(BeTrue())
	f.Expect(f.reconcile("race-1")).To(Succeed())
	f.Expect(f.approved("race-1")).To(BeFalse())
}

func TestARequestThatIsGone(t *testing.T) {
	f := newFixture(t, "gone")
	f.Expect(f.reconcile("gone-1")).To(Succeed())
}
