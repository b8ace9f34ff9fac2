package standin

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// Group is the API group of the stand-in kinds, and Version its only version.
const (
	Group   = "standin.millwright.dev"
	Version = "v1alpha1"
)

// The stand-in kinds.
var (
	// Machine is an infrastructure machine that is provisioned as soon as its owner has bootstrap data.
	Machine = kind("InstantMachine")
	// MachineTemplate is what Machines are created from.
	MachineTemplate = kind("InstantMachineTemplate")
	// Config is a bootstrap config whose data Secret is there at once.
	Config = kind("InstantConfig")
	// ConfigTemplate is what Configs are created from.
	ConfigTemplate = kind("InstantConfigTemplate")
	// ControlPlane is a control plane that is managed elsewhere; nothing reconciles it.
	ControlPlane = kind("InstantControlPlane")
)

// plurals are the resources of the kinds.
var plurals = map[schema.GroupVersionKind]string{
	Machine:         "instantmachines",
	MachineTemplate: "instantmachinetemplates",
	Config:          "instantconfigs",
	ConfigTemplate:  "instantconfigtemplates",
	ControlPlane:    "instantcontrolplanes",
}

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: Group, Version: Version, Kind: name}
}

// CRDs defines the stand-in kinds. By their labels they keep both versions of the Cluster API
// contract, and their objects have the fields of both.
func CRDs() []*apiextensionsv1.CustomResourceDefinition {
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(plurals))
	for gvk, plural := range plurals {
		crds = append(crds, crd(gvk.Kind, plural))
	}
	return crds
}

func crd(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{
			Name: plural + "." + Group,
			Labels: map[string]string{
				"cluster.x-k8s.io/v1beta1": Version,
				"cluster.x-k8s.io/v1beta2": Version,
			},
		},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name:         Version,
				Served:       true,
				Storage:      true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:                   "object",
					XPreserveUnknownFields: ptr.To(true),
				}},
			}},
		},
	}
}
