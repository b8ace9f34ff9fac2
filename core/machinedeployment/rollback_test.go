package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest/workers"
)

// rollBackTo asks for a revision.
func rollBackTo(revision string) func(*clusterv1.MachineDeployment) {
	return func(d *clusterv1.MachineDeployment) {
		d.Annotations = with(d.Annotations, RollbackToAnnotation, revision)
	}
}

// settled is satisfied when all Machines are of one template, available, and of the revision.
func (w *world) settled(n int32, template, revision string) func(Gomega) {
	return func(g Gomega) {
		w.running(n)(g)
		set := w.listSets()[0]
		g.Expect(set.Spec.Template.Spec.InfrastructureRef.Name).To(Equal(template))
		g.Expect(set.Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, revision))
		g.Expect(w.current().Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, revision))
		g.Expect(w.current().Spec.Template.Spec.InfrastructureRef.Name).To(Equal(template))
		g.Expect(w.current().Annotations).NotTo(HaveKey(RollbackToAnnotation))
	}
}

func TestRollbackTakesTheSetOfTheRevisionAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	first := w.listSets()[0]
	w.update(func(d *clusterv1.MachineDeployment) {
		toTemplateB(d)
		d.Spec.Template.Labels["tier"] = "front"
	})
	w.Eventually(w.settled(2, "b", "2"))
	w.G.Expect(w.allSets()).To(HaveLen(2), "the set of revision 1 is kept")

	stop := w.watchNumbers(3, 2)
	w.update(rollBackTo("0"))
	w.Eventually(w.settled(2, "a", "3"))
	stop()
	w.G.Expect(w.listSets()[0].UID).To(Equal(first.UID), "it is that set, not another one like it")
	w.G.Expect(w.current().Spec.Template.Labels).To(HaveKeyWithValue("tier", "front"), "labels are of no revision")

	w.update(rollBackTo("2"))
	w.Eventually(w.settled(2, "b", "4"))
	w.G.Expect(w.allSets()).To(HaveLen(2))
}

func TestRollbackToARevisionThatIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1, func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{RevisionHistoryLimitAnnotation: "0"}
	})
	w.start(t)
	w.Eventually(w.settled(1, "a", "1"))
	w.update(rollBackTo("0"))
	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, RollbackRevisionNotFoundReason, "no previous revision"))
	w.update(func(d *clusterv1.MachineDeployment) { delete(d.Annotations, RollbackToAnnotation) })
	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, clusterv1.MachineDeploymentNotRollingOutReason, ""))
	w.update(toTemplateB)
	w.Eventually(w.settled(1, "b", "2"))
	w.Eventually(func(g Gomega) { g.Expect(w.allSets()).To(HaveLen(1), "no history is kept") })

	w.update(rollBackTo("1"))
	w.Eventually(
		w.reports(
			clusterv1.MachineDeploymentRollingOutCondition,
			RollbackRevisionNotFoundReason,
			"Revision 1, to roll back to, is not kept; kept are 2",
		),
	)
	w.Eventually(func(g Gomega) {
		events := &corev1.EventList{}
		g.Expect(direct.List(w.Ctx, events, client.InNamespace(w.Namespace))).To(Succeed())
		g.Expect(events.Items).
			To(ContainElement(And(HaveField("Reason", RollbackRevisionNotFoundReason), HaveField("Type", corev1.EventTypeWarning))))
	})
	w.G.Expect(w.current().Spec.Template.Spec.InfrastructureRef.Name).To(Equal("b"))

	w.update(rollBackTo("latest"))
	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, RollbackRevisionNotFoundReason, `"latest" is not a revision`))
	w.update(rollBackTo("2"))
	w.Eventually(w.settled(1, "b", "2"))
}

// TestRollbackOutOfABrokenRollout goes back while the rollout that is to be undone still hangs.
func TestRollbackOutOfABrokenRollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2, func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{RevisionHistoryLimitAnnotation: "0"}
	})
	w.start(t)
	w.Eventually(w.settled(2, "a", "1"))
	before := names(w.Machines())
	stop := w.watchNumbers(3, 2)
	w.machines.setBroken("b")
	w.update(toTemplateB)
	w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(3)) })
	w.update(rollBackTo("0"))
	w.Eventually(func(g Gomega) {
		w.settled(2, "a", "3")(g)
		g.Expect(names(w.Machines())).To(ConsistOf(before), "nothing that served was replaced")
		g.Expect(w.allSets()).To(HaveLen(1))
	})
	stop()
}

func names(machines []clusterv1.Machine) []string {
	var list []string
	for i := range machines {
		list = append(list, machines[i].Name)
	}
	return list
}

