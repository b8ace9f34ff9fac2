package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/aws/accounts"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

// tenants are a fixture with two accounts behind one endpoint, and a namespace of the provider. f.namespace is that of the present tenant.
type tenants struct {
	*fixture
	front *accounts.Front
	// clouds are the simulated accounts.
	clouds map[string]*simulator.Server
	own    string
}

func newTenants(t *testing.T) *tenants {
	t.Helper()
	f := newFixtureAlone(t, simulator.Options{})
	w := &tenants{fixture: f, front: accounts.New(f.clock), clouds: map[string]*simulator.Server{}, own: f.newNamespace(nil)}
	for account, key := range map[string]string{accountA: keyA, accountB: keyB, "000000000000": "AKIATEST"} {
		cloud := simulator.New(simulator.Options{AccountID: account})
		t.Cleanup(cloud.Close)
		w.clouds[account] = cloud
		w.front.AddAccount(account, cloud)
		w.front.AddUser(account, "machines", key)
	}
	endpoint := httptest.NewServer(w.front)
	t.Cleanup(endpoint.Close)
	f.endpoint = endpoint.URL
	// Machines of two namespaces and identities of the whole cluster, without those of other tests.
	f.options.Namespace, f.options.WatchFilter, f.options.LeaseNamespace = "", f.namespace, w.own
	t.Cleanup(w.removeIdentities)
	return w
}

func (f *fixture) newNamespace(labels map[string]string) string {
	f.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "aws-", Labels: labels}}
	f.Expect(f.client.Create(f.ctx, namespace)).To(Succeed())
	return namespace.Name
}

// removeIdentities removes what belongs to this test and to no namespace; the provider has ended.
func (w *tenants) removeIdentities() {
	w.stop()
	ctx := context.WithoutCancel(w.ctx) // That of a test ends before what cleans up.
	list := &infrav1.AWSIdentityList{}
	w.Expect(w.client.List(ctx, list, client.MatchingLabels{clusterv1.WatchLabel: w.options.WatchFilter})).To(Succeed())
	for i := range list.Items {
		id := &list.Items[i]
		id.Finalizers = nil
		w.Expect(w.client.Update(ctx, id)).To(Succeed())
		w.Expect(client.IgnoreNotFound(w.client.Delete(ctx, id))).To(Succeed())
	}
}

// keys writes the Secret of an identity.
func (w *tenants) keys(name string, data map[string]string) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.own, Name: name}, StringData: data}
	if err := w.client.Create(w.ctx, secret); err != nil {
		w.Expect(w.client.Delete(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.own, Name: name}})).To(Succeed())
		w.Expect(w.client.Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.own, Name: name}, StringData: data})).
			To(Succeed())
	}
}

func key(id string) map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": "very-secret-" + id}
}

// identity creates an identity with a Secret of its name that this namespace may use.
func (w *tenants) identity(name string, adjust ...func(*infrav1.AWSIdentity)) *infrav1.AWSIdentity {
	w.t.Helper()
	id := &infrav1.AWSIdentity{
		ObjectMeta: metav1.ObjectMeta{Name: w.nameOf(name), Labels: map[string]string{clusterv1.WatchLabel: w.options.WatchFilter}},
	}
	id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{Names: []string{w.namespace}}
	id.Spec.Secret = &infrav1.SecretCredentials{Name: name}
	for _, a := range adjust {
		a(id)
	}
	w.Expect(w.client.Create(w.ctx, id)).To(Succeed())
	return id
}

// nameOf is the name of an identity in the cluster, which tests share.
func (w *tenants) nameOf(name string) string { return w.options.WatchFilter + "-" + name }

// with has a machine name an identity.
func (w *tenants) with(name string) func(*infrav1.AWSMachine) {
	return func(m *infrav1.AWSMachine) {
		m.Spec.IdentityRef = &driverv1.IdentityReference{Name: w.nameOf(name)}
		w.watched(m)
	}
}

func (w *tenants) watched(m *infrav1.AWSMachine) {
	m.Labels[clusterv1.WatchLabel] = w.options.WatchFilter
}

// state returns "status reason" of a condition of an identity.
func (w *tenants) state(name, conditionType string) func() string {
	return func() string {
		id := &infrav1.AWSIdentity{}
		if err := w.client.Get(w.ctx, client.ObjectKey{Name: w.nameOf(name)}, id); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(id.Status.Conditions, conditionType)
		if c == nil {
			return "none"
		}
		w.messages["identity "+name] = c.Message
		return fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
}

func (w *tenants) accepted(name string) *infrav1.AWSIdentity {
	w.t.Helper()
	w.Eventually(w.state(name, driverv1.IdentityReadyCondition)).
		Should(Equal("True CredentialsAccepted"), func() string { return w.messages["identity "+name] })
	id := &infrav1.AWSIdentity{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Name: w.nameOf(name)}, id)).To(Succeed())
	return id
}

// change changes an identity; without a change of its own it is woken.
func (w *tenants) change(name string, change func(*infrav1.AWSIdentity)) {
	w.t.Helper()
	w.Eventually(func() error {
		id := &infrav1.AWSIdentity{}
		if err := w.client.Get(w.ctx, client.ObjectKey{Name: w.nameOf(name)}, id); err != nil {
			return err
		}
		id.Annotations = map[string]string{"test/touched": time.Now().Format(time.RFC3339Nano)}
		if change != nil {
			change(id)
		}
		return w.client.Update(w.ctx, id)
	}).Should(Succeed())
}

// called counts the calls in an account by an access key; by any if it is empty.
func (w *tenants) called(account, key string) int {
	n := 0
	for _, call := range w.clouds[account].Calls() {
		if key == "" || call.Caller == key {
			n++
		}
	}
	return n
}

func (w *tenants) liveIn(account string) int {
	n := 0
	for _, i := range w.clouds[account].Instances() {
		if i.Live() {
			n++
		}
	}
	return n
}

// label sets the labels of the tenant's namespace.
func (w *tenants) label(labels map[string]string) {
	w.t.Helper()
	namespace := &corev1.Namespace{}
	w.Expect(w.client.Get(w.ctx, client.ObjectKey{Name: w.namespace}, namespace)).To(Succeed())
	base := namespace.DeepCopy()
	namespace.Labels = labels
	w.Expect(w.client.Patch(w.ctx, namespace, client.MergeFrom(base))).To(Succeed())
}

// checkAgain has an identity be checked as if so much time had passed. A caller that repeats it must leave the provider time to write: each
// change of the object in between makes it begin again.
func (w *tenants) checkAgain(name string) {
	w.t.Helper()
	w.clock.step(11 * time.Minute)
	w.change(name, nil)
}
