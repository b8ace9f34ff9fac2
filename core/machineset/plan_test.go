package machineset

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/admission/defaults"
	"millwright.dev/core/admission/validate"
	"millwright.dev/core/machines"
	. "millwright.dev/test/coretest/builder"
)

func TestPlanScale(t *testing.T) {
	disabled := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"}},
	}
	a, b, going := Machine("a"), Machine("b"), Machine("g", Deleting)
	tests := map[string]struct {
		set      *clusterv1.MachineSet
		replicas int
		machines []*clusterv1.Machine
		create   int
		remove   string
	}{
		"none yet":                                 {replicas: 3, create: 3},
		"enough":                                   {replicas: 2, machines: []*clusterv1.Machine{a, b}},
		"one that is being deleted counts":         {replicas: 2, machines: []*clusterv1.Machine{a, going}},
		"one is missing":                           {replicas: 3, machines: []*clusterv1.Machine{a, going}, create: 1},
		"one too many":                             {replicas: 1, machines: []*clusterv1.Machine{a, b}, remove: "a"},
		"too many, and one is being deleted":       {replicas: 2, machines: []*clusterv1.Machine{a, b, going}},
		"two too many, and one is being deleted":   {replicas: 1, machines: []*clusterv1.Machine{a, b, going}, remove: "a"},
		"none shall be":                            {replicas: 0, machines: []*clusterv1.Machine{b, a}, remove: "a b"},
		"creation is disabled":                     {set: disabled, replicas: 3, machines: []*clusterv1.Machine{a}},
		"creation is disabled, deletion continues": {set: disabled, replicas: 0, machines: []*clusterv1.Machine{a}, remove: "a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := test.set
			if set == nil {
				set = &clusterv1.MachineSet{}
			}
			plan := PlanScale(set, test.replicas, test.machines)
			g.Expect(plan.Create).To(Equal(test.create))
			g.Expect(Names(plan.Remove)).To(Equal(test.remove))
		})
	}
}

func TestPlanClaims(t *testing.T) {
	g := NewWithT(t)
	set := &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{ClusterName: "c"}}
	selector := labels.SelectorFromSet(labels.Set{"pool": "a"})
	strayed := Machine("strayed", func(m *clusterv1.Machine) { m.Labels = nil })
	strayedGoing := Machine("strayed-going", Deleting, func(m *clusterv1.Machine) { m.Labels = nil })
	foreign := Machine("foreign", func(m *clusterv1.Machine) { m.Spec.ClusterName = "other" })
	preserved := Machine("preserved", func(m *clusterv1.Machine) { metav1.SetMetaDataLabel(&m.ObjectMeta, machines.PreservedLabel, "s") })
	owned := Machine("owned")
	plan := planClaims(set, selector, []*clusterv1.Machine{owned, strayed, strayedGoing},
		[]*clusterv1.Machine{Machine("free"), Machine("free-going", Deleting), foreign, preserved, owned})
	g.Expect(Names(plan.release)).To(Equal("strayed"))
	g.Expect(Names(plan.adopt)).To(Equal("free"))
}

func TestMachineName(t *testing.T) {
	tests := map[string]struct {
		set, naming, want, wantErr string
	}{
		"by default":        {set: "workers", want: "workers-bcdfg"},
		"by template":       {set: "workers", naming: "{{ .cluster.name }}-{{ .random }}-x", want: "c-bcdfg-x"},
		"cut":               {set: strings.Repeat("w", 70), want: strings.Repeat("w", 58) + "bcdfg"},
		"without random":    {set: "workers", naming: "{{ .machineSet.name }}", wantErr: "{{ .random }}"},
		"no template":       {set: "workers", naming: "{{ .random", wantErr: "not a valid template"},
		"unknown variable":  {set: "workers", naming: "{{ .nothing }}-{{ .random }}", wantErr: "cannot be executed"},
		"not a DNS name":    {set: "workers", naming: "W_{{ .random }}", wantErr: "makes the name"},
		"endless":           {set: "workers", naming: "{{ range 9 }}{{ .random }}{{ end }}", wantErr: "range"},
		"widths":            {set: "workers", naming: "{{ .random }}{{ printf \"%09d\" 1 }}", wantErr: "printf"},
		"nested and absent": {set: "workers", naming: "{{ .cluster.zone }}-{{ .random }}", wantErr: "cannot be executed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: test.set}}
			set.Spec.ClusterName = "c"
			set.Spec.MachineNaming.Template = test.naming
			got, err := machineName(set, "bcdfg")
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
			g.Expect(len(got)).To(BeNumerically("<=", 63))
		})
	}
}

