package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/calls/callstest"
	"millwright.dev/providers/driver/identity/controller"
	"millwright.dev/providers/driver/orphans"
	"millwright.dev/test/clouds/aws/accounts"
)

// Accounts and access keys of the tenants.
const (
	accountA, accountB = "111111111111", "222222222222"
	keyA, keyB         = "AKIASIMULATEDAAAAAAA", "AKIASIMULATEDBBBBBBB"
	roleA              = "arn:aws:iam::" + accountA + ":role/machines"
)

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

	w.Expect(w.accepted("a").Status.IdentityStatus).
		To(And(HaveField("Account", accountA), HaveField("Principal", "arn:aws:iam::"+accountA+":user/machines")))
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
	}).WithPolling(500 * time.Millisecond).Should(And(HavePrefix("False "+driverv1.CredentialsRefusedReason),
		ContainSubstring("AccessDenied"), ContainSubstring("sts:AssumeRole")))
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
	w.Eventually(w.ready("late")).Should(Equal("False "+driverv1.IdentityNotReadyReason), "no new machine gets it")
	w.delete("late")
	w.Eventually(w.gone("late")).Should(BeTrue())

	w.Expect(w.ready("m")()).To(Equal("True InstanceRunning"))
	w.delete("m")
	w.Eventually(w.gone("m")).Should(BeTrue(), "the instance is ended with it")
	w.Expect(w.liveIn(accountA)).To(BeZero())
	w.Eventually(w.state("a", driverv1.IdentityReadyCondition)).Should(ContainSubstring("not found"))
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
	w.Eventually(func() string { return limits("") }).
		Should(And(Equal("account 000000000000/"+testRegion), Equal(limits(w.accepted("ambient").Name))), "EC2 counts them together")
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
