package controller

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// running returns a fixture whose machine has its Secret in the target cluster.
func running(t *testing.T) *fixture {
	t.Helper()
	f := configured(t)
	f.reconcile()
	f.provisioned()
	f.reconcile()
	return f
}

// another returns the fixture with another CloudConfig in the place of its own.
func (f *fixture) another(config *bootstrapv1.CloudConfig) *fixture {
	f.t.Helper()
	status := config.Status
	f.create(config)
	config.Status = status
	if config.Status.Target.Name != "" {
		f.Expect(f.client.Status().Update(f.ctx, config)).To(Succeed())
	}
	g := *f
	g.config = config
	return &g
}

// copied is what "get -o yaml", another name and "apply" make of the fixture's CloudConfig, with a file that writes as root.
func (f *fixture) copied(change func(*bootstrapv1.CloudConfig)) *bootstrapv1.CloudConfig {
	copied := f.config.DeepCopy()
	copied.ObjectMeta = metav1.ObjectMeta{
		Namespace: f.config.Namespace, Name: "copy", Labels: f.config.Labels,
		OwnerReferences: f.config.OwnerReferences, Finalizers: f.config.Finalizers,
	}
	copied.Spec.Files = []bootstrapv1.File{{Path: "/etc/cron.d/theirs", Content: ptr.To("* * * * * root theirs")}}
	copied.Status = bootstrapv1.CloudConfigStatus{}
	if change != nil {
		change(copied)
	}
	return copied
}

// TestACopyTakesNothing: nothing is written and nothing deleted in the name of a CloudConfig that the Machine does not name.
func TestACopyTakesNothing(t *testing.T) {
	for name, change := range map[string]func(*fixture, *bootstrapv1.CloudConfig){
		"a copy":          func(*fixture, *bootstrapv1.CloudConfig) {},
		"with the status": func(f *fixture, c *bootstrapv1.CloudConfig) { c.Status = f.config.Status },
		"with the status and no owner": func(f *fixture, c *bootstrapv1.CloudConfig) {
			c.Status, c.OwnerReferences = f.config.Status, nil
		},
		"the owner's UID is another": func(_ *fixture, c *bootstrapv1.CloudConfig) {
			c.OwnerReferences = []metav1.OwnerReference{*c.OwnerReferences[0].DeepCopy()}
			c.OwnerReferences[0].UID = "another"
		},
		"the owner does not control it": func(f *fixture, c *bootstrapv1.CloudConfig) {
			c.OwnerReferences = []metav1.OwnerReference{*c.OwnerReferences[0].DeepCopy()}
			c.OwnerReferences[0].Controller = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := running(t)
			there, before := f.inTarget(), f.nodeSecret()
			copied := f.another(f.copied(func(c *bootstrapv1.CloudConfig) { change(f, c) }))
			copied.reconcile()
			f.Expect(f.nodeSecret()).To(Equal(before), "its files are on the VM of another")
			f.Expect(f.inTarget()).To(ConsistOf(there))
			f.Expect(f.secret(f.config.Namespace, "copy")).To(BeNil(), "user data")

			f.Expect(f.client.Delete(f.ctx, copied.config)).To(Succeed())
			copied.reconcile()
			f.Expect(copied.client.Get(f.ctx, client.ObjectKeyFromObject(copied.config), copied.config)).To(Satisfy(apierrors.IsNotFound))
			f.Expect(f.inTarget()).To(ConsistOf(there), "the machine's own are gone")
			f.Expect(f.nodeSecret()).To(Equal(before))

			f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
			f.reconcile()
			f.Expect(f.inTarget()).To(BeEmpty(), "its own CloudConfig removes them")
		})
	}
}

// TestACopyReportsWhoseTheMachineIs: it is not Ready, and names Machine and CloudConfig.
func TestACopyReportsWhoseTheMachineIs(t *testing.T) {
	f := running(t)
	copied := f.another(f.copied(nil))
	copied.reconcile()
	message := copied.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.OwnerMismatchReason)
	f.Expect(message).To(And(ContainSubstring("Machine machine is CloudConfig machine"), ContainSubstring("copy")))

	// One that was the Machine's own: it stays what it was no longer.
	f.update(f.machine, func() { f.machine.Spec.Bootstrap.ConfigRef.Name = "copy" })
	f.reconcile()
	f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.OwnerMismatchReason)).
		To(ContainSubstring("CloudConfig copy"))
}

// TestAMachineOfThePastIsGivenNothing: the cache still has the Machine that a CloudConfig was created for, the API server has another
// one of that name.
func TestAMachineOfThePastIsGivenNothing(t *testing.T) {
	f := running(t)
	past, before := f.machine.DeepCopy(), f.nodeSecret()
	admin, err := client.NewWithWatch(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	f.Expect(err).NotTo(HaveOccurred())
	f.live = admin
	f.home = interceptor.NewClient(admin, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if read, ok := obj.(*clusterv1.Machine); ok {
				past.DeepCopyInto(read)
				return nil
			}
			return c.Get(ctx, key, obj, options...)
		},
	})
	f.Expect(f.client.Delete(f.ctx, f.machine)).To(Succeed())
	today := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: past.Namespace, Name: past.Name, Labels: past.Labels},
		Spec:       past.Spec,
	}
	f.create(today)
	f.update(f.config, func() {
		f.config.Spec.Files = []bootstrapv1.File{{Path: "/etc/motd", Content: ptr.To("of the past")}}
	})
	f.reconcile()
	f.Expect(f.nodeSecret()).To(Equal(before))
	f.Expect(f.condition(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.OwnerMismatchReason)).
		To(ContainSubstring(string(past.UID)))
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.reconcile()
	f.Expect(f.nodeSecret()).To(BeNil(), "it has created this Secret, whosever Machine it is")
}

// TestNamesFromAForgedStatus: a CloudConfig without a Machine removes what it has created itself, whatever its status says.
func TestNamesFromAForgedStatus(t *testing.T) {
	f := running(t)
	there := f.inTarget()
	elsewhere := newFixture(t)
	elsewhere.Expect(elsewhere.client.Delete(elsewhere.ctx, elsewhere.machine)).To(Succeed())
	elsewhere.config.OwnerReferences = nil
	elsewhere.config.Finalizers = []string{bootstrapv1.Finalizer}
	elsewhere.config.Status = f.config.Status
	forged := elsewhere.another(elsewhere.config)
	f.Expect(f.client.Delete(f.ctx, forged.config)).To(Succeed())
	forged.reconcile()
	f.Expect(f.inTarget()).To(ConsistOf(there))
	f.Expect(f.secret("kube-system", "bootstrap-token-"+f.joinToken().ID)).To(BeAssignableToTypeOf(&corev1.Secret{}))

	// Its own are removed although nothing but its status names them.
	f.Expect(f.client.Delete(f.ctx, f.machine)).To(Succeed())
	f.update(f.config, func() { f.config.OwnerReferences = nil })
	f.Expect(f.client.Delete(f.ctx, f.config)).To(Succeed())
	f.reconcile()
	f.Expect(f.inTarget()).To(BeEmpty())
	f.Expect(f.client.Get(f.ctx, client.ObjectKey{Namespace: "kube-system",
		Name: nodeaccess.TokenSecretName(forged.config.Status.Target.JoinTokenID)}, &corev1.Secret{})).
		To(Satisfy(apierrors.IsNotFound))
}
