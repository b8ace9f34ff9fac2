package machines

import (
	"cmp"
	"fmt"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/admission/defaults"
)

// OutdatedBecause lists why Machines of the template current are not what the template wanted asks
// for; nothing when they are. It is what makes a rollout: only the fields compared here ask for new Machines.
// All others – labels, annotations, timeouts, readiness gates, minReadySeconds, taints – reach existing ones.
// The rule is that of Cluster API's MachineDeployment controller (MachineTemplateUpToDate).
func OutdatedBecause(wanted, current *clusterv1.MachineTemplateSpec) []string {
	var because []string
	differ := func(what, is, want string) {
		if text := Mismatch(what, is, want); text != "" {
			because = append(because, text)
		}
	}
	a, b := &wanted.Spec, &current.Spec
	// Admission puts the v before a version; whether it has been there yet makes no other Machine.
	differ("version", defaults.Version(b.Version), defaults.Version(a.Version))
	differ("bootstrap config template", refToText(b.Bootstrap.ConfigRef), refToText(a.Bootstrap.ConfigRef))
	differ("bootstrap data Secret", ptr.Deref(b.Bootstrap.DataSecretName, ""), ptr.Deref(a.Bootstrap.DataSecretName, ""))
	differ("infrastructure machine template", refToText(b.InfrastructureRef), refToText(a.InfrastructureRef))
	differ("failure domain", b.FailureDomain, a.FailureDomain)
	return because
}

// refToText names a referenced object with its kind and group: that its name is the same is not enough.
func refToText(ref clusterv1.ContractVersionedObjectReference) string {
	if !ref.IsDefined() {
		return ""
	}
	return fmt.Sprintf("%s.%s %s", ref.Kind, ref.APIGroup, ref.Name)
}

// Mismatch reports that a field is not as required; it is empty when it is.
func Mismatch(what, is, want string) string {
	if is == want {
		return ""
	}
	return fmt.Sprintf("%s %s, %s required", what, orNone(is), orNone(want))
}

func orNone(value string) string { return cmp.Or(value, "(none)") }
