package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
)

const (
	reference  = "docs/reference/cluster.md"
	definition = "config/core/crd/generated/cluster.x-k8s.io_clusters.yaml"
	directory  = "core/cluster"
	pausing    = "contracts/controller/paused"
)

// TestReferenceIsWhole compares the page with the definition, and with the constants that the code uses.
func TestReferenceIsWhole(t *testing.T) {
	page := doccheck.Read(t, reference)
	page.CheckLinks(t)
	doccheck.Compare(t, page, "fields of spec", page.Keys(t, "Spec", "Field"), doccheck.Fields(t, definition, "spec", "topology"))
	doccheck.Compare(
		t,
		page,
		"fields of status",
		page.Keys(t, "Status", "Field"),
		doccheck.Fields(t, definition, "status", "conditions", "deprecated"),
	)
	// The first two are of v1beta1; the others are a polarity, and what is read of Machines and of their sets.
	conditions := append(
		page.Keys(t, "Conditions", "Condition"),
		"Ready",
		"ControlPlaneReady",
		"Negative",
		"MachinesReady",
		"MachinesUpToDate",
		"UpToDate",
	)
	doccheck.Compare(t, page, "conditions", conditions, doccheck.Constants(t, doccheck.Named("Condition"), directory, pausing))
	doccheck.Compare(t, page, "events", page.Keys(t, "Events", "Event"),
		doccheck.Constants(t, doccheck.Named("Event"), directory, "contracts/controller/scopes"))
	doccheck.Compare(t, page, "reasons", page.Keys(t, "Conditions", "Reasons"),
		doccheck.Constants(t, doccheck.Named("Reason"), directory, "core/external", "core/safety/freeze", pausing))
}

// TestReferenceExamples has the API server take them.
func TestReferenceExamples(t *testing.T) {
	doccheck.Apply(t, core.Client, corev1.NamespaceDefault, doccheck.Read(t, reference).Examples(t, ""), client.DryRunAll)
	empty := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceDefault, Name: "empty"}}
	if err := core.Client.Create(t.Context(), empty, client.DryRunAll); err == nil {
		t.Error("the page says that an empty spec is refused")
	}
}
