package instance

import (
	"context"
	"slices"
	"strings"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// preempted selects the operations by which Compute Engine takes spot instances back: of the system, about an instance.
const preempted = `operationType = "compute.instances.preempted"`

// markPreempted replaces the answer that there is no instance where Compute Engine has taken it back and deleted it: its operations are
// known for longer than the instance. Only instances that were launched as spot, and that nothing has ended, are asked about. If the
// operations cannot be read, or are not known any more, the instance is not there and no more is said: that it is gone is certain.
func (d *Driver) markPreempted(ctx context.Context, scope driver.Scope, handles []driver.Handle, answers []driver.Answer[driver.Instance]) {
	var gone, requests []string
	for i, h := range handles {
		spot := h.ProviderID != "" && h.Placement.Market == "spot"
		if _, name, ok := target(scope, h); ok && spot && !h.Ending && driver.IsNotFound(answers[i].Err) {
			gone = append(gone, name)
			if h.Token != "" {
				requests = append(requests, driver.LaunchRequestID(h.Token))
			}
		}
	}
	if len(gone) == 0 {
		return
	}
	filter := "(" + preempted + ")"
	if len(requests) > 0 {
		filter += " OR " + anyOf("clientOperationId", requests)
	}
	found, _, _ := aggregated[operation](ctx, d, scope, "operations", operationFields, filter) // What is missing shows nothing.
	for i, h := range handles {
		zone, name, ok := target(scope, h)
		if !ok || h.Ending || !slices.Contains(gone, name) || !driver.IsNotFound(answers[i].Err) {
			continue
		}
		if o := preemptionOf(h, "/projects/"+scope.Location+"/zones/"+zone+"/instances/"+name, found); o != nil {
			answers[i] = driver.Answer[driver.Instance]{Value: driver.Instance{
				ID: name, Name: name, ProviderID: h.ProviderID, Token: h.Token, OwnerUID: h.OwnerUID, Owner: driver.OwnerDigest(h.Owner),
				FailureDomain: zone, InstanceType: h.Placement.InstanceType, Market: h.Placement.Market, Interruptible: true, Interrupted: true,
				State: driverv1.InstanceTerminated, StateCode: o.OperationType, StateMessage: o.StatusMessage,
			}}
		}
	}
}

// markInterrupted says of spot instances that have stopped, by their IDs and their places among all, which ones Compute Engine has taken
// back. Of whom that cannot be read, the state alone is known: the next list shows it, and no other instance waits for it. It returns
// whether it could be read of all.
func (d *Driver) markInterrupted(ctx context.Context, scope driver.Scope, all []driver.Instance, stopped map[string]int) bool {
	preemptions, _, err := aggregated[operation](ctx, d, scope, "operations", operationFields, preempted)
	for _, o := range preemptions {
		if n, ok := stopped[o.TargetID]; ok {
			all[n].Interrupted = true
		}
	}
	for _, n := range stopped {
		if unread := lacks(err, all[n].FailureDomain); unread != nil && !all[n].Interrupted {
			all[n].StateMessage = "whether Compute Engine has taken it back cannot be read: " + unread.Error()
		}
	}
	return err == nil
}

// preemptionOf is the operation by which the instance of a launch was taken back; nil if there is none. Instances of earlier attempts
// may have had the same name: the insertion shows which one this is.
func preemptionOf(h driver.Handle, target string, found []operation) *operation {
	inserted := slices.IndexFunc(found, func(o operation) bool {
		return o.OperationType == "insert" && h.Token != "" && o.ClientOperationID == driver.LaunchRequestID(h.Token) &&
			strings.HasSuffix(o.TargetLink, target)
	})
	if inserted < 0 {
		return nil
	}
	taken := slices.IndexFunc(found, func(o operation) bool {
		return o.OperationType == "compute.instances.preempted" && o.TargetID == found[inserted].TargetID &&
			strings.HasSuffix(o.TargetLink, target)
	})
	if taken < 0 {
		return nil
	}
	return &found[taken]
}
