package machine_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// hanging is how many Machines wait for the target cluster that hangs: more than there are workers, ten, and more than requests that are
// sent to one target cluster at once, sentAtOnce.
const hanging, sentAtOnce = 25, 20

// TestATargetThatHangsHoldsNoWorker: the Nodes of 25 Machines are to be written, or deleted without a limit of time, in a
// target cluster that was connected and then hangs. No worker waits for it, and a new Machine of another Cluster goes its
// way.
func TestATargetThatHangsHoldsNoWorker(t *testing.T) {
	// Nothing but the answer ends a wait, nor the connection: a worker that waited would do so until the test gives up.
	core.RequestTimeout, core.ProbeFailures = time.Hour, 1000
	core.Restart(t)
	t.Cleanup(func() { core.RequestTimeout, core.ProbeFailures = 0, 0; core.Restart(t) })
	for _, hang := range coretest.Hangs {
		t.Run(hang.Name, func(t *testing.T) {
			g := NewWithT(t)
			target := core.HangingTarget(t)
			namespace := hungMachines(t, target)
			target.Hang(hang)
			method := http.MethodPatch
			if hang.Name == coretest.HangOnDelete.Name {
				method = http.MethodDelete
				g.Expect(core.Client.DeleteAllOf(t.Context(), &clusterv1.Machine{}, client.InNamespace(namespace))).To(Succeed())
			} else {
				relabel(t, namespace)
			}
			g.Eventually(func() int { return target.Held(method) }).WithTimeout(timeout).Should(BeNumerically(">", 0))

			other := newFixture(t, version.V1Beta2)
			other.run()
			g.Expect(target.Held(method)).To(BeNumerically(">", 0), "the target hangs still")
			g.Eventually(func() int { return coretest.ActiveWorkers("machine") }).WithTimeout(timeout).WithPolling(10*time.Millisecond).
				Should(BeZero(), "workers that wait for the target that hangs")
			g.Expect(target.Held(method)).To(BeNumerically("<=", sentAtOnce), "and what it is sent at once is bounded")
		})
	}
}

// TestWhatWaitsForATargetThatHangsIsReported: each Machine reports what it waits for, the Cluster since when; and when the target
// answers again, all continues without a nudge.
func TestWhatWaitsForATargetThatHangsIsReported(t *testing.T) {
	core.RequestTimeout = 3 * time.Second
	core.Restart(t)
	t.Cleanup(func() { core.RequestTimeout = 0; core.Restart(t) })
	for _, hang := range []coretest.Hang{coretest.HangOnWrites, coretest.HangOnDelete} {
		t.Run(hang.Name, func(t *testing.T) {
			g := NewWithT(t)
			target := core.HangingTarget(t)
			namespace := hungMachines(t, target)
			target.Hang(hang)
			const waits = "the API server of the target cluster (has not answered yet|does not answer in time): "
			deleting := hang.Name == coretest.HangOnDelete.Name
			if deleting {
				g.Expect(core.Client.DeleteAllOf(t.Context(), &clusterv1.Machine{}, client.InNamespace(namespace))).To(Succeed())
				eachMachine(t, namespace, func(g Gomega, m *clusterv1.Machine) {
					g.Expect(condition(m, clusterv1.MachineDeletingCondition)).To(Equal("True/DeletingNode"))
					g.Expect(message(m, clusterv1.MachineDeletingCondition)).To(MatchRegexp(waits + "DELETE of Node " + m.Name))
				})
			} else {
				relabel(t, namespace)
				eachMachine(t, namespace, func(g Gomega, m *clusterv1.Machine) {
					g.Expect(message(m, clusterv1.MachineNodeHealthyCondition)).To(MatchRegexp(waits + "PATCH of Node " + m.Name))
				})
			}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
			probe := func(g Gomega) metav1.Condition {
				g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster)).To(Succeed())
				return *meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ClusterRemoteConnectionProbeCondition)
			}
			g.Eventually(probe).
				WithTimeout(time.Minute).
				Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", HavePrefix("API requests time out: ")),
					HaveField("Message", ContainSubstring(" at "+strings.TrimPrefix(target.URL, "http://")))))

			target.Answer()
			g.Eventually(probe).WithTimeout(time.Minute).Should(HaveField("Status", metav1.ConditionTrue))
			if !deleting {
				eachMachine(t, namespace, func(g Gomega, m *clusterv1.Machine) {
					g.Expect(condition(m, clusterv1.MachineReadyCondition)).To(Equal("True/Ready"))
					g.Expect(message(m, clusterv1.MachineNodeHealthyCondition)).To(BeEmpty())
				})
				return
			}
			g.Eventually(func(g Gomega) []clusterv1.Machine {
				list := &clusterv1.MachineList{}
				g.Expect(core.Client.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
				return list.Items
			}).WithTimeout(time.Minute).Should(BeEmpty())
		})
	}
}

