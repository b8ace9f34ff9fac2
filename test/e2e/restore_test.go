package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/sandbox"
)

// TestAdoptAfterRestore restores a management cluster from a backup of two hours ago. Of three Machines, one was created after the
// backup: its instance runs, its Node serves, and no object refers to it. Another was deleted since: its objects are back, instance and
// Node are not. The guide pauses the Cluster, and nothing is terminated, launched or replaced. Its commands have the set adopt the first,
// which does not change, and end the pause, after which the second is replaced.
func TestAdoptAfterRestore(t *testing.T) {
	w := restoreWorld(t)
	w.start(3)
	w.checkHealth()
	created, kept, deleted := w.machines()[0], w.machines()[1], w.machines()[2]
	before, nodes := w.identities(), w.nodes()
	w.restore(&created, &deleted)
	w.Expect(w.sandbox.EC2.ClearCalls(w.ctx)).To(Succeed())
	w.guide("restore.md", "Pause", "NAME", sandbox.SampleCluster)
	for _, manager := range []*sandbox.Manager{w.sandbox.CloudConfig, w.sandbox.AWS, w.sandbox.Core} {
		w.Expect(manager.Start(w.ctx)).To(Succeed())
	}

	w.awaitPaused()
	w.Consistently(func(g Gomega) {
		g.Expect(w.machines()).To(ConsistOf(HaveField("UID", kept.UID), HaveField("UID", deleted.UID)), "nothing is replaced")
		g.Expect(w.live()).To(HaveLen(2), "nothing is terminated, and no object claims the first")
	}, 5*time.Second).Should(Succeed())
	w.guide("restore.md", "Adopt an instance", "SET", created.Labels[clusterv1.MachineSetNameLabel], "DEPLOYMENT", sandbox.SampleDeployment,
		"=MACHINE=", "="+created.Name+"=", "PROVIDERID", created.Spec.ProviderID, "=N", "=3")
	calls, err := w.sandbox.EC2.Calls(w.ctx, "RunInstances", "TerminateInstances")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(calls).To(BeEmpty(), "nothing was launched or terminated")

	w.guide("restore.md", "Unpause", "NAME", sandbox.SampleCluster)
	w.awaitAdopted(&created)
	w.Eventually(w.machines).ShouldNot(ContainElement(HaveField("UID", deleted.UID)), "now it is replaced")
	w.Expect(w.scenario.AwaitRunning(w.ctx, 3)).To(Succeed())
	after := w.identities()
	w.Expect(after).To(HaveKeyWithValue(string(kept.UID), before[string(kept.UID)]))
	for _, machine := range []clusterv1.Machine{created, kept} {
		node := w.nodes()[machine.Status.NodeRef.Name]
		w.Expect(node).NotTo(BeNil())
		w.Expect(node.UID).To(Equal(nodes[node.Name].UID), "the Node is the same")
		w.Expect(node.Spec.Unschedulable).To(BeFalse())
	}
	w.Expect(w.live()).To(And(HaveLen(3), HaveKey(filepath.Base(created.Spec.ProviderID)), HaveKey(filepath.Base(kept.Spec.ProviderID))))
}

// restoreWorld is a sandbox of its own.
func restoreWorld(t *testing.T) *world {
	t.Helper()
	failing.takeTurn(t)
	s, err := sandbox.Start(suite.ctx, sandbox.Options{
		LogDir:          filepath.Join(suite.logs, "restore"),
		WithoutWebhooks: true, // The test writes while the core is down.
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { NewWithT(t).Expect(s.Stop()).To(Succeed()) })
	return newWorld(t, s, "restore")
}

// restore stops all managers and resets the management cluster to its state of two hours ago.
func (w *world) restore(created, deleted *clusterv1.Machine) {
	w.t.Helper()
	w.sandbox.Core.Kill()
	w.sandbox.AWS.Kill()
	w.sandbox.CloudConfig.Kill()
	w.change(func(md *clusterv1.MachineDeployment) { md.Spec.Replicas = ptr.To[int32](2) })
	set := &clusterv1.MachineSet{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: created.Labels[clusterv1.MachineSetNameLabel]}, set)).
		To(Succeed())
	before := set.DeepCopy()
	set.Spec.Replicas = ptr.To[int32](2)
	w.Expect(w.control.Patch(w.ctx, set, client.MergeFrom(before))).To(Succeed())
	w.forget(created)
	w.Expect(w.sandbox.EC2.Vanish(w.ctx, filepath.Base(deleted.Spec.ProviderID))).To(Succeed())
	w.Expect(w.target.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: deleted.Status.NodeRef.Name}})).To(Succeed())
}

