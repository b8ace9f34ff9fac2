package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/testenv"
)

// The right to delete Machines is one to delete all of them. The policy leaves the provider's account those that it needs, whatever has
// taken that over, and leaves others as they are.
func TestTheProviderDeletesNoOtherMachines(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "config/providers/aws/machines_policy.yaml"))
	f.Expect(err).NotTo(HaveOccurred())
	parts := strings.Split(string(text), "\n---\n")
	f.Expect(parts).To(HaveLen(2))
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	f.Expect(yaml.UnmarshalStrict([]byte(parts[0]), policy)).To(Succeed())
	f.Expect(yaml.UnmarshalStrict([]byte(parts[1]), binding)).To(Succeed())
	f.Expect(policy.Spec.FailurePolicy).To(HaveValue(Equal(admissionv1.Fail)))
	for _, obj := range []client.Object{policy, binding} {
		f.Expect(f.client.Create(f.ctx, obj)).To(Succeed())
		t.Cleanup(func() { _ = f.client.Delete(context.WithoutCancel(t.Context()), obj) })
	}
	as := func(user string) client.Client {
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}} // It is allowed what RBAC can allow.
		c, err := client.New(config, client.Options{Scheme: f.client.Scheme(), Mapper: env.Mapper})
		f.Expect(err).NotTo(HaveOccurred())
		return c
	}
	provider := as("system:serviceaccount:millwright-aws-system:millwright-aws")
	ofSet := func(m *clusterv1.Machine) {
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "set", UID: "u"}}
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
	}
	kind := func(group, kind string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			m.Spec.InfrastructureRef.APIGroup, m.Spec.InfrastructureRef.Kind = group, kind
		}
	}
	alone := f.ownerMachine("alone", "alone", true)
	f.Eventually(func() error { return provider.Delete(f.ctx, alone, client.DryRunAll) }).
		Should(MatchError(ContainSubstring("that a MachineSet controls")))
	for name, m := range map[string]*clusterv1.Machine{
		"with an AWSMachine": f.ownerMachine("azure", "azure", true, ofSet, kind("infrastructure.millwright.dev", "AzureMachine")),
		"AWSMachine only":    f.ownerMachine("upstream", "upstream", true, ofSet, kind("infrastructure.cluster.x-k8s.io", "AWSMachine")),
		"MachineSet":         f.ownerMachine("owned", "owned", true, ofSet, func(m *clusterv1.Machine) { m.OwnerReferences[0].Controller = nil }),
		"a MachineSet controls": f.ownerMachine("others", "others", true, ofSet, func(m *clusterv1.Machine) {
			m.OwnerReferences[0].APIVersion = "other.example.com/v1"
		}),
	} {
		f.Expect(provider.Delete(f.ctx, m)).To(MatchError(ContainSubstring(name)), m.Name)
		f.Expect(as("system:serviceaccount:capi-system:core").Delete(f.ctx, m, client.DryRunAll)).To(Succeed(), "others are not concerned")
	}
	f.Expect(provider.Delete(f.ctx, f.ownerMachine("spot", "spot", true, ofSet))).To(Succeed())
}
