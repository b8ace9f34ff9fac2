package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/sandbox"
)

const (
	// quiet is how long Machines that wait are watched.
	quiet = 10 * time.Second
	// quietReconciles is how often three waiting Machines may be reconciled meanwhile: what has just
	// been written wakes its own reconciler once more, a loop would do so without end.
	quietReconciles = 15
)

// TestWrongReferences makes Machines that cannot get anywhere: each says what is wrong with its
// reference, and waits without a hot loop.
func TestWrongReferences(t *testing.T) {
	w := sharedWorld(t, "wrong-references")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(0))).To(Succeed())
	machines := map[string]*clusterv1.Machine{
		"NoSuchMachine": w.strayMachine("kind-without-crd", "NoSuchMachine", "any"),
		"missing":       w.strayMachine("object-missing", "AWSMachine", "missing"),
		"not-ready":     w.strayMachine("object-not-ready", "AWSMachine", w.pausedInfra("not-ready")),
	}
	for text, machine := range machines {
		w.awaitCondition(machine, machine.GetConditions, clusterv1.MachineInfrastructureReadyCondition, says(text))
	}

	w.Eventually(func() int { return w.reconciles() }).Should(BeNumerically(">", 0))
	before := w.reconciles()
	w.Consistently(func() int { return w.reconciles() - before }).WithTimeout(quiet).WithPolling(time.Second).
		Should(BeNumerically("<=", quietReconciles))

	for _, machine := range machines {
		w.Expect(w.control.Delete(w.ctx, machine)).To(Succeed())
	}
	w.Eventually(w.machines).Should(BeEmpty(), "a Machine with a wrong reference can be deleted")
}

// strayMachine makes a Machine by hand, with a reference to the infrastructure.
func (w *world) strayMachine(name, kind, ref string) *clusterv1.Machine {
	w.t.Helper()
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name,
			Labels: map[string]string{clusterv1.ClusterNameLabel: sandbox.SampleCluster},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: sandbox.SampleCluster,
			Bootstrap:   clusterv1.Bootstrap{DataSecretName: ptr.To("by-hand")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: ref,
			},
		},
	}
	w.Expect(w.control.Create(w.ctx, machine)).To(Succeed())
	return machine
}

// pausedInfra makes an AWSMachine that the provider leaves alone.
func (w *world) pausedInfra(name string) string {
	w.t.Helper()
	template, err := w.sandbox.Sample("awsmachinetemplate.yaml", w.namespace)
	w.Expect(err).NotTo(HaveOccurred())
	infra, err := sandbox.FromTemplate(template, "AWSMachine", name)
	w.Expect(err).NotTo(HaveOccurred())
	infra.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""})
	w.Expect(w.control.Create(w.ctx, infra)).To(Succeed())
	w.t.Cleanup(func() {
		infra.SetAnnotations(nil)
		_ = w.control.Update(suite.ctx, infra)
		_ = w.control.Delete(suite.ctx, infra)
	})
	return name
}

// reconciles is how often the core has reconciled Machines since it started.
func (w *world) reconciles() int {
	w.t.Helper()
	metrics, err := w.sandbox.Core.Metrics(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	return metrics.Reconciles()["machine"]
}

// describes matches a condition by its reason.
func describes(c *metav1.Condition, reason string) error {
	if c.Reason != reason {
		return errors.Errorf("%s has the reason %s, not %s", c.Type, c.Reason, reason)
	}
	return nil
}
