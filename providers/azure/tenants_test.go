package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity/controller"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/azure/entra"
)

const tenantA = "00000000-0000-0000-0000-0000000000aa"

// application registers one with a secret for the fixture, and returns its client ID: that ends in the number.
func (f *fixture) application(number int) entra.Application {
	app := entra.Application{
		Tenant: tenantA, ClientID: fmt.Sprintf("00000000-0000-0000-0000-%012d", number), ObjectID: fmt.Sprintf("object-%d", number),
		Secrets: []string{fmt.Sprintf("secret-%d", number)}, Subscriptions: []string{arm.DefaultSubscription},
	}
	authority.SetApplication(app)
	return app
}

// keys writes the Secret of an identity.
func (f *fixture) keys(name string, data map[string]string) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testOptions().OwnNamespace(), Name: name}, StringData: data}
	f.Expect(c.Create(f.Ctx, secret)).To(Succeed())
}

// identity creates one with a Secret of its name that the fixture's namespace may use.
func (f *fixture) identity(name string, app entra.Application, adjust ...func(*infrav1.AzureIdentity)) *infrav1.AzureIdentity {
	id := &infrav1.AzureIdentity{ObjectMeta: metav1.ObjectMeta{Name: name}}
	id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{Names: []string{f.Namespace}}
	id.Spec.ServicePrincipal = &infrav1.ServicePrincipal{TenantID: app.Tenant, ClientID: app.ClientID, SecretName: name}
	for _, a := range adjust {
		a(id)
	}
	f.Expect(c.Create(f.Ctx, id)).To(Succeed())
	return id
}

// identityState returns "status reason: message" of a condition of an identity.
func (f *fixture) identityState(id *infrav1.AzureIdentity, conditionType string) func() string {
	return func() string {
		if err := c.Get(f.Ctx, client.ObjectKeyFromObject(id), id); err != nil {
			return err.Error()
		}
		if found := meta.FindStatusCondition(id.Status.Conditions, conditionType); found != nil {
			return fmt.Sprintf("%s %s: %s", found.Status, found.Reason, found.Message)
		}
		return "none"
	}
}

func with(identity string) func(*infrav1.AzureMachineSpec) {
	return func(s *infrav1.AzureMachineSpec) { s.IdentityRef = &driverv1.IdentityReference{Name: identity} }
}

// callers are who has called for the resource group.
func (f *fixture) callers() []string {
	var found []string
	for _, call := range sim.Calls() {
		if call.Parameters["resourceGroup"] == f.group && !slices.Contains(found, call.Caller) {
			found = append(found, call.Caller)
		}
	}
	return found
}

// TestTwoTenants each have their machines kept with their own credentials, and with no others.
func TestTwoTenants(t *testing.T) {
	a, b := newFixture(t), newFixture(t)
	first, second := a.application(1), b.application(2)
	a.keys("tenant-a", map[string]string{"AZURE_CLIENT_SECRET": "secret-1", "AZURE_TENANT_ID": tenantA})
	b.keys("tenant-b", map[string]string{"clientSecret": "secret-2"})
	idA, idB := a.identity("tenant-a", first), b.identity("tenant-b", second)
	ma, mb := a.machine("m1", with("tenant-a")), b.machine("m1", with("tenant-b"))
	a.Eventually(a.Ready(ma)).Should(HavePrefix("True InstanceRunning"))
	b.Eventually(b.Ready(mb)).Should(HavePrefix("True InstanceRunning"))
	a.Eventually(a.identityState(idA, driverv1.IdentityReadyCondition)).Should(HavePrefix("True CredentialsAccepted"))
	a.Expect(idA.Status.IdentityStatus).To(And(HaveField("Account", tenantA), HaveField("Principal", "object-1")))
	b.Eventually(b.identityState(idB, driverv1.IdentityReadyCondition)).Should(HavePrefix("True CredentialsAccepted"))
	a.deleted(ma)
	b.Expect(b.resources()).To(HaveLen(3))
	b.deleted(mb)
	a.Expect(a.callers()).To(ConsistOf(first.ClientID))
	b.Expect(b.callers()).To(ConsistOf(second.ClientID), "the process's own credentials are not used")
}

