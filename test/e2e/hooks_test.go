package e2e

import (
	"path"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	backupHook  = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/backup"
	detachHook  = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/detach"
	archiveHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/archive"
)

// TestHooks blocks a deletion by hooks of three owners: each is named, the core may be killed meanwhile, and the removal
// of the last one of a step continues the deletion at once.
func TestHooks(t *testing.T) {
	w := sharedWorld(t, "hooks")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(1))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 1)).To(Succeed())
	machine := &w.machines()[0]
	instance, node := path.Base(machine.Spec.ProviderID), machine.Status.NodeRef.Name
	w.annotateMachine(machine, backupHook, "backup-operator")
	w.annotateMachine(machine, detachHook, "storage-operator")
	w.annotateMachine(machine, archiveHook, "archive-operator")
	w.Expect(w.scenario.Scale(w.ctx, 0)).To(Succeed())

	w.awaitDeleting(
		machine,
		clusterv1.MachineDeletingWaitingForPreDrainHookReason,
		"2 pre-drain hooks",
		backupHook+" (backup-operator)",
		detachHook,
	)
	w.Expect(w.unschedulable(node)).To(BeFalse(), "nothing is drained before the hooks")
	w.annotateMachine(machine, backupHook, "")
	w.awaitDeleting(machine, clusterv1.MachineDeletingWaitingForPreDrainHookReason, "1 pre-drain hook,", detachHook)
	w.sandbox.Core.Kill()
	w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())
	w.annotateMachine(machine, detachHook, "")

	w.awaitDeleting(
		machine,
		clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
		"1 pre-terminate hook,",
		archiveHook+" (archive-operator)",
	)
	w.Expect(w.unschedulable(node)).To(BeTrue())
	w.Expect(w.live()).To(HaveKey(instance), "the machine is kept for the hook")
	w.annotateMachine(machine, archiveHook, "")
	w.Eventually(w.live).ShouldNot(HaveKey(instance))
	w.Eventually(w.machines).Should(BeEmpty())
	w.Expect(client.IgnoreNotFound(w.target.Get(w.ctx, client.ObjectKey{Name: node}, &corev1.Node{}))).To(Succeed())
}

// annotateMachine sets an annotation of a Machine, or removes it when the value is empty.
func (w *world) annotateMachine(machine *clusterv1.Machine, key, value string) {
	w.t.Helper()
	before := machine.DeepCopy()
	if value == "" {
		delete(machine.Annotations, key)
	} else {
		metav1.SetMetaDataAnnotation(&machine.ObjectMeta, key, value)
	}
	w.Expect(w.control.Patch(w.ctx, machine, client.MergeFrom(before))).To(Succeed())
}

// awaitDeleting waits until the Machine's condition Deleting has the reason and all texts in its message.
func (w *world) awaitDeleting(machine *clusterv1.Machine, reason string, texts ...string) {
	w.t.Helper()
	w.awaitCondition(machine, machine.GetConditions, clusterv1.MachineDeletingCondition, func(c *metav1.Condition) error {
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return errors.Errorf("%s says %q, without %q", c.Type, c.Message, text)
			}
		}
		return describes(c, reason)
	})
}

func (w *world) unschedulable(node string) bool {
	w.t.Helper()
	object := &corev1.Node{}
	w.Expect(w.target.Get(w.ctx, client.ObjectKey{Name: node}, object)).To(Succeed())
	return object.Spec.Unschedulable
}
