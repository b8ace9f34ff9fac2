// Package probe is the infrastructure's view of machines, for the rules of which the API server shows too little: that there is one
// machine and not two, that one is gone, where one runs. Whoever runs the suite may hand it in, in Go or over HTTP.
package probe

import (
	"context"
	"slices"
	"strings"
)

// Probe looks at the infrastructure. Its answers must be those of the infrastructure itself, as of now, and not the provider's.
type Probe interface {
	// Machines returns all machines that exist, also those that are being made or ended; more than those of the suite do not matter.
	Machines(ctx context.Context) ([]Machine, error)
}

// Machine is one of the infrastructure's.
type Machine struct {
	// ID is the infrastructure's own name of the machine, which no other has.
	ID string `json:"id"`
	// ProviderID is what the Node of the machine has in spec.providerID.
	ProviderID string `json:"providerID,omitempty"`
	// Running is false while the machine starts or ends.
	Running bool `json:"running"`
	// FailureDomain is where the machine is, as the provider spells it; empty if that is not known.
	FailureDomain string `json:"failureDomain,omitempty"`
	// Marks are its name and the values of its tags or labels. By those the suite knows to which object a machine belongs: one of
	// them has the object's name or UID in it.
	Marks []string `json:"marks,omitempty"`
}

// List is what an endpoint answers.
type List struct {
	Machines []Machine `json:"machines"`
}

// Belongs reports whether the machine has that provider ID, or a mark with one of the words in it.
func (m Machine) Belongs(providerID string, words ...string) bool {
	if providerID != "" && m.ProviderID == providerID {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool {
		return word != "" && slices.ContainsFunc(m.Marks, func(mark string) bool { return strings.Contains(mark, word) })
	})
}
