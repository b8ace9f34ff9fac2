// Package probe is the infrastructure's view of machines, for the rules that the API server alone cannot verify: that there is one
// machine and not two, that one is gone, where one runs. The user of the suite may supply it, in Go or over HTTP.
package probe

import (
	"context"
	"slices"
	"strings"
)

// Probe reads the infrastructure. It must return the current state of the infrastructure itself, not the provider's view.
type Probe interface {
	// Machines returns all machines that exist, also those that are being launched or terminated. It may return machines of others.
	Machines(ctx context.Context) ([]Machine, error)
}

// Machine is a machine of the infrastructure.
type Machine struct {
	// ID is the infrastructure's unique name of the machine.
	ID string `json:"id"`
	// ProviderID is what the Node of the machine has in spec.providerID.
	ProviderID string `json:"providerID,omitempty"`
	// Running is false while the machine starts or terminates.
	Running bool `json:"running"`
	// FailureDomain is where the machine is, as the provider names it; empty if that is not known.
	FailureDomain string `json:"failureDomain,omitempty"`
	// Marks are its name and the values of its tags or labels. By those the suite knows which object a machine belongs to: one of
	// them contains the object's name or UID.
	Marks []string `json:"marks,omitempty"`
}

// List is the response of an endpoint.
type List struct {
	Machines []Machine `json:"machines"`
}

// Belongs reports whether the machine has that provider ID, or a mark that contains one of the words.
func (m Machine) Belongs(providerID string, words ...string) bool {
	if providerID != "" && m.ProviderID == providerID {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return word != "" && slices.ContainsFunc(m.Marks, func(mark string) bool { return strings.Contains(mark, word) })
	})
}
