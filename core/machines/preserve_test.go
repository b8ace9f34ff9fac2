package machines

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestPreservation(t *testing.T) {
	for _, c := range []struct{ own, mcm, want string }{
		{"", "", ""},
		{PreserveNow, "", PreserveNow},
		{PreserveWhenFailed, PreserveNow, PreserveWhenFailed},
		{PreserveNever, PreserveNow, PreserveNever},
		{"", PreserveNow, PreserveNow},
		{"", PreserveWhenFailed, PreserveWhenFailed},
		{"", "auto-preserved", ""},
		{"", "nonsense", ""},
		{"nonsense", PreserveNow, PreserveWhenFailed},
	} {
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
		if c.own != "" {
			machine.Annotations[PreserveAnnotation] = c.own
		}
		if c.mcm != "" {
			machine.Annotations[MCMPreserveAnnotation] = c.mcm
		}
		NewWithT(t).Expect(Preservation(machine)).To(Equal(c.want), "%q and %q", c.own, c.mcm)
	}
}

// TestPreserve: neither the set nor its deployment would take the Machine back, whatever they select by; nothing else is changed.
func TestPreserve(t *testing.T) {
	until := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, selector := range []metav1.LabelSelector{
		{MatchLabels: map[string]string{"a": "1"}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"1"}}}},
		{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "a", Operator: metav1.LabelSelectorOpExists}, {Key: "b", Operator: metav1.LabelSelectorOpDoesNotExist},
		}},
	} {
		g := NewWithT(t)
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u", Labels: map[string]string{
			clusterv1.MachineDeploymentNameLabel: "d",
		}}}
		set.Spec.Selector = selector
		original := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Name: "m",
			Labels: map[string]string{
				"a": "1", "pool": "p", clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "s",
				clusterv1.MachineDeploymentNameLabel: "d", clusterv1.MachineDeploymentUniqueLabel: "h",
			},
			OwnerReferences: []metav1.OwnerReference{{Kind: "MachineSet", Name: "s", UID: "u"}, {Kind: "Other", UID: "o"}},
		}}
		read, shared := original.DeepCopy(), *original
		machine := &shared
		Preserve(machine, set, until.Add(-time.Hour), until)
		g.Expect(original).To(Equal(read), "the Machine that was read is not changed, also where it shares memory")
		compiled, err := metav1.LabelSelectorAsSelector(&selector)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(compiled.Matches(labels.Set(original.Labels))).To(BeTrue())
		g.Expect(compiled.Matches(labels.Set(machine.Labels))).To(BeFalse())
		g.Expect(machine.Labels).To(Equal(map[string]string{"pool": "p", clusterv1.ClusterNameLabel: "c", PreservedLabel: "d"}))
		g.Expect(machine.OwnerReferences).To(Equal([]metav1.OwnerReference{{Kind: "Other", UID: "o"}}))
		g.Expect(machine.Annotations).To(HaveKey(clusterv1.MachineSkipRemediationAnnotation))
		g.Expect(machine.Annotations[PreservedFromAnnotation]).To(And(ContainSubstring(`"machineSet":"s"`), ContainSubstring(`"a":"1"`)))
		got, ok := PreservedUntil(machine)
		g.Expect(ok).To(BeTrue())
		g.Expect(got).To(Equal(until))
		g.Expect(Preserved(machine)).To(BeTrue())
		g.Expect(Preserved(original)).To(BeFalse())
	}
}

func TestPreservedOfAStandaloneSet(t *testing.T) {
	g := NewWithT(t)
	machine := &clusterv1.Machine{}
	Preserve(machine, &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, time.Now(), time.Now())
	g.Expect(machine.Labels[PreservedLabel]).To(Equal("s"))
	long := PreservedOf(&clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("s", 200)}})
	g.Expect(validation.IsValidLabelValue(long)).To(BeEmpty(), "a patch with another would be refused, and the Machine never replaced")
	machine.Annotations[PreserveUntilAnnotation] = "tomorrow"
	_, ok := PreservedUntil(machine)
	g.Expect(ok).To(BeFalse())
}

