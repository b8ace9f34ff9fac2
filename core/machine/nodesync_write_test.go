package machine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/external"
	"millwright.dev/core/remote"
)

var nodeResource = schema.GroupResource{Resource: "nodes"}

// syncing is a Machine, its Node, and a target cluster that answers patches as the test says.
type syncing struct {
	*WithT
	t       *testing.T
	r       *Reconciler
	target  client.Client
	patches int
	machine *clusterv1.Machine
	now     time.Time
}

// newSyncing makes a Node that all of its kubelet's conditions call healthy, and that has not been initialized.
func newSyncing(t *testing.T, patch func(client.WithWatch, client.Object, client.Patch) error) *syncing {
	t.Helper()
	f := &syncing{WithT: NewWithT(t), t: t, r: &Reconciler{}, now: noon, machine: &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "u", Labels: map[string]string{"node.cluster.x-k8s.io/a": "1"}},
		Spec:       clusterv1.MachineSpec{ClusterName: "c"},
	}}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}},
	}
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: status})
	}
	f.target = fake.NewClientBuilder().WithObjects(node).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, c client.WithWatch, obj client.Object, p client.Patch, _ ...client.PatchOption) error {
			f.patches++
			return patch(c, obj, p)
		},
	}).Build()
	return f
}

// reconcile synchronizes the Node once, and keeps the condition in the Machine as a status write would.
func (f *syncing) reconcile() (*scope, time.Duration) {
	f.t.Helper()
	node := &corev1.Node{}
	f.Expect(f.target.Get(f.t.Context(), client.ObjectKey{Name: "n"}, node)).To(Succeed())
	s := &scope{
		Base:               base{Now: f.now, Original: f.machine, Object: f.machine.DeepCopy()},
		connection:         remote.DirectConnection(f.target),
		node:               node,
		infrastructureRead: true,
	}
	end := f.r.syncNode(f.t.Context(), s)
	f.Expect(end.Err()).NotTo(HaveOccurred(), "the work queue has no say in when it is tried again")
	if !s.quiet {
		s.setNodeConditions()
		f.machine = s.Object
	}
	return s, end.After()
}

func (f *syncing) healthy() (status, message string) {
	f.t.Helper()
	found := meta.FindStatusCondition(f.machine.Status.Conditions, clusterv1.MachineNodeHealthyCondition)
	if found == nil {
		return "", ""
	}
	return string(found.Status) + "/" + found.Reason, found.Message
}

// TestFirstSyncThatFails: whatever refuses the first synchronization, the Machine reports it in the API server's words, since
// when, and is not healthy; it is tried again less and less often, not by a hot loop.
func TestFirstSyncThatFails(t *testing.T) {
	drop := func(c client.WithWatch, obj client.Object, p client.Patch) error {
		// As a mutating webhook does, which the answer shows.
		if err := c.Patch(context.Background(), obj, p); err != nil {
			return err
		}
		labels := obj.GetLabels()
		delete(labels, "node.cluster.x-k8s.io/a")
		obj.SetLabels(labels)
		return c.Update(context.Background(), obj)
	}
	tests := []struct {
		name  string
		patch func(client.WithWatch, client.Object, client.Patch) error
		words string
		quiet int
	}{
		{"RBAC", func(client.WithWatch, client.Object, client.Patch) error {
			return apierrors.NewForbidden(nodeResource, "n", errors.New("the core may not patch"))
		}, "the core may not patch", 0},
		{"an invalid label value", func(client.WithWatch, client.Object, client.Patch) error {
			return apierrors.NewBadRequest("metadata.labels: Invalid value")
		}, "metadata.labels: Invalid value", 0},
		{"a webhook that hangs", func(client.WithWatch, client.Object, client.Patch) error {
			return fmt.Errorf("patch: %w", context.DeadlineExceeded)
		}, "the API server did not answer", 0},
		{"five lost races in a row", func(client.WithWatch, client.Object, client.Patch) error {
			return apierrors.NewConflict(nodeResource, "n", errors.New("the object has been modified"))
		}, "the object has been modified", quietSyncFailures},
		{"a webhook that calls its denial a conflict", func(client.WithWatch, client.Object, client.Patch) error {
			return deniedAsConflict()
		}, "denied the request: no", 0},
		{"a webhook that drops a label", drop, "did not keep label node.cluster.x-k8s.io/a: look for a mutating webhook", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newSyncing(t, test.patch)
			for range test.quiet {
				s, after := f.reconcile()
				f.Expect(s.quiet).To(BeTrue(), "an ordinary race is not worth a word")
				f.now = f.now.Add(after)
			}
			_, after := f.reconcile()
			status, message := f.healthy()
			f.Expect(status).To(Equal("False/NodeSyncFailed"))
			f.Expect(message).To(And(HavePrefix("Labels, annotations and taints of Node n cannot be written since "+f.now.Format(time.RFC3339)), ContainSubstring(test.words)))

			before := f.patches
			for range 10 {
				f.reconcile()
			}
			f.Expect(f.patches).To(BeNumerically("<=", before+1), "whatever wakes the Machine")
			for range 20 {
				f.now = f.now.Add(after)
				_, after = f.reconcile()
			}
			f.Expect(after).To(Equal(maxSyncRetry))
			again, reported := f.healthy()
			f.Expect(again).To(Equal(status), "it is not taken for synchronized because of what the failed change left")
			f.Expect(reported).To(Equal(message), "one condition, not one for each attempt")

			f.r = &Reconciler{}
			f.now = f.now.Add(time.Hour)
			f.reconcile()
			again, reported = f.healthy()
			f.Expect(again).To(Equal(status), "another process says the same")
			f.Expect(reported).To(Equal(message))
		})
	}
}

