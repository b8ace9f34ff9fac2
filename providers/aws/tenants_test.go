package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/calls/callstest"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity/controller"
	"millwright.dev/providers/driver/orphans"
	"millwright.dev/test/clouds/aws/accounts"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

// Accounts and access keys of the tenants.
const (
	accountA, accountB = "111111111111", "222222222222"
	keyA, keyB         = "AKIASIMULATEDAAAAAAA", "AKIASIMULATEDBBBBBBB"
	roleA              = "arn:aws:iam::" + accountA + ":role/machines"
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
		w.Expect(w.client.Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.own, Name: name}, StringData: data})).To(Succeed())
	}
}

func key(id string) map[string]string {
	return map[string]string{"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": "very-secret-" + id}
}

// identity creates an identity with a Secret of its name that this namespace may use.
func (w *tenants) identity(name string, adjust ...func(*infrav1.AWSIdentity)) *infrav1.AWSIdentity {
	w.t.Helper()
	id := &infrav1.AWSIdentity{ObjectMeta: metav1.ObjectMeta{Name: w.nameOf(name), Labels: map[string]string{clusterv1.WatchLabel: w.options.WatchFilter}}}
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
	w.Eventually(w.state(name, driverv1.IdentityReadyCondition)).Should(Equal("True CredentialsAccepted"), func() string { return w.messages["identity "+name] })
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

func TestTwoTenantsInTwoAccounts(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.keys("a", key(keyA))
	w.keys("b", map[string]string{"credentials": "[default]\naws_access_key_id = " + keyB + "\naws_secret_access_key = secret\n"})
	w.identity("a")
	first := w.namespace
	w.machine("m", w.with("a"))
	w.becomesReady("m")
	w.namespace = w.newNamespace(nil)
	w.identity("b")
	w.machine("m", w.with("b"))
	w.becomesReady("m")

	w.Expect(w.accepted("a").Status.IdentityStatus).To(And(HaveField("Account", accountA), HaveField("Principal", "arn:aws:iam::"+accountA+":user/machines")))
	w.Expect(w.accepted("b").Status.Account).To(Equal(accountB))
	w.Expect(w.liveIn(accountA)).To(Equal(1))
	w.Expect(w.liveIn(accountB)).To(Equal(1))
	w.delete("m")
	w.Eventually(w.gone("m")).Should(BeTrue())
	w.Expect(w.liveIn(accountB)).To(BeZero())
	w.Expect(w.liveIn(accountA)).To(Equal(1), "the same namespace and name do not matter, nor does the other account")
	w.Expect(w.called(accountA, "")).To(Equal(w.called(accountA, keyA)))
	w.Expect(w.called(accountB, "")).To(Equal(w.called(accountB, keyB)))
	w.Expect(w.called("000000000000", "")).To(BeZero(), "the process's own credentials are not used")
	counted, err := callstest.Counted("aws", "us-east-1")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(counted["GetCallerIdentity ok"]).To(BeNumerically(">=", 2), "calls of STS are measured like those of EC2")

	w.namespace = first
	w.Expect(w.ready("m")()).To(Equal("True InstanceRunning"))
}

func TestForANamespaceThatIsNotAllowedNothingIsCalled(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.keys("a", key(keyA))
	labelled := &metav1.LabelSelector{MatchLabels: map[string]string{"tenant": w.namespace}}
	w.identity("a", func(id *infrav1.AWSIdentity) {
		id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{Selector: labelled}
	})
	w.accepted("a")
	w.machine("m", w.with("a"))
	template := w.template("t", "m5.large", func(t *infrav1.AWSMachineTemplate) {
		t.Labels = map[string]string{clusterv1.WatchLabel: w.options.WatchFilter}
		t.Spec.Template.Spec.IdentityRef = &driverv1.IdentityReference{Name: w.nameOf("a")}
	})
	w.Eventually(w.ready("m")).Should(Equal("False " + driverv1.IdentityNotAllowedReason))
	w.Expect(w.messages["m"]).To(And(ContainSubstring(w.namespace), ContainSubstring("spec.allowedNamespaces")))
	w.capacity(template, metav1.ConditionFalse, driverv1.IdentityNotAllowedReason)
	w.machine("lost", w.with("nobody"))
	w.Eventually(w.ready("lost")).Should(Equal("False " + driverv1.IdentityNotFoundReason))
	w.delete("lost")
	w.Eventually(w.gone("lost")).Should(BeTrue(), "there is nothing of it")
	w.Expect(w.called(accountA, "")).To(BeZero())

	w.label(map[string]string{"tenant": labelled.MatchLabels["tenant"]})
	w.becomesReady("m")
	w.capacity(template, metav1.ConditionTrue, driverv1.CapacityKnownReason)

	w.label(nil)
	w.Eventually(w.condition("m", driverv1.CloudReachableCondition)).Should(Equal("False " + driverv1.IdentityNotAllowedReason))
	w.Expect(w.ready("m")()).To(Equal("True InstanceRunning"), "whoever counts machines must not replace them")
	w.delete("m")
	w.Eventually(w.ready("m")).Should(Equal("False " + driverv1.IdentityNotAllowedReason))
	calls := w.called(accountA, "")
	w.machine("later", w.with("a"))
	w.Eventually(w.ready("later")).Should(Equal("False " + driverv1.IdentityNotAllowedReason))
	w.Expect(w.called(accountA, "")).To(BeNumerically("<=", calls+1), "no more than a list that was under way")
	w.Expect(w.liveIn(accountA)).To(Equal(1))

	w.change("a", func(id *infrav1.AWSIdentity) { id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{} })
	w.Eventually(w.gone("m")).Should(BeTrue())
	w.becomesReady("later")
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

func TestKeysThatAreRotatedWhileMachinesRun(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.keys("a", key(keyA))
	w.identity("a")
	w.machine("m", w.with("a"))
	w.becomesReady("m")

	w.front.AddUser(accountA, "machines", keyA+"2")
	w.keys("a", key(keyA+"2"))
	w.front.RemoveKey(keyA)
	w.clock.step(15 * time.Second) // No minute: the refusal is noticed.
	w.delete("m")
	w.Eventually(w.gone("m")).Should(BeTrue())
	w.Expect(w.called(accountA, keyA+"2")).NotTo(BeZero())
	w.accepted("a")
}

func TestRolesAndSessionsThatExpire(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.front.SetRoles(
		accounts.Role{ARN: "arn:aws:iam::" + accountB + ":role/between", Principals: []string{accountB}, ExternalID: "millwright"},
		accounts.Role{ARN: roleA, Principals: []string{"arn:aws:sts::" + accountB + ":assumed-role/between"}},
	)
	w.keys("chain", key(keyB))
	w.identity("chain", func(id *infrav1.AWSIdentity) {
		id.Spec.AssumeRoles = []infrav1.AssumedRole{
			{RoleARN: "arn:aws:iam::" + accountB + ":role/between", ExternalID: "millwright", SessionName: "first"}, {RoleARN: roleA},
		}
	})
	w.machine("m", w.with("chain"))
	w.becomesReady("m")
	w.Expect(w.accepted("chain").Status.Principal).To(HavePrefix("arn:aws:sts::" + accountA + ":assumed-role/machines/millwright-"))
	w.Expect(w.called(accountB, "")).To(BeZero())

	w.front.ExpireSessions()
	w.clock.step(15 * time.Second)
	w.delete("m")
	w.Eventually(w.gone("m")).Should(BeTrue(), "a new session was opened")

	w.front.SetRoles()
	w.front.ExpireSessions()
	w.Eventually(func() string {
		w.checkAgain("chain")
		return w.state("chain", driverv1.IdentityReadyCondition)() + w.messages["identity chain"]
	}).WithPolling(500 * time.Millisecond).Should(And(HavePrefix("False "+driverv1.CredentialsRefusedReason), ContainSubstring("AccessDenied"), ContainSubstring("sts:AssumeRole")))
}

func TestATokenFileThatIsRotated(t *testing.T) {
	w := newTenants(t)
	directory := t.TempDir()
	w.options.Identities.TokenDirectories = []string{directory}
	file := filepath.Join(directory, "token")
	w.Expect(os.WriteFile(file, []byte("token-one\n"), 0o600)).To(Succeed())
	w.front.SetRoles(accounts.Role{ARN: roleA, Tokens: []string{"token-one"}})
	w.start()
	w.identity("web", func(id *infrav1.AWSIdentity) {
		id.Spec.Secret, id.Spec.WebIdentity = nil, &infrav1.WebIdentity{RoleARN: roleA, TokenFile: file}
	})
	w.identity("thief", func(id *infrav1.AWSIdentity) {
		id.Spec.Secret, id.Spec.WebIdentity = nil, &infrav1.WebIdentity{RoleARN: roleA, TokenFile: "/etc/passwd"}
	})
	w.machine("m", w.with("web"))
	w.becomesReady("m")
	w.Eventually(w.state("thief", driverv1.IdentityReadyCondition)).Should(Equal("False " + driverv1.CredentialsNotAllowedReason))
	w.Expect(w.messages["identity thief"]).To(ContainSubstring("--identity-token-directories"))

	w.front.SetRoles(accounts.Role{ARN: roleA, Tokens: []string{"token-two"}})
	w.Expect(os.WriteFile(file, []byte("token-two"), 0o600)).To(Succeed())
	w.front.ExpireSessions()
	w.clock.step(15 * time.Second)
	w.delete("m")
	w.Eventually(w.gone("m")).Should(BeTrue())
	w.accepted("web")
}

// What whoever fills the Secret has written must not be run, read or called by the provider, and not be shown.
func TestAFileThatWouldRunAProgram(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.keys("evil", map[string]string{"credentials": "[default]\naws_access_key_id = " + keyA + "\naws_secret_access_key = hidden\n" +
		"credential_process = /bin/touch " + filepath.Join(t.TempDir(), "ran") + "\n"})
	w.identity("evil")
	w.machine("m", w.with("evil"))
	w.Eventually(w.state("evil", driverv1.IdentityReadyCondition)).Should(Equal("False " + driverv1.CredentialsNotAllowedReason))
	w.Expect(w.messages["identity evil"]).To(And(ContainSubstring("credential_process"), Not(ContainSubstring("hidden")), Not(ContainSubstring("/bin/touch"))))
	w.Eventually(w.ready("m")).Should(Equal("False " + driverv1.IdentityNotReadyReason))
	w.Expect(w.front.Calls()).To(BeEmpty())
	w.Expect(w.called(accountA, "")).To(BeZero())

	w.keys("evil", key(keyA))
	w.clock.step(time.Minute)
	w.change("evil", nil)
	w.becomesReady("m")
}

func TestAnIdentityInUseStays(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.keys("a", key(keyA))
	w.identity("a")
	w.machine("m", w.with("a"))
	w.becomesReady("m")
	id := w.accepted("a")
	w.Expect(id.Finalizers).To(ContainElement(controller.Finalizer))
	w.Expect(w.client.Delete(w.ctx, id)).To(Succeed())
	w.Eventually(w.state("a", driverv1.IdentityInUseCondition)).Should(Equal("True " + driverv1.UsedByMachinesReason))
	w.Expect(w.messages["identity a"]).To(And(ContainSubstring("1 machines"), ContainSubstring(w.namespace)))
	w.machine("late", w.with("a"))
	w.Eventually(w.ready("late")).Should(Equal("False "+driverv1.IdentityNotReadyReason), "nobody new is given it")
	w.delete("late")
	w.Eventually(w.gone("late")).Should(BeTrue())

	w.Expect(w.ready("m")()).To(Equal("True InstanceRunning"))
	w.delete("m")
	w.Eventually(w.gone("m")).Should(BeTrue(), "the instance is ended with it")
	w.Expect(w.liveIn(accountA)).To(BeZero())
	w.Eventually(w.state("a", driverv1.IdentityReadyCondition)).Should(ContainSubstring("not found"))
}

// In another account all instances would be absent: the machines would fail, be replaced, and the instances left behind.
func TestKeysOfAnotherAccountAreNotUsed(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.keys("a", key(keyA))
	w.identity("a")
	w.machine("m", w.with("a"))
	w.becomesReady("m")
	w.accepted("a")

	w.keys("a", key(keyB))
	w.clock.step(2 * time.Minute)
	w.change("a", nil)
	w.Eventually(w.state("a", driverv1.IdentityReadyCondition)).Should(Equal("False " + driverv1.AccountChangedReason))
	w.Expect(w.messages["identity a"]).To(And(ContainSubstring(accountA), ContainSubstring(accountB)))
	w.Eventually(w.condition("m", driverv1.CloudReachableCondition)).Should(Equal("False " + driverv1.IdentityNotReadyReason))
	w.Expect(w.ready("m")()).To(Equal("True InstanceRunning"))
	w.Expect(w.called(accountB, "")).To(BeZero(), "STS alone was asked")

	w.keys("a", key(keyA))
	w.clock.step(2 * time.Minute)
	w.change("a", nil)
	w.delete("m")
	w.Eventually(w.gone("m")).Should(BeTrue())

	w.keys("a", key(keyB))
	w.Eventually(func() string {
		w.checkAgain("a")
		id := &infrav1.AWSIdentity{}
		w.Expect(w.client.Get(w.ctx, client.ObjectKey{Name: w.nameOf("a")}, id)).To(Succeed())
		return id.Status.Account
	}).WithPolling(500*time.Millisecond).Should(Equal(accountB), "nobody uses it any more")
}

// checkAgain has an identity be checked as if so much time had passed. Whoever repeats it must leave the provider time to write: each
// change of the object in between makes it begin again.
func (w *tenants) checkAgain(name string) {
	w.t.Helper()
	w.clock.step(11 * time.Minute)
	w.change(name, nil)
}

func TestASTSThatHangsHoldsNobodyElse(t *testing.T) {
	w := newTenants(t)
	w.options.CloudTimeout = time.Second
	w.start()
	w.keys("b", key(keyB))
	w.identity("b")
	w.accepted("b")
	w.front.SetRoles(accounts.Role{ARN: roleA, Principals: []string{accountA}})
	release := w.front.HangSTS()
	defer release()
	w.keys("a", key(keyA))
	w.identity("a", func(id *infrav1.AWSIdentity) { id.Spec.AssumeRoles = []infrav1.AssumedRole{{RoleARN: roleA}} })
	w.machine("held", w.with("a"))
	w.Eventually(w.state("a", driverv1.IdentityReadyCondition)).Should(Equal("Unknown " + driverv1.NotVerifiedReason))
	w.Expect(w.messages["identity a"]).To(ContainSubstring("no answer from STS"))
	w.machine("free", w.with("b"))
	w.becomesReady("free")
	w.Expect(w.liveIn(accountA)).To(BeZero())
	release()
	w.becomesReady("held")
}

func TestWithoutAnIdentityWhereOneIsRequired(t *testing.T) {
	w := newTenants(t)
	w.options.Identities.Required = true
	w.start()
	w.machine("m", w.watched)
	w.Eventually(w.ready("m")).Should(Equal("False " + driverv1.IdentityNotAllowedReason))
	w.Expect(w.messages["m"]).To(ContainSubstring("--require-identity"))
	w.Expect(w.called("000000000000", "")).To(BeZero())
}

func TestTheProcessesOwnCredentials(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.identity("ambient", func(id *infrav1.AWSIdentity) { id.Spec.Secret, id.Spec.Ambient = nil, &infrav1.AmbientCredentials{} })
	w.machine("named", w.with("ambient"))
	w.machine("unnamed", w.watched)
	w.becomesReady("named")
	w.becomesReady("unnamed")
	w.Expect(w.accepted("ambient").Status.Account).To(Equal("000000000000"))
	limits := func(identity string) string {
		return w.cloud.LimitScope(driver.Scope{Identity: identity, Location: testRegion})
	}
	w.Eventually(func() string { return limits("") }).Should(And(Equal("account 000000000000/"+testRegion), Equal(limits(w.accepted("ambient").Name))), "EC2 counts them together")
	actions := []string{}
	for _, call := range w.front.Calls() {
		actions = append(actions, call.Action)
	}
	w.Expect(slices.Compact(actions)).To(Equal([]string{"GetCallerIdentity"}))
}

// The collector of orphans lists where the objects are, and an object may name any identity.
func TestOrphansAreNotLookedForWithAnIdentityThatIsNotAllowed(t *testing.T) {
	w := newTenants(t)
	w.orphans = orphans.Options{
		Policy: orphans.PolicyDelete, Period: 50 * time.Millisecond, Namespace: w.namespace,
		Record: types.NamespacedName{Namespace: w.own, Name: "orphans"},
	}
	w.start()
	w.keys("a", key(keyA))
	w.identity("a", func(id *infrav1.AWSIdentity) { id.Spec.AllowedNamespaces = nil })
	w.accepted("a")
	w.machine("m", w.with("a"))
	w.Eventually(w.ready("m")).Should(Equal("False " + driverv1.IdentityNotAllowedReason))
	for range 3 {
		w.scanned()
	}
	w.Expect(w.called(accountA, "")).To(BeZero())

	w.change("a", func(id *infrav1.AWSIdentity) { id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{} })
	w.becomesReady("m")
}
