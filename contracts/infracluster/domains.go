package infracluster

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
)

var failureDomains = field.Path{"status", "failureDomains"}

// FailureDomains returns where machines can be placed so that they do not fail together, sorted by name; nil when the
// provider reports none (IC-004). The older contract has an object whose keys are the names, the newer one a list.
func (a Accessor) FailureDomains(obj *unstructured.Unstructured) ([]clusterv1.FailureDomain, error) {
	var domains []clusterv1.FailureDomain
	if a.contract == version.V1Beta1 {
		named, err := failureDomains.Object(obj)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			domain, err := domainAt(obj, failureDomains.Child(name))
			if err != nil {
				return nil, err
			}
			domain.Name = name
			domains = append(domains, domain)
		}
		return domains, nil
	}
	entries, err := failureDomains.List(obj)
	if err != nil {
		return nil, err
	}
	for i, entry := range entries {
		name, err := failureDomains.TextIn(obj, i, entry, "name")
		if err != nil {
			return nil, err
		}
		domain, err := domainAt(&unstructured.Unstructured{Object: entry}, field.Path{})
		if err != nil {
			return nil, failureDomains.Index(i).Within(obj, err)
		}
		if domain.Name = name; name != "" {
			domains = append(domains, domain)
		}
	}
	slices.SortStableFunc(domains, func(a, b clusterv1.FailureDomain) int { return cmp.Compare(a.Name, b.Name) })
	return domains, nil
}

// domainAt reads one failure domain.
func domainAt(obj *unstructured.Unstructured, at field.Path) (clusterv1.FailureDomain, error) {
	var domain clusterv1.FailureDomain
	forControlPlane, found, err := at.Child("controlPlane").Bool(obj)
	if err != nil {
		return domain, err
	}
	if found {
		domain.ControlPlane = &forControlPlane
	}
	attributes, err := at.Child("attributes").Object(obj)
	if err != nil {
		return domain, err
	}
	for name := range attributes {
		text, err := at.Child("attributes", name).Text(obj)
		if err != nil {
			return domain, err
		}
		if domain.Attributes == nil {
			domain.Attributes = map[string]string{}
		}
		domain.Attributes[name] = text
	}
	return domain, nil
}
