package main

import (
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/aws/accounts"
)

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
	w.Expect(w.ready("m")()).To(Equal("True InstanceRunning"), "controllers that count machines must not replace it")
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

// The content of the Secret must not be run, read or called by the provider, and not be shown.
func TestAFileThatWouldRunAProgram(t *testing.T) {
	w := newTenants(t)
	w.start()
	w.keys("evil", map[string]string{"credentials": "[default]\naws_access_key_id = " + keyA + "\naws_secret_access_key = hidden\n" +
		"credential_process = /bin/touch " + filepath.Join(t.TempDir(), "ran") + "\n"})
	w.identity("evil")
	w.machine("m", w.with("evil"))
	w.Eventually(w.state("evil", driverv1.IdentityReadyCondition)).Should(Equal("False " + driverv1.CredentialsNotAllowedReason))
	w.Expect(w.messages["identity evil"]).
		To(And(ContainSubstring("credential_process"), Not(ContainSubstring("hidden")), Not(ContainSubstring("/bin/touch"))))
	w.Eventually(w.ready("m")).Should(Equal("False " + driverv1.IdentityNotReadyReason))
	w.Expect(w.front.Calls()).To(BeEmpty())
	w.Expect(w.called(accountA, "")).To(BeZero())

	w.keys("evil", key(keyA))
	w.clock.step(time.Minute)
	w.change("evil", nil)
	w.becomesReady("m")
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
	}).WithPolling(500*time.Millisecond).Should(Equal(accountB), "no machine uses it any more")
}

func TestASTSThatHangsBlocksNoOther(t *testing.T) {
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