// TestWhatAPreservedMachineKeeps: labels that a selector only excludes by, the name of its Cluster, and no record of labels that it never
// had.
func TestWhatAPreservedMachineKeeps(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "u"}}
	set.Spec.Selector = metav1.LabelSelector{
		MatchLabels:      map[string]string{"a": "1", "gone": "9", clusterv1.ClusterNameLabel: "c"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"x"}}},
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m", Labels: map[string]string{"a": "1", "pool": "p", clusterv1.ClusterNameLabel: "c"},
	}}
	Preserve(machine, set, time.Date(2026, 11, 20, 13, 0, 0, 0, time.FixedZone("", 3600)), time.Now())
	g.Expect(machine.Labels).To(Equal(map[string]string{"pool": "p", clusterv1.ClusterNameLabel: "c", PreservedLabel: "s"}))
	g.Expect(machine.Annotations[PreservedFromAnnotation]).To(Equal(`{"machineSet":"s","labels":{"a":"1"},"since":"2026-11-20T12:00:00Z"}`))
}

// TestAGroupIsMoreThanItsName: a MachineDeployment and a MachineSet may have the same, and what cannot be read may have been of either.
func TestAGroupIsMoreThanItsName(t *testing.T) {
	g := NewWithT(t)
	set := func(name, deployment string) *clusterv1.MachineSet {
		set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
		if deployment != "" {
			set.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: deployment}
		}
		return set
	}
	preserved := func(by *clusterv1.MachineSet, annotation ...string) *clusterv1.Machine {
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		Preserve(machine, by, time.Unix(7, 0), time.Now())
		if len(annotation) > 0 {
			machine.Annotations[PreservedFromAnnotation] = annotation[0]
		}
		return machine
	}
	alone, of, twin := set("a", ""), set("a-1", "a"), set("a-2", "a")
	g.Expect(PreservedOf(alone)).To(Equal(PreservedOf(of)))
	g.Expect(PreservedFromGroup(preserved(alone), alone)).To(BeTrue())
	g.Expect(PreservedFromGroup(preserved(alone), of)).To(BeFalse())
	g.Expect(PreservedFromGroup(preserved(of), alone)).To(BeFalse())
	g.Expect(PreservedFromGroup(preserved(of), twin)).To(BeTrue())
	g.Expect(PreservedFromGroup(preserved(of), set("b-1", "b"))).To(BeFalse())
	g.Expect(PreservedFromGroup(preserved(of, "nonsense"), alone)).To(BeTrue())
	g.Expect(PreservedFromGroup(preserved(of, "nonsense"), of)).To(BeTrue())
	g.Expect(PreservedFromGroup(preserved(of, "nonsense"), set("b-1", "b"))).To(BeFalse(), "the label says of which group it is not")
	earlier := `{"machineSet":"a-1","labels":{"cluster.x-k8s.io/deployment-name":"a"}}`
	g.Expect(PreservedFromGroup(preserved(of, earlier), of)).To(BeTrue())
	g.Expect(PreservedFromGroup(preserved(of, earlier), alone)).To(BeFalse())
	g.Expect(PreservedKind(preserved(of))).To(Equal("MachineDeployment"))
	g.Expect(PreservedKind(preserved(alone))).To(Equal("MachineSet"))
	g.Expect(PreservedKind(preserved(of, "nonsense"))).To(BeEmpty())
	g.Expect(PreservedSince(preserved(of))).To(BeTemporally("==", time.Unix(7, 0)))
	g.Expect(PreservedSince(preserved(of, earlier))).To(BeZero())
	g.Expect(PreservedSince(preserved(of, "nonsense"))).To(BeZero())
}

func TestPreserveMax(t *testing.T) {
	g := NewWithT(t)
	deployment := func(annotations map[string]string) *clusterv1.MachineDeployment {
		return &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Annotations: annotations}}
	}
	for _, c := range []struct {
		deployment *clusterv1.MachineDeployment
		def, want  int
		wantErr    string
	}{
		{nil, 2, 2, ""},
		{deployment(nil), 2, 2, ""},
		{deployment(map[string]string{PreserveMaxAnnotation: "3"}), 2, 3, ""},
		{deployment(map[string]string{PreserveMaxAnnotation: "0"}), 2, 0, ""},
		{deployment(map[string]string{PreserveMaxAnnotation: "all"}), 2, 2, `of MachineDeployment d is "all", and not a number of Machines: 2 of`},
		{deployment(map[string]string{PreserveMaxAnnotation: ""}), 0, 1, `of MachineDeployment d is "", and not a number of Machines: 1 of`},
		{deployment(map[string]string{PreserveMaxAnnotation: "-1"}), 0, 1, "until it is corrected or removed"},
	} {
		limit, message := PreserveMax(c.deployment, c.def)
		g.Expect(limit).To(Equal(c.want))
		g.Expect(message).To(ContainSubstring(c.wantErr))
		g.Expect(message == "").To(Equal(c.wantErr == ""))
	}
}