// validSet is a set without specErrors.
func validSet(change ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "set", Generation: 3},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: "c",
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "a"}},
				Spec: clusterv1.MachineSpec{
					ClusterName:       "c",
					InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "XTemplate", Name: "t"},
					Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
				},
			},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func TestSpecErrorsNameFieldAndRemedy(t *testing.T) {
	tests := map[string]struct {
		change func(*clusterv1.MachineSet)
		want   []string
	}{
		"none":                             {func(*clusterv1.MachineSet) {}, nil},
		"an empty selector has a default":  {func(s *clusterv1.MachineSet) { s.Spec.Selector = metav1.LabelSelector{} }, nil},
		"the selector misses the template": {func(s *clusterv1.MachineSet) { s.Spec.Template.Labels = nil }, []string{"spec.selector \"pool=a\"", "make them agree"}},
		"expressions select too": {func(s *clusterv1.MachineSet) {
			s.Spec.Selector = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "pool", Operator: "Exists"}}}
		}, nil},
		"limits of the autoscaler": {func(s *clusterv1.MachineSet) {
			s.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "few", clusterv1.AutoscalerMaxSizeAnnotation: "9"}
		}, []string{clusterv1.AutoscalerMinSizeAnnotation, "set spec.replicas"}},
		"limits that do not matter": {func(s *clusterv1.MachineSet) {
			s.Spec.Replicas = ptr.To[int32](2)
			s.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "few", clusterv1.AutoscalerMaxSizeAnnotation: "9"}
		}, nil},
		"a priority that is no number": {func(s *clusterv1.MachineSet) {
			s.Spec.Template.Annotations = map[string]string{machines.PriorityAnnotation: "high"}
		}, nil},
		"a check to skip that there is no more": {func(s *clusterv1.MachineSet) {
			s.Spec.Replicas = ptr.To[int32](2)
			s.Annotations = map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: "KubeadmVersion"}
		}, nil},
		"the selector is invalid": {func(s *clusterv1.MachineSet) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
		}, []string{"spec.selector: Invalid", "is not a selector"}},
		"another Cluster":  {func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.ClusterName = "d" }, []string{"spec.template.spec.clusterName: Invalid value: \"d\"", "set both"}},
		"no template kind": {func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.InfrastructureRef.Kind = "X" }, []string{"infrastructureRef.kind", "\"X\""}},
		"no bootstrap":     {func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Bootstrap.DataSecretName = nil }, []string{"spec.template.spec.bootstrap: Required value: name a bootstrap config"}},
		"no bootstrap kind": {func(s *clusterv1.MachineSet) {
			s.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "b", Kind: "Y", Name: "t"}
		}, []string{"configRef.kind"}},
		"no name can be made": {func(s *clusterv1.MachineSet) { s.Spec.MachineNaming.Template = "x" }, []string{"machineNaming.template"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			set := validSet(test.change)
			applyDefaults(set)
			found := strings.Join(specErrors(set), "\n")
			if test.want == nil {
				g.Expect(found).To(BeEmpty())
			}
			for _, want := range test.want {
				g.Expect(found).To(ContainSubstring(want))
			}
		})
	}
}

// TestAdmissionKnowsTheAnnotation: validation names it by itself.
func TestAdmissionKnowsTheAnnotation(t *testing.T) {
	set := validSet(func(s *clusterv1.MachineSet) {
		s.Spec.Template.Annotations = map[string]string{machines.PriorityAnnotation: "high"}
	})
	NewWithT(t).Expect(validate.MachineSet(set, nil).ToAggregate()).To(MatchError(ContainSubstring("must be a whole number")))
}

func TestPropagateTakesBackOnlyItsOwn(t *testing.T) {
	g := NewWithT(t)
	set := validSet(func(s *clusterv1.MachineSet) {
		s.Spec.Template.Labels["tier"] = "one"
		s.Spec.Template.Annotations = map[string]string{"note": "one"}
	})
	m := desiredMachine(set, "m")
	g.Expect(differs(m, set)).To(BeFalse(), "a new Machine needs no patch")
	m.Labels["mine"], m.Annotations["mine"] = "kept", "kept"
	m.Spec.ProviderID, m.Spec.FailureDomain = "p", "z"
	g.Expect(differs(m, set)).To(BeFalse())

	delete(set.Spec.Template.Labels, "tier")
	set.Spec.Template.Annotations = nil
	set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](7)
	g.Expect(differs(m, set)).To(BeTrue())
	propagate(m, set)
	g.Expect(m.Labels).To(Equal(map[string]string{
		"pool": "a", "mine": "kept", clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "s", machines.CreatorLabel: string(set.UID),
	}))
	g.Expect(m.Annotations).To(HaveKeyWithValue("mine", "kept"))
	g.Expect(m.Annotations).NotTo(HaveKey("note"))
	g.Expect(m.Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(7)))
	g.Expect(m.Spec.Deletion.NodeDeletionTimeoutSeconds).To(HaveValue(BeEquivalentTo(defaults.NodeDeletionTimeoutSeconds)))
	g.Expect(m.Spec.ProviderID + m.Spec.FailureDomain).To(Equal("pz"))
	g.Expect(differs(m, set)).To(BeFalse())

	m.Annotations[PropagatedAnnotation] = "not JSON"
	propagate(m, set)
	g.Expect(m.Labels).To(HaveKey("mine"))
}

func TestPropagateToAMachineThatIsBeingDeleted(t *testing.T) {
	g := NewWithT(t)
	set := validSet()
	m := desiredMachine(set, "m")
	Deleting(m)
	set.Spec.Template.Labels["tier"] = "one"
	g.Expect(differs(m, set)).To(BeFalse(), "labels no longer matter")
	set.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](1)
	g.Expect(differs(m, set)).To(BeTrue(), "the drain can be cut short")
}
