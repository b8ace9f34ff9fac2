package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity/controller"
	"millwright.dev/providers/driver/manager"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

// TestTwoTenantsInTwoProjects: each is called for with its own key, and neither with that of the process.
func TestTwoTenantsInTwoProjects(t *testing.T) {
	a, b := newFixture(t), newFixtureBeside(t)
	for _, f := range []*fixture{a, b} {
		accounts.Grant(f.project, f.email("machines"))
		f.keys("own", accounts.NewKey(f.email("machines")))
		f.identity("own")
		m := f.machine("m", f.with("own"))
		f.Eventually(f.Ready(m)).Should(HavePrefix(running))
		f.Expect(f.accepted("own").Status.IdentityStatus).To(And(HaveField("Principal", f.email("machines")), HaveField("Account", "")))
	}
	m := &infrav1.GCPMachine{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: "m"}}
	b.deleted(m)
	a.Expect(sim.Instances(a.project)).To(HaveLen(1), "the same name does not matter")
	for _, f := range []*fixture{a, b} {
		f.Expect(f.callers()).To(ConsistOf(f.email("machines")))
	}
	// The project of another tenant is out of reach: the identity has no rights there.
	thief := a.machine("thief", a.with("own"), func(s *infrav1.GCPMachineSpec) { s.Project = b.project })
	a.Eventually(a.Ready(thief)).Should(And(HavePrefix("False Unauthorized"), ContainSubstring("forbidden")))
	a.Expect(sim.Instances(b.project)).To(BeEmpty())
}

// TestForANamespaceThatIsNotAllowedNothingIsCalled, neither for a machine nor for a template, until it is allowed.
func TestForANamespaceThatIsNotAllowedNothingIsCalled(t *testing.T) {
	f := newFixture(t)
	accounts.Grant(f.project, f.email("machines"))
	f.keys("own", accounts.NewKey(f.email("machines")))
	f.identity("own", func(s *infrav1.GCPIdentitySpec) { s.AllowedNamespaces = nil })
	f.accepted("own")
	m := f.machine("m", f.with("own"))
	template := &infrav1.GCPMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "t", Labels: f.labels()}}
	template.Spec.Template.Spec = f.spec()
	f.with("own")(&template.Spec.Template.Spec)
	f.Expect(c.Create(f.Ctx, template)).To(Succeed())
	known := func() string {
		f.Expect(c.Get(f.Ctx, client.ObjectKeyFromObject(template), template)).To(Succeed())
		found := meta.FindStatusCondition(template.Status.Conditions, driverv1.CapacityKnownCondition)
		if found == nil {
			return "none"
		}
		return string(found.Status) + " " + found.Reason
	}
	f.Eventually(f.Ready(m)).Should(And(HavePrefix("False IdentityNotAllowed"), ContainSubstring(f.Namespace)))
	f.Eventually(known).Should(Equal("False IdentityNotAllowed"))
	lost := f.machine("lost", f.with("nobody"))
	f.Eventually(f.Ready(lost)).Should(HavePrefix("False IdentityNotFound"))
	f.Expect(f.calls()).To(BeEmpty())

	f.change("own", func(s *infrav1.GCPIdentitySpec) { s.AllowedNamespaces = &driverv1.AllowedNamespaces{} })
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	f.Eventually(known).Should(Equal("True CapacityKnown"))
	f.deleted(m)
	f.Expect(f.callers()).To(ConsistOf(f.email("machines")))
}

// TestKeysThatAreRotatedWhileMachinesRun: the new key is used once Google Cloud refuses the former tokens; one that is deleted is reported.
func TestKeysThatAreRotatedWhileMachinesRun(t *testing.T) {
	f := newFixture(t)
	accounts.Grant(f.project, f.email("machines"), f.email("rotated"))
	f.keys("own", accounts.NewKey(f.email("machines")))
	f.identity("own")
	m := f.machine("m", f.with("own"))
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))

	accounts.Grant(f.project, f.email("rotated"))
	next := accounts.NewKey(f.email("rotated"))
	f.keys("own", next)
	f.change("own", func(s *infrav1.GCPIdentitySpec) {
		s.AllowedNamespaces.Names = append(s.AllowedNamespaces.Names, "another")
	})
	f.Eventually(f.state("own", driverv1.IdentityReadyCondition)).Should(HavePrefix("True"))
	f.deleted(m)
	f.Expect(f.accepted("own").Status.Principal).To(Equal(f.email("rotated")))

	accounts.RemoveKey(next["private_key_id"])
	f.change("own", func(s *infrav1.GCPIdentitySpec) { s.AllowedNamespaces.Names = []string{f.Namespace} })
	f.Eventually(f.state("own", driverv1.IdentityReadyCondition)).
		Should(And(HavePrefix("False CredentialsRefused"), ContainSubstring("invalid_grant"),
			ContainSubstring(f.email("rotated"))), "although the last token would last for an hour")
}