// awaitPaused waits until the Cluster, and each of its Machines, reports that it is paused.
func (w *world) awaitPaused() {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		cluster := &clusterv1.Cluster{}
		g.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: sandbox.SampleCluster}, cluster)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.PausedCondition)).To(BeTrue())
		for _, machine := range w.machines() {
			g.Expect(meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.PausedCondition)).To(BeTrue(), machine.Name)
		}
	}).Should(Succeed())
}

// awaitAdopted waits until a Machine is back, with its instance and Node.
func (w *world) awaitAdopted(machine *clusterv1.Machine) {
	w.t.Helper()
	w.Eventually(w.machines).Should(ContainElement(And(HaveField("Name", machine.Name), HaveField("Spec.ProviderID", machine.Spec.ProviderID),
		HaveField("Status.Phase", "Running"), HaveField("Status.NodeRef.Name", machine.Status.NodeRef.Name))))
	w.awaitEvent("InstanceAdopted", machine.Name)
	w.Eventually(func(g Gomega) {
		set := &clusterv1.MachineSet{}
		g.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: machine.Labels[clusterv1.MachineSetNameLabel]}, set)).
			To(Succeed())
		g.Expect(set.Annotations).NotTo(HaveKey("machineset.millwright.dev/adopt"), "the reconcile after the creation removes it from the list")
	}).Should(Succeed())
}

// awaitEvent waits for an event on an object of the namespace.
func (w *world) awaitEvent(reason, name string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		events := &eventsv1.EventList{}
		g.Expect(w.control.List(w.ctx, events, client.InNamespace(w.namespace))).To(Succeed())
		g.Expect(events.Items).To(ContainElement(And(HaveField("Reason", reason), HaveField("Regarding.Name", name))))
	}).Should(Succeed())
}

// reasonOf is that of a condition; empty without.
func reasonOf(conditions []metav1.Condition, kind string) string {
	if found := meta.FindStatusCondition(conditions, kind); found != nil {
		return found.Reason
	}
	return ""
}

// forget removes a Machine and what was created for it from the API server, as if it had never been there.
func (w *world) forget(machine *clusterv1.Machine) {
	w.t.Helper()
	objects := []client.Object{machine}
	for _, ref := range []clusterv1.ContractVersionedObjectReference{machine.Spec.Bootstrap.ConfigRef, machine.Spec.InfrastructureRef} {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion(ref.APIGroup + "/v1alpha1")
		object.SetKind(ref.Kind)
		w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: ref.Name}, object)).To(Succeed())
		objects = append(objects, object)
	}
	for _, object := range objects {
		before := object.DeepCopyObject().(client.Object)
		object.SetFinalizers(nil)
		w.Expect(w.control.Patch(w.ctx, object, client.MergeFrom(before))).To(Succeed())
		w.Expect(client.IgnoreNotFound(w.control.Delete(w.ctx, object))).To(Succeed())
		w.Eventually(func() bool {
			return apierrors.IsNotFound(w.control.Get(w.ctx, client.ObjectKeyFromObject(object), object))
		}).Should(BeTrue())
	}
}

// guide types the commands of a section of a guide, with values in the place of its words.
func (w *world) guide(page, section string, values ...string) {
	w.t.Helper()
	commands := strings.NewReplacer(values...).Replace(doccheck.Read(w.t, "docs/guides/"+page).Commands(w.t, section))
	script := `kubectl() { "$KUBECTL" --kubeconfig "$CONTROL" --namespace "$NAMESPACE" "$@"; }` + "\n" + commands
	cmd := exec.CommandContext(w.ctx, "bash", "-euc", script) // our own guide
	cmd.Env = []string{
		"PATH=/usr/bin:/bin",
		"HOME=" + w.t.TempDir(),
		"KUBECTL=" + w.sandbox.Kubectl(),
		"CONTROL=" + w.sandbox.Control.KubeconfigPath(),
		"NAMESPACE=" + w.namespace,
	}
	output, err := cmd.CombinedOutput()
	w.Expect(err).NotTo(HaveOccurred(), "%s\n%s", commands, output)
}
