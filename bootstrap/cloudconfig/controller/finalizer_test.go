package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// TestACloudConfigOfThePastMakesNothing: the cache still has a CloudConfig that is gone. Tokens and Secrets made for it
// would stay in the target cluster, since nobody would take them back.
func TestACloudConfigOfThePastMakesNothing(t *testing.T) {
	f := configured(t)
	past := f.config.DeepCopy()
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.config = past.DeepCopy()
	admin, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme})
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