// TestATokenFileThatIsRotated: workload identity federation, with and without a service account; and a file that no identity may name.
func TestATokenFileThatIsRotated(t *testing.T) {
	f := newFixture(t)
	pool := "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool-" + f.project[len(f.project)-5:] +
		"/providers/cluster"
	accounts.Grant(f.project, "principal://subject", f.email("machines"))
	accounts.SetPool(pool, map[string]string{"token-one": "principal://subject"})
	accounts.SetCreators(f.email("between"), "principal://subject")
	accounts.SetCreators(f.email("machines"), f.email("between"))
	file := filepath.Join(tokenDirectory, f.project)
	f.Expect(os.WriteFile(file, []byte("token-one\n"), 0o600)).To(Succeed())
	federated := func(path string) func(*infrav1.GCPIdentitySpec) {
		return func(s *infrav1.GCPIdentitySpec) {
			s.Secret, s.WorkloadIdentity = nil, &infrav1.WorkloadIdentity{Audience: pool, TokenFile: path}
		}
	}
	f.identity("direct", federated(file))
	f.identity("impersonating", federated(file), func(s *infrav1.GCPIdentitySpec) {
		s.Impersonate = &infrav1.ImpersonatedServiceAccount{Email: f.email("machines"), Delegates: []string{f.email("between")}}
	})
	f.identity("thief", federated("/etc/passwd"))
	direct, impersonating := f.machine("direct", f.with("direct")), f.machine("impersonating", f.with("impersonating"))
	for _, m := range []*infrav1.GCPMachine{direct, impersonating} {
		f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	}
	f.Expect(f.callers()).To(ConsistOf("principal://subject", f.email("machines")))
	f.Expect(f.accepted("impersonating").Status.Principal).To(Equal(f.email("machines")))
	f.Eventually(f.state("thief", driverv1.IdentityReadyCondition)).Should(And(HavePrefix("False CredentialsNotAllowed"),
		ContainSubstring("spec.workloadIdentity.tokenFile"), ContainSubstring("--identity-token-directories")))

	accounts.SetPool(pool, map[string]string{"token-two": "principal://subject"})
	f.Expect(os.WriteFile(file, []byte("token-two"), 0o600)).To(Succeed())
	f.change("direct", func(s *infrav1.GCPIdentitySpec) { s.AllowedNamespaces.Names = append(s.AllowedNamespaces.Names, "x") })
	f.Eventually(f.state("direct", driverv1.IdentityReadyCondition)).Should(HavePrefix("True"))
	f.Expect(c.Delete(f.Ctx, direct)).To(Succeed())
	accounts.SetCreators(f.email("machines"))
	f.change("impersonating", func(s *infrav1.GCPIdentitySpec) { s.AllowedNamespaces.Names = append(s.AllowedNamespaces.Names, "x") })
	f.Eventually(f.state("impersonating", driverv1.IdentityReadyCondition)).Should(And(HavePrefix("False CredentialsRefused"),
		ContainSubstring("iam.serviceAccounts.getAccessToken")))
	accounts.SetCreators(f.email("machines"), f.email("between"))
	f.change("impersonating", func(s *infrav1.GCPIdentitySpec) { s.AllowedNamespaces.Names = []string{f.Namespace} })
	f.deleted(impersonating)
}