// TestCrashWhileRollingBack ends the process at each write of the deployment in turn: the template comes back and
// the annotation goes, or neither, and never twice.
func TestCrashWhileRollingBack(t *testing.T) {
	t.Parallel()
	crashAtEach(t, workers.Crashes{
		Counts: writesOf("MachineDeployment"),
		Alone:  "patch MachineDeployment 1",
		Want:   map[string]int{"patch MachineDeployment": 2},
	}, rollBackWithCrashes)
}

func rollBackWithCrashes(t *testing.T, c *workers.Crash) {
	t.Helper()
	w := newWorld(t)
	w.deployment(1)
	w.start(t)
	w.Eventually(w.settled(1, "a", "1"))
	w.update(toTemplateB)
	w.Eventually(w.settled(1, "b", "2"))
	w.Stop()
	w.update(rollBackTo("0"))
	w.survive(t, c, w.settled(1, "a", "3"))
}

func TestRollbackTarget(t *testing.T) {
	going := setOf("going", "w", 0, time.Hour, "4")
	going.DeletionTimestamp = &metav1.Time{Time: start}
	sets := []*clusterv1.MachineSet{
		setOf("one", "u", 0, 3*time.Hour, "1"), setOf("two", "v", 0, 2*time.Hour, "2"), setOf("three", "t", 3, time.Hour, "3"),
		going, setOf("adopted", "x", 0, 4*time.Hour, ""),
	}
	tests := map[string]struct {
		value, want, refused string
	}{
		"the previous one":           {"0", "two", ""},
		"a certain one":              {"1", "one", ""},
		"the current one":            {"3", "three", ""},
		"one that goes":              {"4", "", "kept are 3 (MachineSet three), 2 (MachineSet two), 1 (MachineSet one)"},
		"one that there never was":   {"9", "", "Revision 9, to roll back to, is not kept"},
		"no number":                  {"x", "", "not a revision"},
		"a number below all of them": {"-1", "", "not a revision"},
		"more than a number":         {"1 ", "", "not a revision"},
		"nothing":                    {"", "", "not a revision"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, refused := rollbackTarget(valid(), sets, test.value)
			if test.refused != "" {
				g.Expect(refused).To(And(ContainSubstring(test.refused), ContainSubstring(RollbackToAnnotation)))
				g.Expect(got).To(BeNil())
				return
			}
			g.Expect(refused).To(BeEmpty())
			g.Expect(got.Name).To(Equal(test.want))
		})
	}
	g := NewWithT(t)
	_, refused := rollbackTarget(valid(), nil, "2")
	g.Expect(refused).To(ContainSubstring("no revision is kept"))
}

func TestRestoreBringsBackWhatMakesARevision(t *testing.T) {
	g := NewWithT(t)
	from := clusterv1.MachineSpec{
		Version: "v1", FailureDomain: "x", MinReadySeconds: ptr.To[int32](1),
		Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("s")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{Name: "i"},
	}
	to := clusterv1.MachineSpec{ClusterName: "c", Version: "v2", MinReadySeconds: ptr.To[int32](5)}
	restore(&to, &from)
	want := *from.DeepCopy()
	want.ClusterName, want.MinReadySeconds = "c", ptr.To[int32](5)
	g.Expect(to).To(Equal(want))
}

func TestHistoryIsKeptUpToItsLimit(t *testing.T) {
	prunableWith := func(limit string, sets ...*clusterv1.MachineSet) []string {
		s := begin(valid())
		s.sets, s.current = sets, sets[0]
		if limit != "" {
			s.deployment.Annotations = map[string]string{RevisionHistoryLimitAnnotation: limit}
		}
		names := []string{}
		for _, set := range prunable(s) {
			names = append(names, set.Name)
		}
		return names
	}
	g := NewWithT(t)
	current, a, b, c := setOf("current", "t", 0, 0, "9"), setOf("a", "u", 0, 0, "8"), setOf("b", "v", 0, 0, "11"), setOf("c", "w", 0, 0, "7")
	twin, lost, busy := setOf("twin", "t", 0, time.Hour, "6"), setOf("lost", "x", 0, 0, ""), setOf("busy", "y", 1, 0, "5")
	g.Expect(prunableWith("", current, a, b, c, twin, lost, busy)).To(ConsistOf("a", "c", "twin", "lost"), "one is kept")
	g.Expect(prunableWith("2", current, a, b, c)).To(ConsistOf("c"))
	g.Expect(prunableWith("0", current, a, b, c)).To(ConsistOf("a", "b", "c"))
	g.Expect(prunableWith("many", current, a, b, c)).To(ConsistOf("a", "c"), "the default is assumed")
	g.Expect(prunableWith("-1", current, a, b)).To(ConsistOf("a"))
	g.Expect(prunableWith("99", current, a, b, c)).To(BeEmpty())
}
