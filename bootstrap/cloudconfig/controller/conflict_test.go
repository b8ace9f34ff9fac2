package controller

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// TestLostRacesAreNoErrors: controller-runtime logs each error of a reconcile. That another client has changed the CloudConfig
// meanwhile calls for another look, at the first write, when its finalizer is removed, and in the target cluster.
func TestLostRacesAreNoErrors(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "cloudconfigs"}, "c", errors.New("the object has been modified"))
	f := configured(t)
	racing := func() client.Client {
		admin, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
		f.Expect(err).NotTo(HaveOccurred())
		return interceptor.NewClient(admin, interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return conflict
			},
			Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
				return conflict
			},
		})
	}
	looksAgain := func(when string) {
		t.Helper()
		result, err := f.try()
		f.Expect(err).NotTo(HaveOccurred(), when)
		f.Expect(result.RequeueAfter).To(BeNumerically(">", 0), when)
	}
	f.home = racing()
	looksAgain("adding the finalizer")
	f.Expect(f.config.Finalizers).To(BeEmpty())

	f.home = f.client
	f.reconcile()
	f.Expect(f.config.Finalizers).To(ContainElement(bootstrapv1.Finalizer))
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	reported := f.config.Status.DeepCopy()
	f.remote = racing()
	looksAgain("cleaning up the target cluster")
	f.Expect(f.config.Status).To(Equal(*reported), "nor is it worth a condition")

	f.remote, f.home = f.client, racing()
	looksAgain("removing the finalizer")
	f.home = f.client
	f.reconcile()
	f.Expect(f.client.Get(f.ctx, client.ObjectKeyFromObject(f.config), f.config)).To(Satisfy(apierrors.IsNotFound))
}
