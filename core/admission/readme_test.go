package admission_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/admission/validate"
	"millwright.dev/core/health"
	"millwright.dev/core/machine"
	"millwright.dev/core/machinedeployment"
	"millwright.dev/core/machines"
	"millwright.dev/core/machineset"
	"millwright.dev/test/testinputs"
)

// TestReadmeNamesTests: each rule names a test, and each test that is named exists.
func TestReadmeNamesTests(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("README.md")
	g.Expect(err).NotTo(HaveOccurred())
	directories := map[string]string{
		"admission":      ".",
		"defaults":       "defaults",
		"validate":       "validate",
		"certificates":   "certificates",
		"test/admission": "../../test/admission",
		"core":           "..",
	}
	named := regexp.MustCompile("`([a-z/]+)/(Test[A-Za-z]+)`").FindAllStringSubmatch(string(content), -1)
	g.Expect(len(named)).To(BeNumerically(">", 30))
	for _, name := range named {
		directory, known := directories[name[1]]
		g.Expect(known).To(BeTrue(), name[0])
		files, err := filepath.Glob(filepath.Join(directory, "*_test.go"))
		g.Expect(err).NotTo(HaveOccurred())
		found := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			found = found || strings.Contains(string(source), "func "+name[2]+"(")
		}
		g.Expect(found).To(BeTrue(), "%s does not exist", name[0])
	}
	_, rules, _ := strings.Cut(string(content), "## Validation")
	rules, _, _ = strings.Cut(rules, "That each kind")
	for _, line := range strings.Split(rules, "\n") {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| Kind") {
			g.Expect(line).To(ContainSubstring("/Test"), "a rule without a test")
		}
	}
}

// TestAnnotationsAreThoseOfTheControllers: a wrong value of each annotation that a controller knows is refused here, by
// the name that it has there.
func TestAnnotationsAreThoseOfTheControllers(t *testing.T) {
	g := NewWithT(t)
	refused := func(found field.ErrorList, key string) {
		g.Expect(found.ToAggregate()).To(MatchError(ContainSubstring("metadata.annotations[" + key + "]")))
	}
	for _, key := range []string{
		machine.ForceDeletionAnnotation, machines.PriorityAnnotation, machines.PreserveAnnotation, machines.PreserveUntilAnnotation,
		health.CreationTimeoutAnnotation, health.HealthTimeoutAnnotation,
	} {
		refused(validate.Machine(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: "?"}}}, nil), key)
	}
	for _, key := range []string{
		machinedeployment.RollbackToAnnotation, machinedeployment.RevisionHistoryLimitAnnotation,
		machinedeployment.ProgressDeadlineAnnotation, machinedeployment.RecreateAnnotation,
		machines.PreserveMaxAnnotation,
		health.CreationTimeoutAnnotation, health.HealthTimeoutAnnotation,
	} {
		refused(
			validate.MachineDeployment(&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: "?"}}}, nil),
			key,
		)
	}
}

// TestTemplates_LabelsAndAnnotationsOfControllers_AreRejected: by the names that the controllers give them.
func TestTemplates_LabelsAndAnnotationsOfControllers_AreRejected(t *testing.T) {
	g := NewWithT(t)
	all := func(keys ...string) map[string]string {
		values := map[string]string{}
		for _, key := range keys {
			values[key] = "x"
		}
		return values
	}
	labels := all(machines.CreatorLabel, machines.PreservedLabel)
	annotations := all(machineset.AdoptAnnotation, machineset.AdoptedAnnotation, machineset.ProviderIDAnnotation,
		machineset.PropagatedAnnotation)
	set := &clusterv1.MachineSet{}
	set.Spec.Template.Labels, set.Spec.Template.Annotations = labels, annotations
	found := validate.MachineSet(set, nil).ToAggregate()
	for key := range labels {
		g.Expect(found).To(MatchError(ContainSubstring("spec.template.metadata.labels[" + key + "]")))
	}
	for key := range annotations {
		g.Expect(found).To(MatchError(ContainSubstring("spec.template.metadata.annotations[" + key + "]")))
	}
}

// TestPureFunctionsStayPure: controllers and others use them without a webhook server.
func TestPureFunctionsStayPure(t *testing.T) {
	g := NewWithT(t)
	testinputs.Repository(t)
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./defaults", "./validate").Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).NotTo(ContainSubstring("controller-runtime"))
}
