package machinedeployment

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
	"millwright.dev/test/doccheck"
)

const (
	directory = "core/machinedeployment"
	pausing   = "contracts/controller/paused"
	guarding  = "core/safety/overshoot"
	reference = "docs/reference/machinedeployment.md"
)

// TestReferenceIsWhole compares the page with the constants that the code uses.
func TestReferenceIsWhole(t *testing.T) {
	page := doccheck.Read(t, reference)
	page.CheckLinks(t)
	doccheck.Compare(
		t,
		page,
		"reasons",
		page.Keys(t, "Conditions", "Reasons"),
		doccheck.Constants(t, doccheck.Named("Reason"), directory, pausing, guarding),
	)
	// Conditions of Machines are read, not set.
	conditions := append(page.Keys(t, "Conditions", "Condition"), stages...)
	doccheck.Compare(t, page, "conditions", conditions, doccheck.Constants(t, doccheck.Named("Condition"), directory, pausing, guarding))
	doccheck.Compare(
		t,
		page,
		"annotations",
		page.Keys(t, "Annotations", "Annotation"),
		doccheck.Constants(t, doccheck.Named("Annotation"), directory, pausing, guarding),
	)
	doccheck.Compare(t, page, "labels", page.Keys(t, "Labels", "Label"), doccheck.Constants(t, doccheck.Named("Label"), directory, guarding))
	doccheck.Compare(t, page, "events", page.Keys(t, "Events", "Event"),
		append(doccheck.Constants(t, doccheck.Named("Event"), directory, guarding, "contracts/controller/scopes"),
			RollbackRevisionNotFoundReason, SelectorMismatchReason))
	phases := []string{
		string(clusterv1.MachineDeploymentPhaseScalingUp), string(clusterv1.MachineDeploymentPhaseScalingDown),
		string(clusterv1.MachineDeploymentPhaseRunning), string(clusterv1.MachineDeploymentPhaseUnknown),
	}
	doccheck.Compare(t, page, "phases", page.Keys(t, "Phases", "Phase"), phases)
}

// TestReferenceNumbers: the page has these numbers in words.
func TestReferenceNumbers(t *testing.T) {
	g := NewWithT(t)
	g.Expect(DefaultRevisionHistoryLimit).To(Equal(1))
	g.Expect(DefaultProgressDeadline).To(Equal(10 * time.Minute))
	g.Expect(machines.SlowDeletion).To(Equal(15 * time.Minute))
	complete := valid(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = nil })
	setDefaults(complete)
	g.Expect(complete.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
	rolling := complete.Spec.Rollout.Strategy.RollingUpdate
	g.Expect([]string{rolling.MaxSurge.String(), rolling.MaxUnavailable.String()}).To(Equal([]string{"1", "0"}))
}

// TestReferenceNamesTestsThatExist: what differs from the Cluster API is shown by a test.
func TestReferenceNamesTestsThatExist(t *testing.T) {
	tests := doccheck.Tests(t, directory)
	for _, name := range doccheck.Read(t, reference).Keys(t, "What differs from the Cluster API", "Test") {
		NewWithT(t).Expect(tests).To(ContainElement(name))
	}
}

// TestReferenceExamples has the API server take them.
func TestReferenceExamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	doccheck.Apply(t, direct, w.Namespace, doccheck.Read(t, reference).Examples(t, ""))
}

// revisionChanges change each field in the table of what makes a new revision.
var revisionChanges = map[string]func(*clusterv1.MachineDeployment){
	"spec.template.spec.version":           func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v9.9.9" },
	"spec.template.spec.bootstrap":         func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("x") },
	"spec.template.spec.infrastructureRef": func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = "x" },
	"spec.template.spec.failureDomain":     func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.FailureDomain = "x" },
	"spec.template.metadata":               func(d *clusterv1.MachineDeployment) { d.Spec.Template.Labels = map[string]string{"x": "y"} },
	"spec.template.spec.minReadySeconds":   func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.MinReadySeconds = ptr.To[int32](9) },
	"spec.template.spec.readinessGates": func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "X"}}
	},
	"spec.template.spec.deletion": func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](9)
	},
	"spec.template.spec.taints": func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Spec.Taints = []clusterv1.MachineTaint{{Key: "x"}}
	},
	"spec.template.spec.clusterName": func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.ClusterName = "x" },
	"spec.template.spec.providerID":  func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.ProviderID = "x" },
	"spec.rollout.after":             func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.NewTime(start) },
	"spec.rollout.strategy": func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	},
	"spec.replicas":      func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = ptr.To[int32](3) },
	"spec.selector":      func(d *clusterv1.MachineDeployment) { d.Spec.Selector.MatchLabels = map[string]string{"x": "y"} },
	"spec.machineNaming": func(d *clusterv1.MachineDeployment) { d.Spec.MachineNaming.Template = "{{ .random }}" },
	"spec.remediation":   func(d *clusterv1.MachineDeployment) { d.Spec.Remediation.MaxInFlight = nil },
	"spec.deletion": func(d *clusterv1.MachineDeployment) {
		d.Spec.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder
	},
	"spec.paused": func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(true) },
}

// TestReferenceRevisions changes each field of the table and asks whether the set that there is is still current.
// Fields that a later version of the API adds fail it until the table has them.
func TestReferenceRevisions(t *testing.T) {
	page := doccheck.Read(t, reference)
	documented := page.Keys(t, "What creates a new revision", "Field")
	fields := append(
		fieldsOf[clusterv1.MachineSpec]("spec.template.spec."),
		"spec.template.metadata",
		"spec.rollout.after",
		"spec.rollout.strategy",
	)
	for _, field := range fieldsOf[clusterv1.MachineDeploymentSpec]("spec.") {
		if !slices.Contains([]string{"spec.template", "spec.rollout", "spec.clusterName"}, field) {
			fields = append(fields, field)
		}
	}
	doccheck.Compare(t, page, "fields", documented, fields)
	for _, row := range page.Table(t, "What creates a new revision") {
		field := row["Field"].Code[0]
		t.Run(field, func(t *testing.T) {
			g := NewWithT(t)
			set := setOf("set", "t", 3, time.Hour, "1")
			s := begin(valid())
			s.sets = []*clusterv1.MachineSet{set}
			g.Expect(chooseCurrent(s)).To(Equal(set))
			g.Expect(revisionChanges).To(HaveKey(field))
			revisionChanges[field](s.deployment)
			want := map[bool]string{true: "yes", false: "no"}[chooseCurrent(s) == nil]
			g.Expect(row["New revision"].Text).To(Equal(want))
		})
	}
}

// fieldsOf are the JSON names of the fields of a struct.
func fieldsOf[T any](prefix string) []string {
	var fields []string
	for field := range reflect.TypeFor[T]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields = append(fields, prefix+name)
	}
	return fields
}

// TestTemplateOfEqualContentRolls refers to a template of another name and equal content.
func TestTemplateOfEqualContentRolls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1)
	w.start(t)
	w.Eventually(w.settled(1, "a", "1"))
	before := w.Machines()[0].UID
	w.update(toTemplateB)
	w.Eventually(w.settled(1, "b", "2"))
	w.G.Expect(w.Machines()[0].UID).NotTo(Equal(before))
}