// TestAFileOfAnExternalAccount: what a tenant writes into the Secret is neither read, run nor called, and not shown.
func TestAFileOfAnExternalAccount(t *testing.T) {
	f := newFixture(t)
	f.keys(
		"evil",
		map[string]string{"type": "external_account", "token_url": "https://thief.example.com/hidden", "credential_source": "/hidden"},
	)
	f.identity("evil")
	m := f.machine("m", f.with("evil"))
	f.Eventually(f.state("evil", driverv1.IdentityReadyCondition)).Should(And(HavePrefix("False CredentialsNotAllowed"),
		ContainSubstring("external_account"), ContainSubstring("spec.workloadIdentity"), Not(ContainSubstring("hidden"))))
	f.Eventually(f.Ready(m)).Should(HavePrefix("False IdentityNotReady"))
	f.Expect(f.calls()).To(BeEmpty())
}

// TestAnIdentityInUseStays until the machines that can be ended with it alone are gone; nothing new is given it.
func TestAnIdentityInUseStays(t *testing.T) {
	f := newFixture(t)
	accounts.Grant(f.project, f.email("machines"))
	f.keys("own", accounts.NewKey(f.email("machines")))
	f.identity("own")
	m := f.machine("m", f.with("own"))
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	id := f.accepted("own")
	f.Expect(id.Finalizers).To(ContainElement(controller.Finalizer))
	f.Expect(c.Delete(f.Ctx, id)).To(Succeed())
	f.Eventually(f.state("own", driverv1.IdentityInUseCondition)).Should(And(HavePrefix("True UsedByMachines"), ContainSubstring(f.Namespace)))
	late := f.machine("late", f.with("own"))
	f.Eventually(f.Ready(late)).Should(HavePrefix("False IdentityNotReady"))
	f.Expect(c.Delete(f.Ctx, late)).To(Succeed())
	f.deleted(m)
	f.Eventually(f.state("own", driverv1.IdentityReadyCondition)).Should(ContainSubstring("not found"))
}

// TestWithoutAnIdentityWhereOneIsRequired nothing is called, not even with the credentials of the process.
func TestWithoutAnIdentityWhereOneIsRequired(t *testing.T) {
	f := newFixture(t)
	options := testOptions()
	options.Identities.Required, options.WatchFilter = true, f.Namespace
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	mgr, err := manager.New(env.Config, c.Scheme(), options, func(o *ctrl.Options) { o.Controller.SkipNameValidation = ptr.To(true) })
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(setup(mgr, options, at)).To(Succeed())
	go func() { ended <- mgr.Start(ctx) }()
	f.watched(f.Namespace)
	m := f.machine("m")
	f.Eventually(f.Ready(m)).Should(And(HavePrefix("False IdentityNotAllowed"), ContainSubstring("--require-identity")))
	f.Expect(f.calls()).To(BeEmpty())
	f.Expect(c.Delete(f.Ctx, m)).To(Succeed())
	f.Eventually(f.Ready(m)).Should(ContainSubstring("not found"))
	cancel()
	f.Eventually(ended).Should(Receive())
}

// TestTheProcessesOwnCredentials can be named, too.
func TestTheProcessesOwnCredentials(t *testing.T) {
	f := newFixture(t)
	f.identity("ambient", func(s *infrav1.GCPIdentitySpec) { s.Secret, s.Ambient = nil, &infrav1.AmbientCredentials{} })
	m := f.machine("m", f.with("ambient"))
	f.Eventually(f.Ready(m)).Should(HavePrefix(running))
	f.Expect(f.accepted("ambient").Status.Principal).To(Equal("provider@p.iam.gserviceaccount.com"))
	f.deleted(m)
	f.Expect(f.callers()).To(ConsistOf(testToken))
}

// TestATokenServiceThatHangs for one identity holds up nothing with another one.
func TestATokenServiceThatHangs(t *testing.T) {
	f := newFixture(t)
	accounts.Grant(f.project, f.email("held"), f.email("free"))
	release := accounts.Hang(f.email("held"))
	defer release()
	for _, name := range []string{"held", "free"} {
		f.keys(name, accounts.NewKey(f.email(name)))
		f.identity(name)
	}
	held, free := f.machine("held", f.with("held")), f.machine("free", f.with("free"))
	f.Eventually(f.Ready(free)).Should(HavePrefix(running))
	f.Expect(f.callers()).To(ConsistOf(f.email("free")))
	release()
	f.Eventually(f.Ready(held)).Should(HavePrefix(running))
}
