// Package ownership finds out whose a CloudConfig is. An owner reference alone is no evidence: anyone who may write CloudConfigs
// writes it, and a copy of an object has it too.
package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// Reference returns the reference to the Machine that the CloudConfig names as its controller; nil when it names none.
func Reference(config *bootstrapv1.CloudConfig) *metav1.OwnerReference {
	reference := metav1.GetControllerOf(config)
	if reference == nil || reference.Kind != "Machine" {
		return nil
	}
	if version, err := schema.ParseGroupVersion(reference.APIVersion); err != nil || version.Group != clusterv1.GroupVersion.Group {
		return nil
	}
	return reference
}

// Named reports whether the bootstrap config of the Machine is a CloudConfig, and returns its name.
func Named(machine *clusterv1.Machine) (string, bool) {
	ref := machine.Spec.Bootstrap.ConfigRef
	return ref.Name, ref.Kind == "CloudConfig" && ref.APIGroup == bootstrapv1.GroupVersion.Group && ref.Name != ""
}

// IsOfNamesake reports whether both name each other, and the owner reference has the UID of an earlier Machine of that name: they were
// created again from an export.
func IsOfNamesake(config *bootstrapv1.CloudConfig, machine *clusterv1.Machine) bool {
	reference := Reference(config)
	name, ok := Named(machine)
	return ok && name == config.Name && reference != nil && config.Namespace == machine.Namespace &&
		reference.Name == machine.Name && reference.UID != machine.UID
}

// Refuse returns why the CloudConfig is not the Machine's; it returns "" when each of them names the other.
func Refuse(config *bootstrapv1.CloudConfig, machine *clusterv1.Machine) string {
	reference := Reference(config)
	name, ok := Named(machine)
	switch {
	case config.Namespace != machine.Namespace || reference == nil || reference.Name != machine.Name:
		return fmt.Sprintf("CloudConfig %s is not controlled by Machine %s", config.Name, machine.Name)
	case !ok:
		return fmt.Sprintf("the bootstrap config of Machine %s is not a CloudConfig; delete this one, or remove its owner reference", machine.Name)
	case name != config.Name:
		return fmt.Sprintf("the bootstrap config of Machine %s is CloudConfig %s, and this one is not: "+
			"delete it if it is a copy, or remove its owner reference", machine.Name, name)
	case reference.UID != machine.UID:
		return fmt.Sprintf("the owner reference names an earlier Machine %s (UID %s, now %s): delete this CloudConfig",
			machine.Name, reference.UID, machine.UID)
	}
	return ""
}
