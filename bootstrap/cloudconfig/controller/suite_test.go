package controller

import (
	"cmp"
	"context"
	"errors"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/config"
	"millwright.dev/contracts/remote"
	"millwright.dev/test/testenv"
)

var (
	env    *testenv.Env
	scheme = testenv.Scheme(bootstrapv1.AddToScheme)
)

// TestMain has one API server play management cluster and target cluster, with the authorizers and the authentication that a
// target cluster has, so that tokens are worth what they are worth there.
func TestMain(m *testing.M) {
	options := testenv.Options{
		CRDs:          []testenv.CRDs{testenv.CoreCRDs, testenv.CloudConfigCRDs},
		APIServerArgs: map[string]string{"authorization-mode": "Node,RBAC", "enable-bootstrap-token-auth": "true"},
	}
	os.Exit(testenv.Main(m, options, func(e *testenv.Env) (func() error, error) {
		env = e
		return nil, prepareTarget()
	}))
}

// prepareTarget does what config/target-cluster does.
func prepareTarget() error {
	admin, err := client.New(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	if err != nil {
		return err
	}
	manifest, err := config.Manifests.ReadFile("target-cluster/join_requests.yaml")
	if err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{}
	if err := yaml.UnmarshalStrict(manifest, binding); err != nil {
		return err
	}
	return errors.Join(admin.Create(context.Background(), binding),
		admin.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: nodeaccess.DefaultNamespace}}))
}

// fixture is a Machine with its CloudConfig and Cluster in a namespace of its own.
type fixture struct {
	*WithT
	t       *testing.T
	ctx     context.Context
	client  client.Client
	cluster *clusterv1.Cluster
	machine *clusterv1.Machine
	config  *bootstrapv1.CloudConfig
	names   nodeaccess.Names

	clock     *clocktesting.FakeClock
	events    *events.FakeRecorder
	connected bool
	outcomes  *approval.Outcomes
	// remote is what the reconciler gets as the target's client; home as the management cluster's.
	remote, home client.Client
	// live is what the reconciler reads from the management cluster without a cache; home unless a test says otherwise.
	live client.Client
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{
		WithT:     NewWithT(t),
		t:         t,
		ctx:       t.Context(),
		connected: true,
		clock:     clocktesting.NewFakeClock(time.Now()),
		events:    events.NewFakeRecorder(1000),
	}
	c, err := client.New(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	f.client, f.remote, f.home = c, c, c
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cloudconfig-"}}
	f.create(ns)
	f.cluster = &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "cluster"},
		Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "api.example.com", Port: 6443}},
	}
	f.create(f.cluster)
	f.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	f.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	f.Expect(c.Status().Update(f.ctx, f.cluster)).To(Succeed())
	f.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "cluster-kubeconfig"},
		Data:       map[string][]byte{"value": env.Kubeconfig},
	})
	f.machine = &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "machine", Labels: map[string]string{clusterv1.ClusterNameLabel: "cluster"}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "cluster",
			Bootstrap: clusterv1.Bootstrap{
				ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: "CloudConfig", APIGroup: bootstrapv1.GroupVersion.Group, Name: "machine"},
			},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				Kind:     "AWSMachine",
				APIGroup: "infrastructure.millwright.dev",
				Name:     "machine",
			},
		},
	}
	f.create(f.machine)
	f.config = &bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns.Name, Name: "machine", Labels: map[string]string{clusterv1.ClusterNameLabel: "cluster"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.machine, clusterv1.GroupVersion.WithKind("Machine"))},
	}}
	f.names = nodeaccess.NamesFor(ns.Name, "cluster", "machine")
	return f
}

// configured creates the CloudConfig too.
func configured(t *testing.T, change ...func(*bootstrapv1.CloudConfig)) *fixture {
	t.Helper()
	f := newFixture(t)
	for _, c := range change {
		c(f.config)
	}
	f.create(f.config)
	return f
}

func (f *fixture) create(object client.Object) {
	f.t.Helper()
	f.Expect(f.client.Create(f.ctx, object)).To(Succeed())
}

// GetUncachedClient implements Targets.
func (f *fixture) GetUncachedClient(context.Context, client.ObjectKey) (client.Client, error) {
	if !f.connected {
		return nil, &remote.NotConnectedError{Reason: remote.Unreachable, Message: "the API server does not answer"}
	}
	return f.remote, nil
}

