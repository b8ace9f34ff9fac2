package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
)

// TestReferenceIsWhole compares the page with the definition and the constants of the kind, and has the API server take its examples.
func TestReferenceIsWhole(t *testing.T) {
	const (
		definition = "config/bootstrap/cloudconfig/crd/bootstrap.millwright.dev_cloudconfigs.yaml"
		api        = "bootstrap/cloudconfig/api/v1alpha1"
		pausing    = "contracts/controller/paused"
	)
	page := doccheck.Read(t, "docs/reference/cloudconfig.md")
	page.CheckLinks(t)
	// The fields of kubelet.config are Kubernetes' own.
	fields := append(doccheck.Fields(t, definition, "spec", "kubelet.config"), "kubelet.config")
	doccheck.Compare(t, page, "fields of spec", page.Keys(t, "Spec", "Field"), fields)
	doccheck.Compare(t, page, "fields of status", page.Keys(t, "Status", "Field"), doccheck.Fields(t, definition, "status", "conditions"))
	doccheck.Compare(t, page, "conditions", page.Keys(t, "Conditions", "Condition"), doccheck.Constants(t, doccheck.Named("Condition"), api))
	doccheck.Compare(t, page, "reasons", page.Keys(t, "Conditions", "Reasons"), doccheck.Constants(t, doccheck.Named("Reason"), api, pausing))

	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	doccheck.Apply(t, admin, corev1.NamespaceDefault, page.Examples(t, ""), client.DryRunAll)
}
