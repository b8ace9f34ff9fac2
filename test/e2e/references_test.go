package e2e

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/sandbox"
)

const (
	// quiet is how long waiting Machines are watched. The managers have other work: objects of earlier tests that are gone are
	// reconciled once more at the deadline that was set for them. So one of several such intervals has to be quiet.
	quiet, quietComes = 10 * time.Second, 2 * time.Minute
	// quietRate is how often per second all managers together may reconcile anything meanwhile: a write enqueues its own object once
	// more, a loop would do so without end. A rate, since the intervals are longer on a busy machine.
	quietRate = 1.5
)

// TestWrongReferences creates Machines that cannot progress: each reports what is wrong with its
// reference, and waits without a hot loop.
func TestWrongReferences(t *testing.T) {
	w := sharedWorld(t, "wrong-references")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(0))).To(Succeed())
	infrastructure, bootstrap := clusterv1.MachineInfrastructureReadyCondition, clusterv1.MachineBootstrapConfigReadyCondition
	wrong := []struct {
		name, condition, says string
		edit                  func(*clusterv1.MachineSpec)
	}{
		{"infra-without-crd", infrastructure, "NoSuchMachine", infra("NoSuchMachine", "any")},
		{"infra-missing", infrastructure, "missing", infra("AWSMachine", "missing")},
		{"infra-not-ready", infrastructure, "not-ready", infra("AWSMachine", w.pausedInfra("not-ready"))},
		{"config-without-crd", bootstrap, "NoSuchConfig", config("NoSuchConfig", "any")},
		{"config-missing", bootstrap, "missing", config("CloudConfig", "missing")},
	}
	machines := make([]*clusterv1.Machine, 0, len(wrong))
	for _, c := range wrong {
		machines = append(machines, w.strayMachine(c.name, c.edit))
	}
	for i, c := range wrong {
		w.awaitCondition(machines[i], machines[i].GetConditions, c.condition, reports(c.says))
	}

	since, before := time.Now(), w.reconciles()
	w.Expect(before).To(BeNumerically(">", 0))
	w.Eventually(func() float64 {
		took := time.Since(since)
		if took < quiet {
			return -1 // It is not over yet.
		}
		earlier := before
		since, before = time.Now(), w.reconciles()
		return float64(before-earlier) / took.Seconds()
	}).WithTimeout(quietComes).WithPolling(time.Second).Should(And(BeNumerically(">=", 0), BeNumerically("<=", quietRate)))

	for _, machine := range machines {
		w.Expect(w.control.Delete(w.ctx, machine)).To(Succeed())
	}
	w.Eventually(w.machines).Should(BeEmpty(), "a Machine with a wrong reference can be deleted")
}

func infra(kind, name string) func(*clusterv1.MachineSpec) {
	return func(spec *clusterv1.MachineSpec) {
		spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: kind, Name: name}
	}
}

func config(kind, name string) func(*clusterv1.MachineSpec) {
	return func(spec *clusterv1.MachineSpec) {
		spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: bootstrapv1.GroupVersion.Group, Kind: kind, Name: name,
		}}
	}
}

// strayMachine creates a Machine without a set: its bootstrap data is there and its infrastructure is missing,
// unless edit says otherwise.
func (w *world) strayMachine(name string, edit func(*clusterv1.MachineSpec)) *clusterv1.Machine {
	w.t.Helper()
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name,
			Labels: map[string]string{clusterv1.ClusterNameLabel: sandbox.SampleCluster},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: sandbox.SampleCluster,
			Bootstrap:   clusterv1.Bootstrap{DataSecretName: ptr.To("by-hand")},
		},
	}
	infra("AWSMachine", "missing")(&machine.Spec)
	edit(&machine.Spec)
	w.Expect(w.control.Create(w.ctx, machine)).To(Succeed())
	return machine
}

// pausedInfra creates an AWSMachine that the provider leaves alone.
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

// reconciles is how often the managers have reconciled anything since they started.
func (w *world) reconciles() int {
	w.t.Helper()
	sum := 0
	for _, manager := range []*sandbox.Manager{w.sandbox.Core, w.sandbox.AWS, w.sandbox.CloudConfig} {
		metrics, err := manager.Metrics(w.ctx)
		w.Expect(err).NotTo(HaveOccurred())
		for _, count := range metrics.Reconciles() {
			sum += count
		}
	}
	return sum
}

// describes matches a condition by its reason.
func describes(c *metav1.Condition, reason string) error {
	if c.Reason != reason {
		return errors.Errorf("%s has the reason %s, not %s", c.Type, c.Reason, reason)
	}
	return nil
}
