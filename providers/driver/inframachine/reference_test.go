package inframachine_test

import (
	"slices"
	"testing"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/doccheck"
)

// TestReasonsAreDocumented: each reason of a Ready that is not True is in the table of the provider kit, and each there is used.
func TestReasonsAreDocumented(t *testing.T) {
	page := doccheck.Read(t, "providers/driver/README.md")
	documented := page.Keys(t, "Conditions", "Reasons")
	slices.Sort(documented)
	// Those of conditions that are well.
	well := []string{
		driverv1.InstanceRunningReason, driverv1.InstancesListedReason, driverv1.InstanceHealthyReason, driverv1.InstanceConfiguredReason,
	}
	coded := slices.DeleteFunc(doccheck.Constants(t, doccheck.Named("Reason"), "providers/driver/inframachine"),
		func(reason string) bool { return slices.Contains(well, reason) })
	coded = append(
		coded,
		driverv1.IdentityNotFoundReason,
		driverv1.IdentityNotAllowedReason,
		driverv1.IdentityNotReadyReason,
	) // Of identity.Guard.
	slices.Sort(coded)
	doccheck.Compare(t, page, "reasons", slices.Compact(documented), coded)
}

func TestEventsAreDocumented(t *testing.T) {
	page := doccheck.Read(t, "providers/driver/inframachine/README.md")
	doccheck.Compare(t, page, "events", page.Keys(t, "Events", "Reason"),
		doccheck.Constants(t, doccheck.Named("Event"), "providers/driver/inframachine", "contracts/controller/scopes"))
}