// hungMachines makes a Cluster with Machines that run, in a namespace of its own.
func hungMachines(t *testing.T, target *coretest.HangingTarget) (namespace string) {
	t.Helper()
	g := NewWithT(t)
	namespace = core.Namespace(t)
	core.Create(
		t,
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}},
	)
	core.Kubeconfig(t, namespace, "c", target.Kubeconfig())
	t.Cleanup(func() {
		target.Answer()
		core.Connections.Remove(client.ObjectKey{Namespace: namespace, Name: "c"})
	})
	g.Expect(inParallel(hanging, func(i int) error {
		return createMachineAlone(t.Context(), namespace, fmt.Sprintf("%s-%d", namespace, i))
	})).To(Succeed())
	eachMachine(t, namespace, func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, clusterv1.MachineReadyCondition)).To(Equal("True/Ready"))
	})
	return namespace
}

// eachMachine waits until all Machines of a namespace match.
func eachMachine(t *testing.T, namespace string, check func(Gomega, *clusterv1.Machine)) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		list := &clusterv1.MachineList{}
		g.Expect(core.Client.List(t.Context(), list, client.InNamespace(namespace))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(hanging))
		for i := range list.Items {
			check(g, &list.Items[i])
		}
	}).WithTimeout(time.Minute).WithPolling(200 * time.Millisecond).Should(Succeed())
}

// relabel gives each Machine a label that belongs on its Node.
func relabel(t *testing.T, namespace string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(inParallel(hanging, func(i int) error {
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", namespace, i)}}
		return core.Client.Patch(
			t.Context(),
			machine,
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"node.cluster.x-k8s.io/a":"b"}}}`)),
		)
	})).To(Succeed())
}

// createMachineAlone makes a Machine with its infrastructure and its Node. It is deleted without a drain, and waits for its Node to go
// for ever.
func createMachineAlone(ctx context.Context, namespace, name string) error {
	id := "stand-in:///" + name
	infra := coretest.Object(coretest.Kind(coretest.Machine, version.V1Beta2), namespace, name)
	infra.Object["spec"] = map[string]any{"providerID": id}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	for _, obj := range []client.Object{infra, node} {
		if err := core.Client.Create(ctx, obj); err != nil {
			return err
		}
	}
	before := infra.DeepCopy()
	infra.Object["status"] = coretest.Provisioned(version.V1Beta2)
	if err := core.Client.Status().Patch(ctx, infra, client.MergeFrom(before)); err != nil {
		return err
	}
	empty := node.DeepCopy()
	for _, conditionType := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure} {
		status := corev1.ConditionFalse
		if conditionType == corev1.NodeReady {
			status = corev1.ConditionTrue
		}
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: conditionType, Status: status})
	}
	if err := core.Client.Status().Patch(ctx, node, client.MergeFrom(empty)); err != nil {
		return err
	}
	return core.Client.Create(ctx, &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{
			clusterv1.ExcludeNodeDrainingAnnotation: "", clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: "",
		}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
			InfrastructureRef: coretest.Ref(coretest.Kind(coretest.Machine, version.V1Beta2), name),
			Deletion:          clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: ptr.To[int32](0)},
		},
	})
}
