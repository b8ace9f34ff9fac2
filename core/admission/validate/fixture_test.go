package validate

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

// texts are the errors as a client reads them.
func texts(found field.ErrorList) string {
	var lines []string
	for _, err := range found {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// expect holds what was found against the beginning of the one error that is wanted, or against none.
func expect(t *testing.T, found field.ErrorList, want string) {
	t.Helper()
	g := NewWithT(t)
	if want == "" {
		g.Expect(texts(found)).To(BeEmpty())
		return
	}
	g.Expect(found).To(HaveLen(1), texts(found))
	g.Expect(texts(found)).To(HavePrefix(want))
	g.Expect(found[0].Detail).NotTo(BeEmpty())
}

func gate(t *testing.T, name featuregate.Feature, on bool) {
	t.Helper()
	featuregatetesting.SetFeatureGateDuringTest(t, feature.Gates, name, on)
}

func number(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
func text(s string) *intstr.IntOrString  { return ptr.To(intstr.FromString(s)) }

var badSelector = metav1.LabelSelector{MatchLabels: map[string]string{"-bad": "x"}}

func machineSpec() clusterv1.MachineSpec {
	return clusterv1.MachineSpec{
		ClusterName:       "c",
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "XMachineTemplate", Name: "t"},
		Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
	}
}

func aMachine(change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}, Spec: machineSpec()}
	for _, c := range change {
		c(machine)
	}
	return machine
}

func machineTemplate() clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"a": "b"}},
		Spec:       machineSpec(),
	}
}

func aSet(change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: "c", Replicas: ptr.To[int32](1),
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Template: machineTemplate(),
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func aDeployment(change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: "c", Replicas: ptr.To[int32](1),
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, Template: machineTemplate(),
		},
	}
	for _, c := range change {
		c(deployment)
	}
	return deployment
}