// TestForANamespaceThatIsNotAllowedNothingIsCalled, whatever names the identity, for machines as for templates.
func TestForANamespaceThatIsNotAllowedNothingIsCalled(t *testing.T) {
	f := newFixture(t)
	f.keys("others", map[string]string{"AZURE_CLIENT_SECRET": "secret-3"})
	id := f.identity("others", f.application(3), func(id *infrav1.AzureIdentity) {
		id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{Names: []string{"somebody"}}
	})
	f.Eventually(f.identityState(id, driverv1.IdentityReadyCondition)).Should(HavePrefix("True"))
	m := f.machine("m1", with("others"))
	template := &infrav1.AzureMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "t"}}
	template.Spec.Template.Spec = validSpec()
	with("others")(&template.Spec.Template.Spec)
	f.Expect(c.Create(f.Ctx, template)).To(Succeed())
	f.Eventually(f.Ready(m)).Should(And(HavePrefix("False "+driverv1.IdentityNotAllowedReason), ContainSubstring(f.Namespace)))
	f.Eventually(func() []metav1.Condition {
		_ = c.Get(f.Ctx, client.ObjectKeyFromObject(template), template)
		return template.Status.Conditions
	}).Should(ContainElement(HaveField("Reason", driverv1.IdentityNotAllowedReason)))
	missing := f.machine("m2", with("nobody"))
	f.Eventually(f.Ready(missing)).Should(HavePrefix("False " + driverv1.IdentityNotFoundReason))
	f.deleted(missing)
	f.Expect(f.callers()).To(BeEmpty())

	f.Eventually(func() error {
		_ = c.Get(f.Ctx, client.ObjectKeyFromObject(id), id)
		id.Spec.AllowedNamespaces = &driverv1.AllowedNamespaces{}
		return c.Update(f.Ctx, id)
	}).Should(Succeed())
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.deleted(m)
}

// TestAnIdentityInUseStays until the machines that are kept with it are gone.
func TestAnIdentityInUseStays(t *testing.T) {
	f := newFixture(t)
	f.keys("used", map[string]string{"AZURE_CLIENT_SECRET": "secret-4"})
	id := f.identity("used", f.application(4))
	m := f.machine("m1", with("used"))
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Eventually(f.identityState(id, driverv1.IdentityReadyCondition)).Should(HavePrefix("True"))
	f.Expect(id.Finalizers).To(ContainElement(controller.Finalizer))
	f.Expect(c.Delete(f.Ctx, id)).To(Succeed())
	f.Eventually(f.identityState(id, driverv1.IdentityInUseCondition)).Should(And(
		HavePrefix("True "+driverv1.UsedByMachinesReason), ContainSubstring(f.Namespace)))
	late := f.machine("m2", with("used"))
	f.Eventually(f.Ready(late)).Should(HavePrefix("False "+driverv1.IdentityNotReadyReason), "no new machine gets it")
	f.Delete(late)
	f.deleted(m)
	f.Eventually(f.identityState(id, driverv1.IdentityReadyCondition)).Should(ContainSubstring("not found"))
}

// TestRefusedCredentials are reported in the words of Microsoft Entra ID, and nothing is called for the machine.
func TestRefusedCredentials(t *testing.T) {
	f := newFixture(t)
	f.keys("refused", map[string]string{"AZURE_CLIENT_SECRET": "hidden-value"})
	id := f.identity("refused", f.application(5))
	m := f.machine("m1", with("refused"))
	f.Eventually(f.identityState(id, driverv1.IdentityReadyCondition)).Should(And(HavePrefix("False "+driverv1.CredentialsRefusedReason),
		ContainSubstring("AADSTS7000215"), Not(ContainSubstring("hidden-value")), Not(ContainSubstring("Trace ID"))))
	f.Eventually(f.Ready(m)).Should(HavePrefix("False " + driverv1.IdentityNotReadyReason))
	f.Expect(f.callers()).To(BeEmpty())
	f.Delete(m)
}

