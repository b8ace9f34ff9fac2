package controller

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// TestAFinalizerThatIsRefusedIsReported: a policy of the management cluster denies the write, when it is added and when it is removed.
func TestAFinalizerThatIsRefusedIsReported(t *testing.T) {
	f := configured(t)
	admin, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	refusing := interceptor.NewClient(admin, interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "cloudconfigs"}, obj.GetName(), errors.New("by a policy"))
		},
	})
	f.home = refusing
	_, err = f.try()
	f.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "it is tried again")
	f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.RefusedByAPIServerReason)).
		To(ContainSubstring("by a policy"))
	f.Expect(f.inTarget()).To(BeEmpty(), "what would not be removed again is not made")

	f.home = f.client
	f.reconcile()
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.home = refusing
	_, err = f.try()
	f.Expect(apierrors.IsForbidden(err)).To(BeTrue())
	f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.DeletingReason)).To(ContainSubstring("by a policy"))
}

// TestTheWatchLabelIsHeeded: a CloudConfig of another manager is left alone, also when it comes by way of its Machine.
func TestTheWatchLabelIsHeeded(t *testing.T) {
	f := configured(t)
	r := &Reconciler{Client: f.home, APIReader: f.home, Targets: f, Recorder: f.events, Clock: f.clock, WatchFilter: "mine"}
	reconcile := func() {
		_, err := r.Reconcile(f.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.config)})
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Succeed())
	}
	reconcile()
	f.Expect(f.config.Finalizers).To(BeEmpty())
	f.Expect(f.config.Status.Conditions).To(BeEmpty())
	f.update(f.config, func() { metav1.SetMetaDataLabel(&f.config.ObjectMeta, clusterv1.WatchLabel, "mine") })
	reconcile()
	f.Expect(f.config.Finalizers).NotTo(BeEmpty())
}

// TestACloudConfigOfThePastMakesNothing: the cache still has a CloudConfig that no longer exists. Tokens and Secrets created for it
// would stay in the target cluster, since nothing would take them back.
func TestACloudConfigOfThePastMakesNothing(t *testing.T) {
	f := configured(t)
	past := f.config.DeepCopy()
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.config = past.DeepCopy()
	admin, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	f.home = interceptor.NewClient(admin, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if read, ok := obj.(*bootstrapv1.CloudConfig); ok {
				past.DeepCopyInto(read)
				return nil
			}
			return c.Get(ctx, key, obj, options...)
		},
	})
	f.reconcile()
	f.Expect(f.inTarget()).To(BeEmpty())
	secrets := &corev1.SecretList{}
	f.Expect(f.client.List(f.ctx, secrets, client.InNamespace(past.Namespace))).To(Succeed())
	f.Expect(secrets.Items).To(ConsistOf(HaveField("ObjectMeta", HaveField("Name", "cluster-kubeconfig"))))
}