func (f *fixture) reconciler() *Reconciler {
	return &Reconciler{
		Client: f.home, APIReader: cmp.Or(f.live, f.home), Targets: f, Recorder: f.events, Clock: f.clock, CleanupTimeout: 5 * time.Minute,
		Outcomes: f.outcomes,
	}
}

// try reconciles once and reads the CloudConfig again.
func (f *fixture) try() (ctrl.Result, error) {
	f.t.Helper()
	result, err := f.reconciler().Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.config)})
	f.Expect(client.IgnoreNotFound(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config))).To(Succeed())
	return result, err
}

func (f *fixture) reconcile() ctrl.Result {
	f.t.Helper()
	result, err := f.try()
	f.Expect(err).NotTo(HaveOccurred())
	return result
}

// provisioned is what the core does when the infrastructure exists.
func (f *fixture) provisioned() {
	f.t.Helper()
	f.update(f.machine, func() {
		f.machine.Spec.Bootstrap.DataSecretName = ptr.To(f.config.Status.DataSecretName)
		f.machine.Spec.ProviderID = "aws:///us-east-1a/i-0123456789abcdef0"
	})
}

// joined is what the core does when the Node has registered.
func (f *fixture) joined() {
	f.t.Helper()
	f.machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: "machine"}
	f.Expect(f.client.Status().Update(f.ctx, f.machine)).To(Succeed())
}

func (f *fixture) update(object client.Object, change func()) {
	f.t.Helper()
	change()
	f.Expect(f.client.Update(f.ctx, object)).To(Succeed())
}

func (f *fixture) secret(namespace, name string) *corev1.Secret {
	secret := &corev1.Secret{}
	if err := f.client.Get(f.ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		f.Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
		return nil
	}
	return secret
}

func (f *fixture) dataSecret() *corev1.Secret { return f.secret(f.config.Namespace, f.config.Name) }

func (f *fixture) nodeSecret() *corev1.Secret {
	return f.secret(nodeaccess.DefaultNamespace, f.names.Object())
}

func (f *fixture) token(id string) *corev1.Secret {
	return f.secret("kube-system", "bootstrap-token-"+id)
}

func (f *fixture) downloadToken() nodeaccess.Token {
	f.t.Helper()
	token, ok := nodeaccess.ParseToken(string(f.dataSecret().Data[downloadTokenKey]))
	f.Expect(ok).To(BeTrue())
	return token
}

func (f *fixture) joinToken() nodeaccess.Token {
	f.t.Helper()
	token, ok := joinTokenOf(f.nodeSecret())
	f.Expect(ok).To(BeTrue())
	return token
}

// condition asserts status and reason of a condition, and returns its message.
func (f *fixture) condition(kind string, status metav1.ConditionStatus, reason string) string {
	f.t.Helper()
	c := meta.FindStatusCondition(f.config.Status.Conditions, kind)
	f.Expect(c).NotTo(BeNil(), "no condition %s", kind)
	f.Expect(string(c.Status)+"/"+c.Reason).To(Equal(string(status)+"/"+reason), "%s: %s", kind, c.Message)
	f.Expect(c.ObservedGeneration).To(Equal(f.config.Generation))
	return c.Message
}

// inTarget lists what is left in the target cluster for the machine.
func (f *fixture) inTarget() []string {
	f.t.Helper()
	var found []string
	label := client.MatchingLabels{nodeaccess.HashLabel: f.names.Hash}
	for _, gvk := range [][2]string{{"v1", "Secret"}, {"rbac.authorization.k8s.io/v1", "Role"},
		{"rbac.authorization.k8s.io/v1", "RoleBinding"}, {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding"}} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: gvk[0], Kind: gvk[1] + "List"}}
		f.Expect(f.client.List(f.ctx, list, label)).To(Succeed())
		for _, item := range list.Items {
			found = append(found, gvk[1]+" "+item.Name)
		}
	}
	return found
}

// as returns a client with a bearer token, or one that impersonates a Node.
func (f *fixture) as(change func(*rest.Config)) client.Client {
	f.t.Helper()
	config := rest.AnonymousClientConfig(env.Config)
	change(config)
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: f.client.RESTMapper()})
	f.Expect(err).NotTo(HaveOccurred())
	return c
}

func bearer(token nodeaccess.Token) func(*rest.Config) {
	return func(c *rest.Config) { c.BearerToken = token.Plain() }
}

func asNodeNamed(name string) func(*rest.Config) {
	return func(c *rest.Config) {
		*c = *rest.CopyConfig(env.Config)
		c.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + name, Groups: []string{"system:nodes"}}
	}
}
