package standin

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"millwright.dev/contracts/version"
)

// Kinds of the stand-ins; the first four have templates.
var kindNames = []string{
	"StandInMachine", "StandInConfig", "StandInCluster", "StandInControlPlane",
	"StandInMachineTemplate", "StandInConfigTemplate", "StandInClusterTemplate", "StandInControlPlaneTemplate",
}

// CRDs returns the definitions of all kinds. v1alpha1 keeps contract v1beta1, v1alpha2 contract v1beta2.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range kindNames {
		crds = append(crds, definition(kind))
	}
	return crds
}

func definition(kind string) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	crd := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + Group, Labels: map[string]string{
			version.Label(version.V1Beta1): "v1alpha1", version.Label(version.V1Beta2): "v1alpha2",
		}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: kind, ListKind: kind + "List", Singular: singular, Plural: singular + "s", Categories: []string{"cluster-api"},
			},
		},
	}
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: VersionOf(contract).Version, Served: true, Storage: contract == version.V1Beta2,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schemaOf()},
		})
	}
	return crd
}

// schemaOf accepts everything: cases decide what a stand-in reports.
func schemaOf() *apiextensionsv1.JSONSchemaProps {
	open := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	return &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": open, "status": open},
	}
}