// TestLaterSyncThatFails: a Node that has its labels and lost its taint serves Pods; it is healthy whatever is refused now.
func TestLaterSyncThatFails(t *testing.T) {
	refuse := false
	f := newSyncing(t, func(c client.WithWatch, obj client.Object, p client.Patch) error {
		if refuse {
			return apierrors.NewForbidden(nodeResource, "n", errors.New("no more labels"))
		}
		return c.Patch(context.Background(), obj, p)
	})
	f.reconcile()
	f.Expect(f.machine.Status.Conditions).To(ContainElement(And(HaveField("Type", "NodeHealthy"), HaveField("Reason", "NodeHealthy"))))
	refuse = true
	f.machine.Labels["node.cluster.x-k8s.io/b"] = "2"
	for range 3 {
		f.now = f.now.Add(time.Hour)
		f.reconcile()
		status, message := f.healthy()
		f.Expect(status).To(Equal("True/NodeSyncFailed"))
		f.Expect(message).To(And(ContainSubstring("since "+noon.Add(time.Hour).Format(time.RFC3339)), ContainSubstring("no more labels")))
	}
	// Another change is tried without waiting for the end of the long pause.
	refuse = false
	f.machine.Labels["node.cluster.x-k8s.io/b"] = "3"
	f.now = f.now.Add(minSyncRetry)
	f.reconcile()
	status, message := f.healthy()
	f.Expect(status).To(Equal("True/NodeHealthy"))
	f.Expect(message).To(BeEmpty())
}

// TestNodeThatClaimsToBeSynced: what a Node says of itself lets no other Machine be taken for synchronized.
func TestNodeThatClaimsToBeSynced(t *testing.T) {
	marks := func(machine, namespace string) map[string]string {
		return map[string]string{clusterv1.MachineAnnotation: machine, clusterv1.ClusterNamespaceAnnotation: namespace}
	}
	for _, test := range []struct {
		name        string
		annotations map[string]string
		taints      []corev1.Taint
		want        bool
	}{
		{"nothing", nil, nil, false},
		{"of another Machine", marks("other", "ns"), nil, false},
		{"of another namespace", marks("m", "other"), nil, false},
		{"still tainted", marks("m", "ns"), []corev1.Taint{clusterv1.NodeUninitializedTaint}, false},
		{"its own", marks("m", "ns"), nil, true},
	} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
		s := &scope{
			Base: base{Original: m, Object: m},
			node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations}, Spec: corev1.NodeSpec{Taints: test.taints}},
		}
		NewWithT(t).Expect(s.syncedOnce()).To(Equal(test.want), test.name)
	}
}

// TestWhatIsNotReadIsNotConcluded: after a restart the lists come in any order. Marks whose reasons have not been read stay
// on a Node that was synchronized; a Node that was not waits.
func TestWhatIsNotReadIsNotConcluded(t *testing.T) {
	pass := func(c client.WithWatch, obj client.Object, p client.Patch) error {
		return c.Patch(context.Background(), obj, p)
	}
	full := func(s *scope) {
		s.infrastructureRead, s.interruptible = true, true
		s.machineSet = &clusterv1.MachineSet{}
		s.machineDeployment = &clusterv1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.RevisionAnnotation: "2"}},
		}
	}
	sync := func(f *syncing, read func(*scope)) *corev1.Node {
		node := &corev1.Node{}
		f.Expect(f.target.Get(f.t.Context(), client.ObjectKey{Name: "n"}, node)).To(Succeed())
		s := &scope{
			Base:       base{Now: f.now, Original: f.machine, Object: f.machine.DeepCopy()},
			connection: remote.DirectConnection(f.target),
			node:       node,
		}
		s.options = Options{PropagateTaints: true, KeepOutdatedFromScaleDown: true}
		s.infrastructure.ref = clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: "Infra", Name: "m"}
		read(s)
		f.Expect(f.r.syncNode(f.t.Context(), s).Err()).NotTo(HaveOccurred())
		return s.node
	}
	for name, unread := range map[string]func(*scope){
		"the infrastructure objects":           func(s *scope) { s.infrastructure.err = &external.NotSyncedError{} },
		"the infrastructure objects, for long": func(s *scope) { s.infrastructure.err = &external.NotSyncedError{Overdue: true} },
		"the infrastructure object itself":     func(s *scope) { s.infrastructureRead, s.interruptible = false, false },
		"the infrastructure object, a wrong one": func(s *scope) {
			s.infrastructureRead, s.interruptible, s.infrastructure.err = false, false, errors.New("wrong")
		},
		"the MachineSet":        func(s *scope) { s.machineSet, s.machineDeployment, s.ownersUnknown = nil, nil, true },
		"the MachineDeployment": func(s *scope) { s.machineDeployment, s.ownersUnknown = nil, true },
	} {
		t.Run(name, func(t *testing.T) {
			f := newSyncing(t, pass)
			f.machine.Spec.Taints = []clusterv1.MachineTaint{
				{Key: "example.com/a", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways},
			}
			marked := sync(f, full)
			f.Expect(marked.Labels).To(HaveKey(clusterv1.InterruptibleLabel))
			f.Expect(marked.Annotations).To(HaveKey(ScaleDownDisabledMarkerAnnotation))
			f.Expect(marked.Spec.Taints).To(HaveLen(2))
			patches := f.patches
			sync(f, func(s *scope) { full(s); unread(s) })
			f.Expect(f.patches).To(Equal(patches), "nothing is written")
		})
	}
	f := newSyncing(t, pass)
	fresh := sync(f, func(*scope) {})
	f.Expect(f.patches).To(BeZero(), "the first synchronization waits for what the Node needs before its first Pod")
	f.Expect(fresh.Spec.Taints).To(ContainElement(clusterv1.NodeUninitializedTaint))
}
