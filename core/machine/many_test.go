package machine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestManyMachinesDrainAtOnce deletes five times as many Machines as the core of these tests has workers, ten, and their Pods do
// not end: every Node is drained, though not one drain ends. Then the Pods end. How fast a thousand drains begin is measured by
// make bench-drain.
func TestManyMachinesDrainAtOnce(t *testing.T) {
	const machines = 50
	g := NewWithT(t)
	namespace := core.Namespace(t)
	core.Cluster(t, namespace, "c")
	in := client.InNamespace(namespace)
	g.Expect(inParallel(machines, func(i int) error {
		return createRunning(t.Context(), namespace, fmt.Sprintf("%s-%d", namespace, i))
	})).To(Succeed())
	count := func(matches func(*clusterv1.Machine) bool) func(Gomega) int {
		return func(g Gomega) int {
			list, n := &clusterv1.MachineList{}, 0
			g.Expect(core.Client.List(t.Context(), list, in)).To(Succeed())
			for i := range list.Items {
				if matches(&list.Items[i]) {
					n++
				}
			}
			return n
		}
	}
	const long = 3 * time.Minute
	g.Eventually(count(func(m *clusterv1.Machine) bool { return m.Status.NodeRef.IsDefined() })).
		WithTimeout(long).WithPolling(3 * time.Second).Should(Equal(machines))

	g.Expect(core.Client.DeleteAllOf(t.Context(), &clusterv1.Machine{}, in)).To(Succeed())
	g.Eventually(func(g Gomega) int {
		// Their metadata alone: this process has the core to run, and a thousand Pods are much to read.
		pods, evicted := &metav1.PartialObjectMetadataList{}, 0
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		g.Expect(core.Client.List(t.Context(), pods, in)).To(Succeed())
		for i := range pods.Items {
			if pods.Items[i].DeletionTimestamp != nil {
				evicted++
			}
		}
		return evicted
	}).WithTimeout(long).WithPolling(time.Second).Should(Equal(machines))
	g.Eventually(count(func(m *clusterv1.Machine) bool {
		return condition(m, clusterv1.MachineDeletingCondition) == "True/"+clusterv1.MachineDeletingDrainingNodeReason
	})).WithTimeout(long).WithPolling(2*time.Second).Should(Equal(machines), "and none has ended")

	g.Expect(core.Client.DeleteAllOf(t.Context(), &corev1.Pod{}, in, client.GracePeriodSeconds(0))).To(Succeed())
	g.Eventually(func(g Gomega) int {
		left := &metav1.PartialObjectMetadataList{}
		left.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
		g.Expect(core.Client.List(t.Context(), left, in)).To(Succeed())
		return len(left.Items)
	}).WithTimeout(long).WithPolling(time.Second).Should(BeZero())
}

// createRunning makes a Machine with its infrastructure, its Node and a Pod on it.
func createRunning(ctx context.Context, namespace, name string) error {
	id := "stand-in:///" + name
	infra := coretest.Object(coretest.Kind(coretest.Machine, version.V1Beta2), namespace, name)
	infra.Object["spec"] = map[string]any{"providerID": id}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	for _, obj := range []client.Object{infra, node, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}} {
		if err := core.Client.Create(ctx, obj); err != nil {
			return err
		}
	}
	for obj, set := range map[client.Object]func(){
		infra: func() { infra.Object["status"] = coretest.Provisioned(version.V1Beta2) },
		node: func() {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		},
	} {
		before := obj.DeepCopyObject().(client.Object)
		set()
		if err := core.Client.Status().Patch(ctx, obj, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	return core.Client.Create(ctx, &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
			InfrastructureRef: coretest.Ref(coretest.Kind(coretest.Machine, version.V1Beta2), name),
		},
	})
}

// inParallel calls do for 0 to n-1, twenty at a time.
func inParallel(n int, do func(int) error) error {
	var running sync.WaitGroup
	failures, free := make([]error, n), make(chan struct{}, 20)
	for i := range n {
		free <- struct{}{}
		running.Go(func() { failures[i] = do(i); <-free })
	}
	running.Wait()
	return errors.Join(failures...)
}
