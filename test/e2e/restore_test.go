package e2e

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/sandbox"
)

// TestAdoptAfterRestore: a Machine was created after the backup that is restored now: its instance runs, its Node serves, and no object knows of
// it. The commands of the guide have the set adopt it: nothing is launched, ended or drained, and the Node stays the same.
func TestAdoptAfterRestore(t *testing.T) {
	w := sharedWorld(t, "restore")
	w.start(3)
	launched, nodes := w.live(), w.nodes()
	lost := w.machines()[0]
	set := lost.Labels[clusterv1.MachineSetNameLabel]

	w.sandbox.Core.Kill()
	w.sandbox.AWS.Kill()
	w.sandbox.CloudConfig.Kill()
	w.change(func(md *clusterv1.MachineDeployment) { md.Spec.Replicas = ptr.To[int32](2) })
	restored := &clusterv1.MachineSet{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: set}, restored)).To(Succeed())
	before := restored.DeepCopy()
	restored.Spec.Replicas = ptr.To[int32](2)
	w.Expect(w.control.Patch(w.ctx, restored, client.MergeFrom(before))).To(Succeed())
	w.forget(&lost)
	w.Expect(w.sandbox.CloudConfig.Start(w.ctx)).To(Succeed())
	w.Expect(w.sandbox.AWS.Start(w.ctx)).To(Succeed())
	w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())
	w.Expect(w.live()).To(HaveLen(3), "the third runs, and nobody claims it")

	w.guide("restore.md", "Adopt an instance", "SET", set, "DEPLOYMENT", sandbox.SampleDeployment, "=MACHINE=", "="+lost.Name+"=",
		"PROVIDERID", lost.Spec.ProviderID, "=N", "=3")
	w.Expect(w.scenario.AwaitRunning(w.ctx, 3)).To(Succeed())
	w.expectSameInstances(launched)
	w.Expect(w.machines()).To(ContainElement(And(HaveField("Name", lost.Name), HaveField("Spec.ProviderID", lost.Spec.ProviderID),
		HaveField("Status.NodeRef.Name", lost.Status.NodeRef.Name))))
	for name, node := range w.nodes() {
		w.Expect(nodes).To(HaveKey(name))
		w.Expect(node.UID).To(Equal(nodes[name].UID), "the Node is the same")
		w.Expect(node.Spec.Unschedulable).To(BeFalse())
	}
	events := &eventsv1.EventList{}
	w.Expect(w.control.List(w.ctx, events, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(events.Items).To(ContainElement(And(HaveField("Reason", "InstanceAdopted"), HaveField("Regarding.Name", lost.Name))))
	w.Eventually(func(g Gomega) {
		g.Expect(w.control.Get(w.ctx, client.ObjectKeyFromObject(restored), restored)).To(Succeed())
		g.Expect(restored.Annotations).NotTo(HaveKey("machineset.millwright.dev/adopt"), "the reconcile after the creation takes it out of the list")
	}).Should(Succeed())
}

// forget takes a Machine and what was made for it out of the API server, as if it had never been there.
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
		"PATH=/usr/bin:/bin", "HOME=" + w.t.TempDir(), "KUBECTL=" + w.sandbox.Kubectl(), "CONTROL=" + w.sandbox.Control.KubeconfigPath(), "NAMESPACE=" + w.namespace,
	}
	output, err := cmd.CombinedOutput()
	w.Expect(err).NotTo(HaveOccurred(), "%s\n%s", commands, output)
}
