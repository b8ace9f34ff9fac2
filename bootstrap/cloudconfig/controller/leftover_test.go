package controller

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// recreated deletes the fixture's Machine and CloudConfig while the target cluster cannot be reached, and creates both again.
func (f *fixture) recreated() {
	f.t.Helper()
	f.connected = false
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.clock.Step(6 * time.Minute)
	f.reconcile()
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Satisfy(apierrors.IsNotFound))
	f.Expect(f.client.Delete(f.ctx, f.machine)).To(Succeed())
	f.machine = &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.machine.Namespace, Name: f.machine.Name, Labels: f.machine.Labels},
		Spec:       f.machine.Spec,
	}
	f.machine.Spec.ProviderID, f.machine.Spec.Bootstrap.DataSecretName = "", nil
	f.create(f.machine)
	f.config = &bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.config.Namespace, Name: f.config.Name, Labels: f.config.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.machine, clusterv1.GroupVersion.WithKind("Machine"))},
	}}
	f.create(f.config)
	f.connected = true
}

// What an earlier Machine of the name has left in the target cluster, with an approval in it, is not the new one's.
func TestALeftoverOfAnEarlierMachineIsNotInherited(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"whole": func(*fixture) {},
		"of an earlier version": func(f *fixture) {
			f.change(func(s *corev1.Secret) { delete(s.Annotations, nodeaccess.DownloadTokenAnnotation) })
		},
		"without its RoleBinding": func(f *fixture) { f.deleteRBAC() },
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			f.change(func(s *corev1.Secret) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, approval.ApprovedAnnotation, "csr-of-before/uid/"+f.joinToken().ID)
			})
			change(f)
			before, join, download := f.nodeSecret(), f.joinToken(), f.downloadToken()
			f.recreated()
			f.reconcile()
			if name != "without its RoleBinding" {
				f.Expect(f.nodeSecret()).To(BeNil(), "the new machine would read it as soon as it boots")
			}
			f.provisioned()
			f.reconcile()
			f.Expect(f.nodeSecret().UID).NotTo(Equal(before.UID))
			f.Expect(f.nodeSecret().Annotations).NotTo(HaveKey(approval.ApprovedAnnotation))
			f.Expect(nodeaccess.JoinTokens(f.nodeSecret())).NotTo(ContainElement(join.ID))
			f.Expect(f.joinToken()).NotTo(Equal(join))
			f.Expect(f.token(join.ID)).To(BeNil(), "who has it would still ask for certificates")
			if name != "of an earlier version" {
				f.Expect(f.token(download.ID)).To(BeNil(), "who has it would read the new machine's token")
			}
			f.condition(bootstrapv1.ReadyCondition, metav1.ConditionTrue, bootstrapv1.ReadyReason)
			made := f.nodeSecret()
			f.reconcile()
			f.Expect(f.nodeSecret()).To(Equal(made))
		})
	}
}

func (f *fixture) change(change func(*corev1.Secret)) {
	f.t.Helper()
	secret := f.nodeSecret()
	f.update(secret, func() { change(secret) })
}

// deleteRBAC leaves of what the machine has in its target cluster what a deletion does that ends before its last step.
func (f *fixture) deleteRBAC() {
	f.t.Helper()
	meta := metav1.ObjectMeta{Namespace: nodeaccess.DefaultNamespace, Name: f.names.Object()}
	f.Expect(f.client.Delete(f.ctx, &rbacv1.RoleBinding{ObjectMeta: meta})).To(Succeed())
	f.Expect(f.client.Delete(f.ctx, &rbacv1.Role{ObjectMeta: meta})).To(Succeed())
}

// A Secret of before this version names no download token. It stays as it is while its machine joins, and names it from its next write on.
func TestASecretOfAnEarlierVersionIsKept(t *testing.T) {
	f := running(t)
	f.change(func(s *corev1.Secret) { delete(s.Annotations, nodeaccess.DownloadTokenAnnotation) })
	before := f.nodeSecret()
	f.reconcile()
	f.Expect(f.nodeSecret()).To(Equal(before))
	f.update(f.config, func() { f.config.Spec.Agent.PollIntervalSeconds = 17 })
	f.reconcile()
	f.Expect(f.nodeSecret().UID).To(Equal(before.UID))
	f.Expect(f.nodeSecret().Annotations).To(HaveKeyWithValue(nodeaccess.DownloadTokenAnnotation, f.downloadToken().ID))
}
