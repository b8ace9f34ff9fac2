package static_test

import (
	"path/filepath"
	"slices"
	"testing"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/static"
	"millwright.dev/contracts/rules"
)

// These are forms of manifests that real releases have.

func environment(field string, value object) mutation {
	return container(field, []any{value})
}

func TestReferencesOfContainers(t *testing.T) {
	const secret, config = "secretRef", "configMapRef"
	ref := func(optional bool) object { return object{"name": "outside", "key": "k", "optional": optional} }
	for name, test := range map[string]struct {
		change mutation
		broken bool
	}{
		"all variables of a Secret":              {environment("envFrom", object{secret: ref(false)}), true},
		"all variables of an optional Secret":    {environment("envFrom", object{secret: ref(true)}), false},
		"all variables of a ConfigMap":           {environment("envFrom", object{config: ref(false)}), true},
		"all variables of an optional ConfigMap": {environment("envFrom", object{config: ref(true)}), false},
		"a variable of a Secret":                 {environment("env", object{"valueFrom": object{"secretKeyRef": ref(false)}}), true},
		"a variable of an optional Secret":       {environment("env", object{"valueFrom": object{"secretKeyRef": ref(true)}}), false},
		"a variable of a ConfigMap":              {environment("env", object{"valueFrom": object{"configMapKeyRef": ref(false)}}), true},
		"a variable with a value":                {environment("env", object{"name": "a", "value": "b"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			files := sample(t)
			test.change(files)
			want := map[bool][]rules.ID{true: {"PR-026"}}[test.broken]
			if got := failed(results(t, files)); !slices.Equal(got, want) {
				t.Errorf("failed: %v, want %v", got, want)
			}
		})
	}
}

// TestTemplatesFromElsewhere: whoever gives a template with another directory has a checkout, not a release, before them: where the
// template will lie is not known.
func TestTemplatesFromElsewhere(t *testing.T) {
	files := sample(t)
	templates := write(t, map[string][]object{"cluster-template-x.yaml": files["cluster-template.yaml"]})
	bundle, err := static.Load(write(t, files))
	if err != nil {
		t.Fatal(err)
	}
	more, err := static.Source{Templates: []string{filepath.Join(templates, "cluster-template-x.yaml")}}.Files()
	if err != nil {
		t.Fatal(err)
	}
	bundle.Templates = append(bundle.Templates, more.Templates...)
	all := static.Run(bundle, conformance.Selection{Profile: conformance.ProviderProfile, Level: conformance.Extended})
	if got := failed(all); len(got) > 0 {
		t.Errorf("failed: %v", got)
	}
}

// TestAClassAsATemplate: a ClusterClass in a file that clusterctl finds as a flavor is a template, with variables as any other.
func TestAClassAsATemplate(t *testing.T) {
	files := sample(t)
	files["cluster-template-class.yaml"] = documents(t, `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: "${CLUSTER_CLASS_NAME}"}
spec: {infrastructure: {templateRef: {kind: SampleClusterTemplate, name: "${CLUSTER_CLASS_NAME}"}}}
`)
	if got := failed(results(t, files)); len(got) > 0 {
		t.Errorf("failed: %v", got)
	}
	second := object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": "s"}}
	in("cluster-template-class.yaml", "", set(other, "metadata", "namespace"), addTo("cluster-template-class.yaml", second))(files)
	if got := failed(results(t, files)); len(got) > 0 {
		t.Errorf("an object without a namespace goes where the others go; failed: %v", got)
	}
	set("third", "metadata", "namespace")(second)
	if got := failed(results(t, files)); !slices.Equal(got, []rules.ID{"PR-034"}) {
		t.Errorf("failed: %v, want PR-034 alone", got)
	}
}

// TestLabelsOfVersions: an old API version that a label lists may be one that is served no more, but not one that the definition lacks; the
// newest, which cores use, has to be served.
func TestLabelsOfVersions(t *testing.T) {
	for label, broken := range map[string]bool{"v1alpha1_v1": false, "v1_v2": true, "v1alpha0_v1": true, "v1_v3": true} {
		files := sample(t)
		in(components, machine, func(o object) {
			set(label, "metadata", "labels", "cluster.x-k8s.io/v1beta1")(o)
			versions := o["spec"].(object)["versions"].([]any)
			for _, name := range []string{"v1alpha1", "v3"} {
				unserved := object{}
				for key, value := range versions[0].(object) {
					unserved[key] = value
				}
				unserved["name"], unserved["served"], unserved["storage"] = name, false, false
				versions = append(versions, unserved)
			}
			o["spec"].(object)["versions"] = versions
		})(files)
		if got := failed(results(t, files)); slices.Contains(got, "CV-005") != broken {
			t.Errorf("%s: failed: %v", label, got)
		}
	}
}

// TestControlPlanesOfInfrastructureProviders: managed control planes are often in the group of the infrastructure.
func TestControlPlanesOfInfrastructureProviders(t *testing.T) {
	files := sample(t)
	moved := func(o object) {
		set("infrastructure.cluster.x-k8s.io", "spec", "group")(o)
		set(o["spec"].(object)["names"].(object)["plural"].(string)+".infrastructure.cluster.x-k8s.io", "metadata", "name")(o)
	}
	in(components, plane, moved)(files)
	in(components, plane+"Template", moved)(files)
	schemaOf(plane, "status.initialized", "")(files)
	all := results(t, files)
	if got := failed(all); !slices.Equal(got, []rules.ID{"CP-001"}) {
		t.Errorf("failed: %v, want CP-001 alone", got)
	}
	if !slices.ContainsFunc(all, func(r report.Result) bool { return r.Rule == "CP-019" && r.Status == report.Pass }) {
		t.Error("the template of the control plane was not found")
	}
}

// TestAPlaceholderIsNoField: some managed control planes have an empty spec.machineTemplate for the sake of older topology controllers.
func TestAPlaceholderIsNoField(t *testing.T) {
	files := sample(t)
	schemaOf(plane, "spec.machineTemplate", "object")(files)
	if got := failed(results(t, files)); len(got) > 0 {
		t.Errorf("failed: %v", got)
	}
}

// TestReplicasOfATemplate: a number may be part of a flavor, such as one without a load balancer; a variable of another name than that of
// the flag is one too many.
func TestReplicasOfATemplate(t *testing.T) {
	for replicas, broken := range map[string]bool{
		"1": false, "${CONTROL_PLANE_MACHINE_COUNT}": false, "${CONTROL_PLANE_MACHINE_COUNT:=3}": false, "${MASTERS}": true,
	} {
		files := sample(t)
		files["cluster-template.yaml"] = append(files["cluster-template.yaml"], documents(t, `apiVersion: controlplane.example.dev/v1
kind: SampleControlPlane
metadata: {name: "${CLUSTER_NAME}"}
spec: {replicas: "`+replicas+`", version: "${KUBERNETES_VERSION}"}
`)...)
		want := map[bool][]rules.ID{true: {"PR-035"}}[broken]
		if got := failed(results(t, files)); !slices.Equal(got, want) {
			t.Errorf("%s: failed: %v, want %v", replicas, got, want)
		}
	}
}
