package e2e

import (
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// attacher is the CSI driver that the test simulates: only it creates and deletes VolumeAttachments.
const attacher = "csi.e2e.millwright.dev"

// volume creates a PersistentVolume that is bound to a claim.
func (d *drains) volume(claim string) {
	d.t.Helper()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: d.namespace + "-" + claim},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: attacher, VolumeHandle: claim},
			},
			ClaimRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: d.pods, Name: claim},
		},
	}
	d.Expect(d.target.Create(d.ctx, pv)).To(Succeed())
	d.t.Cleanup(func() { _ = d.target.Delete(d.ctx, pv) })
}

func (d *drains) attachmentOf(claim, node string) *storagev1.VolumeAttachment {
	volume := d.namespace + "-" + claim
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: attacher,
			NodeName: node,
			Source:   storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}
}

// attachment is that of the volume of a claim to a Node.
func (d *drains) attachment(claim, node string) {
	d.t.Helper()
	va := d.attachmentOf(claim, node)
	d.Expect(d.target.Create(d.ctx, va)).To(Succeed())
	d.t.Cleanup(func() { _ = d.target.Delete(d.ctx, va) })
	before := va.DeepCopy()
	va.Status.Attached = true
	d.Expect(d.target.Status().Patch(d.ctx, va, client.MergeFrom(before))).To(Succeed())
}

func (d *drains) detach(claim, node string) {
	d.t.Helper()
	d.Expect(d.target.Delete(d.ctx, d.attachmentOf(claim, node))).To(Succeed())
}

func (d *drains) eventuallyDetached(claim, node string) {
	d.t.Helper()
	va := d.attachmentOf(claim, node)
	d.Eventually(func() bool {
		return apierrors.IsNotFound(d.target.Get(d.ctx, client.ObjectKeyFromObject(va), va))
	}).Should(BeTrue(), "%s should be detached", claim)
}

// Two pods have a volume each; one that stays has a third.
func (d *drains) prepareVolumes(node *corev1.Node) {
	with := func(class string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.PriorityClassName = class
			p.Spec.Volumes = []corev1.Volume{{
				Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name}},
			}}
		}
	}
	skip := func(p *corev1.Pod) { p.Labels[clusterv1.PodDrainLabel] = "skip" }
	for _, claim := range []string{"database", "archive", "logs"} {
		d.volume(claim)
		d.attachment(claim, node.Name)
	}
	d.podOn(node, "archive", with(""))
	d.podOn(node, "database", with("system-cluster-critical"))
	d.podOn(node, "logs", with(""), skip)
}

// followVolumes simulates the attacher: volumes move one after the other, the more important pod first.
func (d *drains) followVolumes(node *corev1.Node) {
	volume := "PersistentVolume " + d.namespace + "-database is "
	d.eventuallyEvicted("database")
	d.awaitDeleting(
		node,
		clusterv1.MachineDeletingDrainingNodeReason,
		"waiting until "+volume+"detached",
		"one by one, because of their volumes: pod "+d.pod("archive").String(),
	)
	d.untouched("archive")
	d.detach("database", node.Name)
	d.awaitDeleting(node, clusterv1.MachineDeletingDrainingNodeReason, "waiting until "+volume+"attached to another Node")
	d.untouched("archive")
	d.attachment("database", "elsewhere")
	d.eventuallyEvicted("archive")
	d.awaitDeleting(node, clusterv1.MachineDeletingWaitingForVolumeDetachReason, "1 volume: PersistentVolumeClaim "+d.pod("archive").String())
	d.untouched("logs")
	d.detach("archive", node.Name)
}
