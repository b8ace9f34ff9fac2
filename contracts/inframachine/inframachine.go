// Package inframachine reads what an infrastructure provider reports about a machine by the contract.
// The core reads infrastructure objects through this package only. The rules, from IM-001, are in
// README.md.
package inframachine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
)

var (
	providerID          = field.Path{"spec", "providerID"}
	specFailureDomain   = field.Path{"spec", "failureDomain"}
	addresses           = field.Path{"status", "addresses"}
	statusFailureDomain = field.Path{"status", "failureDomain"}
	interruptible       = field.Path{"status", "interruptible"}
)

// Accessor reads an infrastructure machine by one version of the contract.
type Accessor struct{ contract version.Contract }

// At returns the accessor for a contract version; every value other than V1Beta1 means V1Beta2.
func At(contract version.Contract) Accessor { return Accessor{contract: contract} }

// ProvisionedPath is the field that reports that the machine exists and runs (IM-003).
func (a Accessor) ProvisionedPath() field.Path {
	if a.contract == version.V1Beta1 {
		return field.Path{"status", "ready"}
	}
	return field.Path{"status", "initialization", "provisioned"}
}

// Provisioned reports whether the provider has provisioned the machine; false while the field is absent.
func (a Accessor) Provisioned(obj *unstructured.Unstructured) (bool, error) {
	value, _, err := a.ProvisionedPath().Bool(obj)
	return value, err
}

// ProviderID returns the cloud's identifier of the machine, equal to spec.providerID of its Node, "" until known (IM-002).
func (Accessor) ProviderID(obj *unstructured.Unstructured) (string, error) {
	return providerID.Text(obj)
}

// FailureDomain returns where the machine was placed, "" when the provider does not report it (IM-005).
// The status is authoritative; the spec is read for providers of the older contract.
func (Accessor) FailureDomain(obj *unstructured.Unstructured) (string, error) {
	domain, err := statusFailureDomain.Text(obj)
	if err != nil || domain != "" {
		return domain, err
	}
	return specFailureDomain.Text(obj)
}

// ChosenFailureDomain returns where a provider of the older contract has placed the machine, which the Machine's
// spec copies, "" when the provider does not report it (IM-015).
func (Accessor) ChosenFailureDomain(obj *unstructured.Unstructured) (string, error) {
	return specFailureDomain.Text(obj)
}

// Interruptible reports whether the cloud may reclaim the machine at any time, as with a spot instance (IM-006).
func (Accessor) Interruptible(obj *unstructured.Unstructured) (bool, error) {
	value, _, err := interruptible.Bool(obj)
	return value, err
}

// Addresses returns the machine's addresses in the provider's order (IM-004). An entry without type or
// address is omitted.
func (Accessor) Addresses(obj *unstructured.Unstructured) (clusterv1.MachineAddresses, error) {
	list, err := addresses.List(obj)
	if err != nil {
		return nil, err
	}
	var result clusterv1.MachineAddresses
	for i, entry := range list {
		kind, err := addresses.TextIn(obj, i, entry, "type")
		if err != nil {
			return nil, err
		}
		address, err := addresses.TextIn(obj, i, entry, "address")
		if err != nil {
			return nil, err
		}
		if kind != "" && address != "" {
			result = append(result, clusterv1.MachineAddress{Type: clusterv1.MachineAddressType(kind), Address: address})
		}
	}
	return result, nil
}

// Ready returns the provider's condition Ready, nil when it reports none (IM-007).
func (Accessor) Ready(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	return field.Condition(obj, clusterv1.ReadyCondition)
}

// Failure returns a failure that the provider reports as terminal; both are "" when there is none.
// Only the older contract has it (IM-008).
func (a Accessor) Failure(obj *unstructured.Unstructured) (reason, message string, err error) {
	if a.contract != version.V1Beta1 {
		return "", "", nil
	}
	return field.Failure(obj)
}

// Paused returns the provider's condition Paused, nil when it reports none (IM-028).
func (Accessor) Paused(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	return field.Condition(obj, clusterv1.PausedCondition)
}
