package instance

import (
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Provisioning states, see https://learn.microsoft.com/azure/virtual-machines/states-billing.
var provisioningStates = map[string]driverv1.InstanceState{
	"Creating": driverv1.InstancePending,
	// A change of something that runs; whether it really does is for the power state.
	"Updating":  driverv1.InstanceRunning,
	"Succeeded": driverv1.InstanceRunning,
	"Failed":    driverv1.InstanceFailed,
	"Deleting":  driverv1.InstanceTerminating,
}

// Power states; deallocated machines have given up their hardware and keep their disks.
var powerStates = map[string]driverv1.InstanceState{
	"running":      driverv1.InstanceRunning,
	"starting":     driverv1.InstancePending,
	"stopping":     driverv1.InstanceStopping,
	"deallocating": driverv1.InstanceStopping,
	"stopped":      driverv1.InstanceStopped,
	"deallocated":  driverv1.InstanceStopped,
}

// fromMachine describes a machine as far as its own document says. A state that Azure adds one day counts as pending: it is waited for, and
// nothing is concluded from it.
func fromMachine(scope driver.Scope, m *armcompute.VirtualMachine) driver.Instance {
	i := marked(m.Tags)
	i.Name = value(m.Name)
	i.ID, i.ProviderID, i.State = i.Name, providerID(scope, i.Name), driverv1.InstancePending
	if len(m.Zones) > 0 {
		i.FailureDomain = value(m.Zones[0])
	}
	p := m.Properties
	if p == nil {
		return i
	}
	if state, known := provisioningStates[value(p.ProvisioningState)]; known {
		i.State = state
	}
	if p.TimeCreated != nil {
		i.LaunchTime = p.TimeCreated.UTC().Truncate(time.Second)
	}
	if p.HardwareProfile != nil {
		i.InstanceType = string(value(p.HardwareProfile.VMSize))
	}
	i.Interruptible, i.Market = value(p.Priority) == armcompute.VirtualMachinePriorityTypesSpot, marketOfMachine(p)
	return i
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// view is what a run time status has: the power state, and why provisioning has failed.
type view struct{ power, code, message string }

// complete is false of a status that shows nothing yet: the host has not reported, or Azure has not filled it in.
func (v view) complete() bool {
	_, known := powerStates[v.power]
	return known || v.code != ""
}

// fromStatuses reads the codes PowerState/<state> and ProvisioningState/failed/<code>.
func fromStatuses(list []*armcompute.InstanceViewStatus) view {
	v := view{}
	for _, s := range list {
		parts := strings.SplitN(value(s.Code), "/", 3)
		switch {
		case len(parts) == 2 && strings.EqualFold(parts[0], "PowerState"):
			v.power = strings.ToLower(parts[1])
		case len(parts) >= 2 && strings.EqualFold(parts[0], "ProvisioningState") && strings.EqualFold(parts[1], "failed"):
			v.message = changing.ReplaceAllString(value(s.Message), "")
			if len(parts) == 3 {
				v.code = parts[2]
			}
		}
	}
	return v
}

// withView adds the run time status. What has power counts as it is, also if Azure calls it failed: that the agent of the operating system
// did not report in time (OSProvisioningTimedOut), or that a later change has failed, ends no machine.
func withView(i driver.Instance, v view) driver.Instance {
	if i.State == driverv1.InstanceTerminating {
		return i
	}
	failed := i.State == driverv1.InstanceFailed
	if state, known := powerStates[v.power]; known && (failed || i.State == driverv1.InstanceRunning) {
		i.State = state
		i.StateCode = "PowerState/" + v.power
		i.Interrupted = interrupted(i, v.power)
		if failed {
			i.StateCode, i.StateMessage = v.code, v.message
		}
		if state == driverv1.InstanceRunning && !failed {
			i.StateCode = ""
		}
		return i
	}
	if failed {
		i.StateCode, i.StateMessage, i.Refused = v.code, v.message, refusedLate(v.code, v.message)
		i.RefusedOnlyPlace, i.RefusedAllTypes = v.code == codeSubnetFull, allTypes(i.Refused, v.code, v.message)
	}
	return i
}

// interrupted is true if Azure has taken a Spot machine back: it is then deallocated. One that a person has deallocated looks the same.
func interrupted(i driver.Instance, power string) bool {
	return i.Interruptible && strings.HasPrefix(power, "dealloc")
}

// addressesOf are name and addresses of a machine, by its interfaces.
func addressesOf(name string, interfaces []networkPart, public map[string]string) []clusterv1.MachineAddress {
	out := []clusterv1.MachineAddress{}
	for i := range interfaces {
		for _, ip := range interfaces[i].Properties.IPConfigurations {
			if ip.Properties.PrivateIPAddress != "" {
				out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineInternalIP, Address: ip.Properties.PrivateIPAddress})
			}
			if a := ip.Properties.PublicIPAddress; a != nil && public[strings.ToLower(a.ID)] != "" {
				out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineExternalIP, Address: public[strings.ToLower(a.ID)]})
			}
		}
	}
	if len(out) > 0 {
		out = append(out, clusterv1.MachineAddress{Type: clusterv1.MachineHostName, Address: name})
	}
	return out
}
