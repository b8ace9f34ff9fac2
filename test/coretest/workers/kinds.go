package workers

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// Kinds of coretest.Group in place of those of providers.
var (
	InfraKind          = coretest.Kind(coretest.Machine, version.V1Beta2)
	InfraTemplateKind  = InfraKind + clusterv1.TemplateSuffix
	ConfigKind         = coretest.Kind(coretest.Config, version.V1Beta2)
	ConfigTemplateKind = ConfigKind + clusterv1.TemplateSuffix
	ControlPlaneKind   = coretest.Kind(coretest.ControlPlane, version.V1Beta2)
)

// ChildKinds are those of what is created with each Machine.
var ChildKinds = []string{InfraKind, ConfigKind}

// ClusterName is the name of the Cluster in each namespace.
const ClusterName = "c"

// MachineTemplate is the template of a set or a deployment whose own templates all have the name given; its Machines are
// labelled pool=a.
func MachineTemplate(name string) clusterv1.MachineTemplateSpec {
	return clusterv1.MachineTemplateSpec{
		ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{"pool": "a"}},
		Spec: clusterv1.MachineSpec{
			ClusterName:       ClusterName,
			Version:           "v1.36.3",
			InfrastructureRef: coretest.Ref(InfraTemplateKind, name),
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: coretest.Ref(ConfigTemplateKind, name)},
		},
	}
}

// Release removes the finalizers of a Machine that is being deleted, and its children, as the Machine controller does.
func Release(ctx context.Context, c client.Client, machine *clusterv1.Machine) error {
	for _, ref := range []clusterv1.ContractVersionedObjectReference{machine.Spec.InfrastructureRef, machine.Spec.Bootstrap.ConfigRef} {
		child := coretest.Object(ref.Kind, machine.Namespace, ref.Name)
		if err := c.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	released := machine.DeepCopy()
	released.Finalizers = nil
	return client.IgnoreNotFound(c.Patch(ctx, released, client.MergeFrom(machine)))
}

// Template is a template of a stand-in kind.
func (f *Fixture) Template(kind, name string) *unstructured.Unstructured {
	template := coretest.Object(kind, f.Namespace, name)
	template.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"size": "large"}}}
	return template
}
