package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestSeveralCores: cores side by side, by namespace and, in one namespace, by label: each does its own work and writes nothing of the
// others'.
func TestSeveralCores(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	env, c := startServer(t)
	for _, name := range []string{"a", "b"} {
		g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	target := kubeconfigOf(t, &coretest.Requests{}, env, "target")
	cores := []struct {
		namespace, name string
		arguments       []string
		sent            *coretest.Requests
	}{
		{"a", "alone", []string{"--namespace=a"}, &coretest.Requests{}},
		{"b", "one", []string{"--namespace=b", "--watch-filter=one"}, &coretest.Requests{}},
		{"b", "two", []string{"--namespace=b", "--watch-filter=two"}, &coretest.Requests{}},
	}
	for i := range cores {
		createMachineSet(t, c, cores[i].namespace, cores[i].name, target)
	}
	for i, core := range cores {
		t.Cleanup(runCore(t, c, kubeconfigOf(t, core.sent, env, "core"), append(core.arguments, "--webhook-port=0")...))
		g.Eventually(func(g Gomega) {
			machines := &clusterv1.MachineList{}
			g.Expect(c.List(ctx, machines, client.InNamespace(core.namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: core.name})).
				To(Succeed())
			g.Expect(machines.Items).To(HaveLen(1))
			g.Expect(machines.Items[0].Spec.InfrastructureRef.Name).NotTo(BeEmpty())
		}).WithTimeout(timeout).Should(Succeed(), core.name)
		for _, later := range cores[i+1:] {
			cluster := &clusterv1.Cluster{}
			g.Expect(c.Get(ctx, client.ObjectKey{Namespace: later.namespace, Name: later.name}, cluster)).To(Succeed())
			g.Expect(cluster.Finalizers).To(BeEmpty(), "%s is not of %s", later.name, core.name)
		}
	}
	for _, core := range cores {
		for _, request := range core.sent.Writes("") {
			if request.Verb == "GET" || !strings.Contains(request.Path, "/namespaces/") {
				continue
			}
			g.Expect(request.Path).To(ContainSubstring("/namespaces/"+core.namespace+"/"), "%s", core.name)
			for _, other := range cores {
				if other.name != core.name {
					g.Expect(request.Path).NotTo(MatchRegexp("/"+other.name+"(-|/|$)"), "%s", core.name)
				}
			}
		}
	}
}

// createMachineSet creates a Cluster and a MachineSet with one Machine, both with the watch label of their name.
func createMachineSet(t *testing.T, c client.Client, namespace, name string, kubeconfig []byte) {
	t.Helper()
	watched := map[string]string{clusterv1.WatchLabel: name, clusterv1.ClusterNameLabel: name}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: watched}
	secret := &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"value": kubeconfig}}
	secret.Name += "-kubeconfig"
	config, machine := coretest.Kind(coretest.Config, version.V1Beta2), coretest.Kind(coretest.Machine, version.V1Beta2)
	for _, object := range []client.Object{
		secret, &clusterv1.Cluster{ObjectMeta: meta, Spec: clusterv1.ClusterSpec{Paused: new(bool)}},
		coretest.Template(config, namespace, name), coretest.Template(machine, namespace, name),
		&clusterv1.MachineSet{ObjectMeta: meta, Spec: clusterv1.MachineSetSpec{
			ClusterName: name, Replicas: ptr.To[int32](1), Selector: metav1.LabelSelector{MatchLabels: watched},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: watched},
				Spec: clusterv1.MachineSpec{
					ClusterName: name, InfrastructureRef: coretest.Ref(machine+"Template", name),
					Bootstrap: clusterv1.Bootstrap{ConfigRef: coretest.Ref(config+"Template", name)},
				},
			},
		}},
	} {
		NewWithT(t).Expect(c.Create(t.Context(), object.DeepCopyObject().(client.Object))).To(Succeed())
	}
}
