package machinedeployment

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/admission/validate"
)

func autoscaled(low, high string) func(*clusterv1.MachineDeployment) {
	return func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: low, clusterv1.AutoscalerMaxSizeAnnotation: high}
	}
}

// TestWithoutAdmission leaves open what admission fills in: the deployment behaves as if it had been filled in, and
// what is left open stays open.
func TestWithoutAdmission(t *testing.T) {
	w := newWorld(t)
	w.deployment(1, func(d *clusterv1.MachineDeployment) {
		d.Spec.Replicas = nil
		d.Spec.Template.Spec.Version = "1.36.3"
	})
	w.start(t)
	w.Eventually(w.settled(1, "a", "1"))
	w.G.Expect(w.current().Spec.Replicas).To(BeNil())
	w.G.Expect(w.current().Spec.Selector.MatchLabels).To(Equal(map[string]string{"pool": "a"}))
	w.G.Expect(w.current().Status.Selector).To(Equal("cluster.x-k8s.io/cluster-name=c,pool=a"))
	w.G.Expect(w.Machines()[0].Spec.Version).To(Equal("v1.36.3"))
}

// TestAutoscaledWithoutAdmission does the same with the limits of the cluster autoscaler: what it reads is written.
func TestAutoscaledWithoutAdmission(t *testing.T) {
	w := newWorld(t)
	w.deployment(1, autoscaled("2", "5"), func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = nil })
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	w.G.Expect(w.current().Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	w.scaleBy(1)
	w.Eventually(w.settled(3, "a", "1"))
	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = nil })
	w.Eventually(func(g Gomega) {
		g.Expect(w.current().Spec.Replicas).To(HaveValue(BeEquivalentTo(3)), "the number that there was")
	})
	w.G.Expect(w.allSets()).To(HaveLen(1))
}

func TestOpenForAutoscaler(t *testing.T) {
	g := NewWithT(t)
	empty := valid(autoscaled("2", "5"), func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = nil })
	setAutoscalerDefaults(empty)
	g.Expect(empty.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	g.Expect(empty.Spec.Selector.MatchLabels).
		To(HaveKeyWithValue(clusterv1.MachineDeploymentNameLabel, "d"), "an empty one would be all Machines")
	g.Expect(empty.Spec.Template.Labels).To(HaveKeyWithValue(clusterv1.MachineDeploymentNameLabel, "d"))

	own := valid(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = nil })
	setAutoscalerDefaults(own)
	g.Expect(own).To(Equal(valid(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = nil })), "without limits nothing is written")
}

func TestInvalidIsWhatAdmissionRefuses(t *testing.T) {
	g := NewWithT(t)
	complete := valid(func(d *clusterv1.MachineDeployment) { setDefaults(d) })
	g.Expect(specErrors(complete)).To(BeEmpty())
	complete.Annotations = map[string]string{
		RollbackToAnnotation:           "x",
		ProgressDeadlineAnnotation:     "x",
		RevisionHistoryLimitAnnotation: "x",
		RecreateAnnotation:             "x",
	}
	g.Expect(specErrors(complete)).To(BeEmpty(), "nothing is held up by annotations for which something can be assumed")
	g.Expect(annotationErrors(complete)).To(HaveLen(3), "but they are named")
	complete.Spec.Replicas = ptr.To[int32](-1)
	g.Expect(specErrors(complete)).To(ConsistOf(ContainSubstring("spec.replicas")))
	limitless := valid(autoscaled("few", "5"), func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = nil })
	setDefaults(limitless)
	g.Expect(specErrors(limitless)).To(ConsistOf(ContainSubstring("few")))
}

// TestAdmissionKnowsTheAnnotations: it has their names of its own, so that it depends on no controller.
func TestAdmissionKnowsTheAnnotations(t *testing.T) {
	for _, key := range []string{RollbackToAnnotation, RevisionHistoryLimitAnnotation, ProgressDeadlineAnnotation, RecreateAnnotation} {
		g := NewWithT(t)
		deployment := valid(func(d *clusterv1.MachineDeployment) { d.Annotations = map[string]string{key: "x"} })
		setDefaults(deployment)
		g.Expect(validate.MachineDeployment(deployment, nil).ToAggregate()).To(MatchError(ContainSubstring(key)))
	}
}