// TestKeysThatAreRotatedWhileMachinesRun: the new secret is used once Azure refuses the tokens of the former one; no restart
// is needed, and the machine is not touched.
func TestKeysThatAreRotatedWhileMachinesRun(t *testing.T) {
	f := newFixture(t)
	app := f.application(9)
	f.keys("rotated", map[string]string{"AZURE_CLIENT_SECRET": "secret-9"})
	f.identity("rotated", app)
	m := f.machine("m1", with("rotated"))
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))

	app.Secrets = []string{"another"}
	authority.SetApplication(app)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testOptions().OwnNamespace(), Name: "rotated"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"AZURE_CLIENT_SECRET":"another"}}`))
	f.Expect(c.Patch(f.Ctx, secret, patch)).To(Succeed())
	authority.RevokeTokens()
	lists := func() int { return f.calls("VirtualMachines_List")[http.StatusOK] }
	f.Eventually(func() int { return f.calls("VirtualMachines_List")[http.StatusUnauthorized] }).Should(BeNumerically(">", 0))
	before := lists()
	f.Eventually(lists).Should(BeNumerically(">", before), "with a token for the new secret")
	next := f.machine("m2", with("rotated"))
	f.Eventually(f.Ready(next)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(f.Ready(m)()).To(HavePrefix("True InstanceRunning"))
	f.Expect(f.calls("VirtualMachines_Delete")).To(BeEmpty())
	f.Delete(next)
	f.deleted(m)
	f.Expect(f.callers()).To(HaveEach(BeElementOf(app.ClientID, "")), "what has a revoked token has no name")
}

// TestASecretThatAsksForAnotherAuthority is not used: the content of the Secret is not called, read, or shown.
func TestASecretThatAsksForAnotherAuthority(t *testing.T) {
	f := newFixture(t)
	f.keys("evil", map[string]string{"AZURE_CLIENT_SECRET": "secret-6", "AZURE_AUTHORITY_HOST": "https://evil.example.com/"})
	id := f.identity("evil", f.application(6))
	f.Eventually(f.identityState(id, driverv1.IdentityReadyCondition)).Should(And(HavePrefix("False "+driverv1.CredentialsNotAllowedReason),
		ContainSubstring("AZURE_AUTHORITY_HOST"), Not(ContainSubstring("evil.example.com"))))
	f.Expect(authority.Calls()).NotTo(ContainElement(HaveField("ClientID", f.application(6).ClientID)))
}

// TestIdentitiesThatAreRefused by the API server.
func TestIdentitiesThatAreRefused(t *testing.T) {
	who := `tenantID: ` + tenantA + `, clientID: ` + tenantA
	for spec, want := range map[string]string{
		`{allowedNamespaces: {}}`:                                                    "exactly one of",
		`{ambient: {}, managedIdentity: {}}`:                                         "exactly one of",
		`{servicePrincipal: {` + who + `}}`:                                          "secretName",
		`{servicePrincipal: {` + who + `, secretName: A_b}}`:                         "spec.servicePrincipal.secretName",
		`{servicePrincipal: {tenantID: contoso.com, clientID: a, secretName: a}}`:    "spec.servicePrincipal.tenantID",
		`{workloadIdentity: {` + who + `}}`:                                          "tokenFile",
		`{workloadIdentity: {` + who + `, tokenFile: token}}`:                        "absolute path",
		`{workloadIdentity: {` + who + `, tokenFile: /var/run/secrets/../../etc/x}}`: "without . and ..",
		`{managedIdentity: {clientID: me}}`:                                          "spec.managedIdentity.clientID",
		`{ambient: {}, allowedNamespaces: {names: []}}`:                              "at least 1",
		`{ambient: {}, allowedNamespaces: {names: ["*"]}}`:                           "names",
	} {
		content := map[string]any{}
		NewWithT(t).Expect(yaml.Unmarshal([]byte(spec), &content)).To(Succeed())
		id := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
		id.SetGroupVersionKind(infrav1.GroupVersion.WithKind("AzureIdentity"))
		id.SetName("invalid")
		NewWithT(t).Expect(c.Create(t.Context(), id, client.DryRunAll)).To(MatchError(ContainSubstring(want)), spec)
	}
	ok := &infrav1.AzureIdentity{ObjectMeta: metav1.ObjectMeta{Name: "valid"}}
	NewWithT(t).Expect(yaml.Unmarshal([]byte(`{managedIdentity: {}}`), &ok.Spec)).To(Succeed())
	NewWithT(t).Expect(c.Create(t.Context(), ok, client.DryRunAll)).To(Succeed(), "the system-assigned one")
}
