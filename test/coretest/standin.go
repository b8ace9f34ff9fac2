package coretest

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// Group is the API group of the stand-in kinds.
const Group = "standin.example.com"

// Kinds of stand-in objects are named by role and contract.
const (
	Machine      = "Machine"
	Config       = "Config"
	InfraCluster = "Infra"
	ControlPlane = "Plane"
)

// Kind names the stand-in kind for a role that keeps a contract, for example MachineV1Beta2.
func Kind(role string, contract version.Contract) string {
	return role + "V1Beta" + strings.TrimPrefix(string(contract), "v1beta")
}

// CRD returns the definition of a stand-in kind in Group that keeps the given contracts. Its objects may hold anything.
func CRD(kind string, contracts ...version.Contract) *apiextensionsv1.CustomResourceDefinition {
	labels := map[string]string{}
	for _, contract := range contracts {
		labels[version.Label(contract)] = "v1"
	}
	name := version.CRDName(groupKind(kind))
	plural, _, _ := strings.Cut(name, ".")
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind:     kind,
				ListKind: kind + "List",
				Plural:   plural,
				Singular: strings.ToLower(kind),
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}

// Template returns a template of a stand-in kind.
func Template(kind, namespace, name string) *unstructured.Unstructured {
	obj := Object(kind+clusterv1.TemplateSuffix, namespace, name)
	obj.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{}}}
	return obj
}

// CRDs returns the definitions of all stand-in kinds.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		for _, role := range []string{Machine, Config, InfraCluster, ControlPlane} {
			crds = append(crds, CRD(Kind(role, contract), contract), CRD(Kind(role, contract)+clusterv1.TemplateSuffix, contract))
		}
	}
	return append(crds, CRD("Lawless"))
}

// Ref refers to a stand-in object.
func Ref(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: Group, Kind: kind, Name: name}
}

// Object returns a stand-in object, owned by the owners.
func Object(kind, namespace, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(groupKind(kind).WithVersion("v1"))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetOwnerReferences(owners)
	return obj
}

// Create creates an object.
func (c *Core) Create(t *testing.T, obj client.Object) {
	t.Helper()
	if err := c.Client.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// SetSpec and SetStatus merge values into an existing stand-in object.
func (c *Core) SetSpec(t *testing.T, obj *unstructured.Unstructured, spec map[string]any) {
	t.Helper()
	c.merge(t, obj, "spec", spec, func(patch client.Patch) error { return c.Client.Patch(t.Context(), obj, patch) })
}

// SetStatus merges values into the status of a stand-in object.
func (c *Core) SetStatus(t *testing.T, obj *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	c.merge(t, obj, "status", status, func(patch client.Patch) error { return c.Client.Status().Patch(t.Context(), obj, patch) })
}

func (c *Core) merge(t *testing.T, obj *unstructured.Unstructured, field string, values map[string]any, send func(client.Patch) error) {
	t.Helper()
	before := obj.DeepCopy()
	have, _, _ := unstructured.NestedMap(obj.Object, field)
	if have == nil {
		have = map[string]any{}
	}
	for key, value := range values {
		have[key] = value
	}
	obj.Object[field] = have
	if err := send(client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// BootstrapReady is the status of a bootstrap config whose data Secret exists.
func BootstrapReady(contract version.Contract, secret string) map[string]any {
	if contract == version.V1Beta1 {
		return map[string]any{"ready": true, "dataSecretName": secret}
	}
	return map[string]any{"initialization": map[string]any{"dataSecretCreated": true}, "dataSecretName": secret}
}

// Provisioned is the status of provisioned infrastructure.
func Provisioned(contract version.Contract) map[string]any {
	if contract == version.V1Beta1 {
		return map[string]any{"ready": true}
	}
	return map[string]any{"initialization": map[string]any{"provisioned": true}}
}

func groupKind(kind string) schema.GroupKind { return schema.GroupKind{Group: Group, Kind: kind} }
