// Package limits keeps what is copied from providers' objects within what the CRDs of the core accept. A single value that the API
// refuses would have it refuse the whole status. Such values are left out and named.
package limits

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// What the CRDs accept (config/core/crd).
const (
	maxAddresses      = 256
	maxAddress        = 256
	maxFailureDomain  = 256
	maxFailureDomains = 100
	maxHost           = 512
	maxVersions       = 32
	maxVersion        = 256
	// MaxProviderID is how many characters a provider ID may have.
	MaxProviderID = 512
	// MaxName is how many characters the name of a Secret may have.
	MaxName = 253
)

// maxNamed is how many invalid values are named one by one, maxShown how many characters of a wrong value are shown.
const (
	maxNamed = 5
	maxShown = 40
)

// addressTypes are the types of addresses that the API knows.
var addressTypes = []clusterv1.MachineAddressType{
	clusterv1.MachineHostName,
	clusterv1.MachineExternalIP,
	clusterv1.MachineInternalIP,
	clusterv1.MachineExternalDNS,
	clusterv1.MachineInternalDNS,
}

// Addresses returns the addresses that the API accepts, and what is wrong with the others.
func Addresses(list clusterv1.MachineAddresses) (kept clusterv1.MachineAddresses, invalid []string) {
	for _, address := range list {
		switch {
		case !slices.Contains(addressTypes, address.Type):
			invalid = append(invalid, fmt.Sprintf("status.addresses: the type %s is unknown", shown(string(address.Type))))
		case utf8.RuneCountInString(address.Address) > maxAddress:
			invalid = append(invalid, fmt.Sprintf("status.addresses: %s is longer than %d characters", shown(address.Address), maxAddress))
		case len(kept) == maxAddresses:
			return kept, append(invalid, fmt.Sprintf("status.addresses: there are more than %d", maxAddresses))
		default:
			kept = append(kept, address)
		}
	}
	return kept, invalid
}

// FailureDomain returns the failure domain, "" and what is wrong with it when the API does not accept it.
func FailureDomain(path, domain string) (kept string, invalid []string) {
	if utf8.RuneCountInString(domain) > maxFailureDomain {
		return "", []string{fmt.Sprintf("%s: %s is longer than %d characters", path, shown(domain), maxFailureDomain)}
	}
	return domain, nil
}

// FailureDomains returns the failure domains that the API accepts, and what is wrong with the others.
func FailureDomains(list []clusterv1.FailureDomain) (kept []clusterv1.FailureDomain, invalid []string) {
	for _, domain := range list {
		same := func(other clusterv1.FailureDomain) bool { return other.Name == domain.Name }
		switch {
		case utf8.RuneCountInString(domain.Name) > maxFailureDomain:
			invalid = append(invalid, fmt.Sprintf("status.failureDomains: %s is longer than %d characters", shown(domain.Name), maxFailureDomain))
		case domain.Name == "":
			invalid = append(invalid, "status.failureDomains: there is one without a name")
		case slices.ContainsFunc(kept, same):
			invalid = append(invalid, fmt.Sprintf("status.failureDomains: %s occurs twice", shown(domain.Name)))
		case len(kept) == maxFailureDomains:
			return kept, append(invalid, fmt.Sprintf("status.failureDomains: there are more than %d", maxFailureDomains))
		default:
			kept = append(kept, domain)
		}
	}
	return kept, invalid
}

// Endpoint returns the endpoint, the zero value and what is wrong with it when the API does not accept it.
func Endpoint(endpoint clusterv1.APIEndpoint) (kept clusterv1.APIEndpoint, invalid []string) {
	if utf8.RuneCountInString(endpoint.Host) > maxHost {
		return clusterv1.APIEndpoint{}, []string{
			fmt.Sprintf("spec.controlPlaneEndpoint.host: %s is longer than %d characters", shown(endpoint.Host), maxHost),
		}
	}
	return endpoint, nil
}

// Versions returns the versions of a control plane that the API accepts, and what is wrong with the others.
func Versions(list []clusterv1.StatusVersion) (kept []clusterv1.StatusVersion, invalid []string) {
	for _, version := range list {
		switch {
		case utf8.RuneCountInString(version.Version) > maxVersion:
			invalid = append(invalid, fmt.Sprintf("status.versions: %s is longer than %d characters", shown(version.Version), maxVersion))
		case len(kept) == maxVersions:
			return kept, append(invalid, fmt.Sprintf("status.versions: there are more than %d", maxVersions))
		default:
			kept = append(kept, version)
		}
	}
	return kept, invalid
}

// Message joins the invalid values of an object to a message with what to do; "" when there are none.
func Message(object string, invalid []string) string {
	if len(invalid) == 0 {
		return ""
	}
	named := invalid
	if len(invalid) > maxNamed {
		named = append(slices.Clone(invalid[:maxNamed]), fmt.Sprintf("and %d more", len(invalid)-maxNamed))
	}
	return object + " reports values that the API does not accept, which are left out: " + strings.Join(
		named,
		"; ",
	) + ". Correct the object, or the provider that writes it"
}

// shown is a wrong value as far as it is shown.
func shown(value string) string {
	if utf8.RuneCountInString(value) <= maxShown {
		return fmt.Sprintf("%q", value)
	}
	return fmt.Sprintf("%q", string([]rune(value)[:maxShown])+"…")
}
