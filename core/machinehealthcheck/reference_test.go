package machinehealthcheck

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/scopes"
	"millwright.dev/core/health"
	"millwright.dev/core/machinehealth"
	"millwright.dev/test/coretest/workers"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

const reference = "docs/reference/machinehealthcheck.md"

var direct client.Client

func TestMain(m *testing.M) {
	os.Exit(workers.Main(m, func(s workers.Suite) { direct = s.Client }))
}

// TestReferenceIsWhole compares the page with the constants that the code uses.
func TestReferenceIsWhole(t *testing.T) {
	page := doccheck.Read(t, reference)
	page.CheckLinks(t)
	directories := []string{"core/health", "core/machinehealth", "core/machinehealthcheck", "contracts/controller/paused"}
	reasons := slices.Concat(page.Keys(t, "Conditions", "Reasons"), page.Keys(t, "What becomes of it", "Reasons"))
	// They are what others say, and explained in their pages.
	reasons = append(
		reasons,
		clusterv1.MachineSetMachineRemediationMachineDeletingReason,
		clusterv1.MachineSetMachineRemediationDeferredReason,
		clusterv1.MachineSetMachineCannotBeRemediatedReason,
	)
	coded := doccheck.Constants(t, doccheck.Named("Reason"), directories...)
	coded = append(coded, clusterv1.MachineSetMachineRemediationMachineDeletingReason)
	doccheck.Compare(t, page, "reasons", unique(reasons), unique(coded))
	doccheck.Compare(t, page, "events", page.Keys(t, "Events", "Event"),
		doccheck.Constants(t, doccheck.Named("Event"), append(directories, "contracts/controller/scopes")...))
	doccheck.Compare(t, page, "annotations", page.Keys(t, "Annotations", "Annotation"),
		doccheck.Constants(t, doccheck.Named("Annotation"), directories...))
	documented := page.Keys(t, "When a Machine is unhealthy", "Reason of HealthCheckSucceeded")
	NewWithT(t).Expect(page.Keys(t, "What becomes of it", "Reasons")).To(ContainElements(unique(documented)))
}

// TestReferenceNamesTestsThatExist: what differs from the Cluster API is shown by a test.
func TestReferenceNamesTestsThatExist(t *testing.T) {
	page := doccheck.Read(t, reference)
	var tests []string
	for _, directory := range []string{"core/health", "core/machinehealth", "core/machinehealthcheck"} {
		tests = append(tests, doccheck.Tests(t, directory)...)
	}
	for _, name := range page.Keys(t, "What differs from the Cluster API", "Test") {
		NewWithT(t).Expect(tests).To(ContainElement(name))
	}
}

// TestReferenceFields compares the fields with the CRD. Those that a later version of the API adds fail it until the table has them.
func TestReferenceFields(t *testing.T) {
	g := NewWithT(t)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(direct.Get(t.Context(), client.ObjectKey{Name: "machinehealthchecks.cluster.x-k8s.io"}, crd)).To(Succeed())
	var fields []string
	for _, version := range crd.Spec.Versions {
		if version.Name == clusterv1.GroupVersion.Version {
			fields = leaves("spec", version.Schema.OpenAPIV3Schema.Properties["spec"])
		}
	}
	doccheck.Compare(t, doccheck.Read(t, reference), "fields", doccheck.Read(t, reference).Keys(t, "Fields", "Field"), fields)
}

// leaves are the fields below one, references and selectors as a whole.
func leaves(path string, schema apiextensionsv1.JSONSchemaProps) []string {
	if len(schema.Properties) == 0 || strings.HasSuffix(path, "Ref") || strings.HasSuffix(path, "selector") {
		return []string{path}
	}
	var found []string
	for name, property := range schema.Properties {
		found = append(found, leaves(path+"."+name, property)...)
	}
	return found
}

// TestReferenceExamples has the API server take them.
func TestReferenceExamples(t *testing.T) {
	doccheck.Apply(t, direct, testenv.Namespace(t, direct), doccheck.Read(t, reference).Examples(t, ""))
}

// TestMoreTargetsThanTheStatusTakes: the API server takes the status of 10,001 targets, with the true numbers.
func TestMoreTargetsThanTheStatusTakes(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	check := &clusterv1.MachineHealthCheck{}
	check.Namespace, check.Name = testenv.Namespace(t, direct), "many"
	check.Spec.ClusterName, check.Spec.Selector.MatchLabels = "c", map[string]string{"a": "b"}
	g.Expect(direct.Create(ctx, check)).To(Succeed())
	s := &scope{
		cluster: &clusterv1.Cluster{},
		result:  &machinehealth.Result{Healthy: 10001, Limit: health.Limit{Allowed: true, Remediations: 10001}},
	}
	s.Base = newBase(check)
	for i := range 10001 {
		s.result.Targets = append(s.result.Targets, fmt.Sprintf("m%05d", i))
	}
	_, err := s.Save(ctx, func(error) bool { s.setStatus(); return true })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(direct.Get(ctx, client.ObjectKeyFromObject(check), check)).To(Succeed())
	g.Expect(check.Status.Targets).To(HaveLen(10000))
	g.Expect(check.Status.ExpectedMachines).To(Equal(ptr.To[int32](10001)))
	g.Expect(meta.FindStatusCondition(check.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition).Message).
		To(ContainSubstring("the first 10000 of 10001 Machines"))
}

func newBase(check *clusterv1.MachineHealthCheck) scopes.Base[*clusterv1.MachineHealthCheck, clusterv1.MachineHealthCheckStatus] {
	return scopes.NewBase(check, time.Now(), scopes.Writer[*clusterv1.MachineHealthCheck, clusterv1.MachineHealthCheckStatus]{
		Client: direct, Status: func(c *clusterv1.MachineHealthCheck) *clusterv1.MachineHealthCheckStatus { return &c.Status },
	})
}

func unique(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
}
