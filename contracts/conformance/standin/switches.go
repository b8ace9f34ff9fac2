package standin

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

// Group is the group of the stand-ins' kinds.
const Group = "standin.conformance.millwright.dev"

// Switches control how a stand-in behaves. With the zero value it keeps all rules.
type Switches struct {
	// Breaks are the rules that it breaks; it keeps all others.
	Breaks map[rules.ID]bool
}

// Breaking returns switches that break rules.
func Breaking(ids ...rules.ID) Switches {
	s := Switches{Breaks: map[rules.ID]bool{}}
	for _, id := range ids {
		s.Breaks[id] = true
	}
	return s
}

func (s Switches) breaks(id rules.ID) bool { return s.Breaks[id] }

// VersionOf returns the API version of the kinds that implements a version of the contract.
func VersionOf(contract version.Contract) schema.GroupVersion {
	if contract == version.V1Beta1 {
		return schema.GroupVersion{Group: Group, Version: "v1alpha1"}
	}
	return schema.GroupVersion{Group: Group, Version: "v1alpha2"}
}
