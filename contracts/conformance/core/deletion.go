package core

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

func deletionCases() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Deletion/Order", []rules.ID{"CO-024", "CO-025", "CO-026"}, deletionOrder),
		scenario("Deletion/PreDrain", []rules.ID{"CO-020"}, deletionPreDrain),
		scenario("Deletion/Drain", []rules.ID{"CO-021"}, deletionDrain),
		scenario("Deletion/Volumes", []rules.ID{"CO-022"}, deletionVolumes),
		scenario("Deletion/PreTerminate", []rules.ID{"CO-023"}, deletionPreTerminate),
	}
}

// booted creates a Machine and waits until it has its Node.
func (w *world) booted(change ...func(*clusterv1.Machine)) *place {
	w.open()
	p := w.machine(w.id, change...)
	w.boot(p)
	w.need(w.soon(func() string { return w.running(p) }))
	return p
}

func deletionOrder(w *world) {
	p := w.booted()
	w.remove(p.machine)
	w.need(w.soon(func() string { return w.deleted(p.infra) }))
	config := w.quiet(func() string { return w.staying(p.config) })
	node := w.staying(p.node)
	machine := w.gone(p.machine)
	w.release(p.infra)
	config += w.soon(func() string { return w.deleted(p.config) })
	w.check("CO-024", "the bootstrap config is deleted once the infrastructure machine is gone, and not before", config)
	if machine != "" {
		machine = w.quiet(func() string {
			if w.gone(p.machine) == "" {
				return "the Machine is gone while the bootstrap config exists"
			}
			return ""
		})
	} else {
		machine = "the Machine is gone while the infrastructure machine exists"
	}
	w.release(p.config)
	node += w.soon(func() string { return w.gone(p.node) })
	w.check("CO-025", "the Node is deleted once the infrastructure machine is gone, and not before", node)
	machine += w.soon(func() string { return w.gone(p.machine) })
	w.check("CO-026", "the Machine is gone once infrastructure machine and bootstrap config are, and not before", machine)
}

// held checks that the infrastructure machine of a deleted Machine is not deleted before something is released.
func (w *world) held(rule rules.ID, expected string, p *place, release func()) {
	w.remove(p.machine)
	early := w.quiet(func() string { return w.staying(p.infra) })
	if early != "" {
		// The rest is not verified: it may depend on what the core has skipped.
		w.check(rule, expected, early)
		return
	}
	release()
	w.check(rule, expected, early+w.within(w.Timeouts.Delete.Duration, func() string { return w.deleted(p.infra) }))
	w.release(p.infra)
	w.release(p.config)
}

// hook returns a change that adds an annotation to a Machine, and a function that removes it.
func (w *world) hook(prefix string) (func(*clusterv1.Machine), func(*place) func()) {
	name := prefix + "/standin"
	add := func(m *clusterv1.Machine) { m.Annotations = map[string]string{name: ""} }
	return add, func(p *place) func() {
		return func() { w.change(p.machine, func() { delete(p.machine.Annotations, name) }) }
	}
}

func deletionPreDrain(w *world) {
	add, take := w.hook(clusterv1.PreDrainDeleteHookAnnotationPrefix)
	p := w.booted(add)
	w.remove(p.machine)
	early := w.quiet(func() string {
		if w.readNode(w.id).Spec.Unschedulable {
			return "the Node is cordoned"
		}
		return w.staying(p.infra)
	})
	take(p)()
	late := w.soon(func() string { return w.deleted(p.infra) })
	w.check("CO-020", "nothing is drained while the annotation exists, and the deletion continues once it is removed", early+late)
}

func deletionPreTerminate(w *world) {
	add, take := w.hook(clusterv1.PreTerminateDeleteHookAnnotationPrefix)
	p := w.booted(add)
	w.held("CO-023", "the infrastructure machine is deleted once the annotation is gone, and not before", p, take(p))
}

func deletionDrain(w *world) {
	p := w.booted()
	pod := &corev1.Pod{ObjectMeta: w.meta(w.id)}
	pod.Spec.NodeName = w.id
	pod.Spec.AutomountServiceAccountToken = ptr.To(false)
	pod.Spec.Containers = []corev1.Container{{Name: "any", Image: "registry.invalid/any:v1"}}
	w.create(pod)
	before := pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	w.must(w.Client.Status().Patch(w.ctx, pod, client.MergeFrom(before)), "to write the status of a Pod")
	w.held("CO-021", "the infrastructure machine is deleted once the Pod has ended, and not before", p, func() {
		w.need(w.soon(func() string { return w.deleted(pod) }))
		w.remove(pod, client.GracePeriodSeconds(0))
	})
}

func deletionVolumes(w *world) {
	p := w.booted()
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: w.id}}
	attachment.Spec = storagev1.VolumeAttachmentSpec{
		Attacher: "standin.conformance.millwright.dev", NodeName: w.id,
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(w.id)},
	}
	w.create(attachment)
	w.attached(fmt.Sprintf("kubernetes.io/csi/standin.conformance.millwright.dev^%s", w.id))
	w.held("CO-022", "the infrastructure machine is deleted once the volume is detached, and not before", p, func() {
		w.remove(attachment)
		w.attached("")
	})
}

// attached sets the attached volume of a Node.
func (w *world) attached(name string) {
	node := w.readNode(w.id)
	before := node.DeepCopy()
	node.Status.VolumesAttached = nil
	if name != "" {
		node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: corev1.UniqueVolumeName(name), DevicePath: "/dev/any"}}
	}
	w.must(w.Client.Status().Patch(w.ctx, node, client.MergeFrom(before)), "to write the status of a Node")
}
