package instance

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// TestStates: provisioning states with what the instance view adds.
func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		provisioning string
		spot         bool
		codes        []string
		state        driverv1.InstanceState
		code         string
		refused      driver.Class
		interrupted  bool
	}{
		"made":                    {provisioning: "Creating", state: driverv1.InstancePending},
		"running":                 {provisioning: "Succeeded", codes: []string{"ProvisioningState/succeeded", "PowerState/running"}, state: driverv1.InstanceRunning},
		"listed":                  {provisioning: "Succeeded", state: driverv1.InstanceRunning},
		"changed":                 {provisioning: "Updating", codes: []string{"ProvisioningState/updating", "PowerState/running"}, state: driverv1.InstanceRunning},
		"stopped":                 {provisioning: "Succeeded", codes: []string{"PowerState/stopped"}, state: driverv1.InstanceStopped, code: "PowerState/stopped"},
		"deallocated manually":    {provisioning: "Succeeded", codes: []string{"PowerState/deallocated"}, state: driverv1.InstanceStopped, code: "PowerState/deallocated"},
		"taken back":              {provisioning: "Succeeded", spot: true, codes: []string{"PowerState/deallocated"}, state: driverv1.InstanceStopped, code: "PowerState/deallocated", interrupted: true},
		"being taken back":        {provisioning: "Updating", spot: true, codes: []string{"PowerState/deallocating"}, state: driverv1.InstanceStopping, code: "PowerState/deallocating", interrupted: true},
		"no capacity":             {provisioning: "Failed", codes: []string{"ProvisioningState/failed/AllocationFailed"}, state: driverv1.InstanceFailed, code: "AllocationFailed", refused: driver.ClassCapacity},
		"failed, unknown why":     {provisioning: "Failed", codes: []string{"ProvisioningState/failed"}, state: driverv1.InstancePending},
		"failed, a new power":     {provisioning: "Failed", codes: []string{"ProvisioningState/failed", "PowerState/unknown"}, state: driverv1.InstancePending},
		"agent did not report":    {provisioning: "Failed", codes: []string{"ProvisioningState/failed/OSProvisioningTimedOut", "PowerState/running"}, state: driverv1.InstanceRunning, code: "OSProvisioningTimedOut"},
		"change failed, no power": {provisioning: "Failed", codes: []string{"ProvisioningState/failed/InternalError", "PowerState/stopped"}, state: driverv1.InstanceStopped, code: "InternalError"},
		"ended":                   {provisioning: "Deleting", codes: []string{"PowerState/running"}, state: driverv1.InstanceTerminating},
		"a new state":             {provisioning: "Migrating", codes: []string{"PowerState/running"}, state: driverv1.InstancePending},
		"a new power state":       {provisioning: "Succeeded", codes: []string{"PowerState/hibernated"}, state: driverv1.InstanceRunning},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := &armcompute.VirtualMachine{Name: ptr("m1"), Properties: &armcompute.VirtualMachineProperties{ProvisioningState: &c.provisioning}}
			if c.spot {
				m.Properties.Priority = ptr(armcompute.VirtualMachinePriorityTypesSpot)
			}
			var statuses []*armcompute.InstanceViewStatus
			for _, code := range c.codes {
				statuses = append(statuses, &armcompute.InstanceViewStatus{Code: &code})
			}
			got, v := fromMachine(driver.Scope{Location: "s/g"}, m), fromStatuses(statuses)
			if got.State == driverv1.InstanceFailed {
				got = newFailures().note(driver.Scope{}, "", v, time.Time{}).explain(got, time.Time{})
			} else {
				got = withView(got, v)
			}
			g.Expect(got).To(And(HaveField("State", c.state), HaveField("StateCode", c.code), HaveField("Refused", c.refused),
				HaveField("Interrupted", c.interrupted), HaveField("ProviderID", HaveSuffix("/virtualMachines/m1"))))
		})
	}
}

// TestMessagesStayTheSame: conditions show them, and would change with each call.
func TestMessagesStayTheSame(t *testing.T) {
	g := NewWithT(t)
	for in, want := range map[string]string{
		"No room. Correlation ID: '00000000-0000-0000-0000-000000000007'.":       "No room",
		"No room (tracking id 00000000-0000-0000-0000-000000000007).":            "No room",
		"The client '00000000-0000-0000-0000-000000000007' may not do that.":     "The client '00000000-0000-0000-0000-000000000007' may not do that.",
		"Failed, RequestId: 00000000-0000-0000-0000-000000000007, try it again.": "Failed, try it again.",
	} {
		g.Expect(changing.ReplaceAllString(in, "")).To(Equal(want))
	}
}
