package inframachine

import (
	"fmt"
	"strconv"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "millwright.dev/contracts/inframachine"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// missingMachineGrace is how long after the deletion of an object its Machine may still be created. If a user
// creates both from an export, the garbage collector may delete the object before its Machine exists.
const missingMachineGrace = time.Minute

// candidate is an instance that could be terminated now.
type candidate struct {
	// object is being deleted.
	object client.Object
	// providerID is the one that the object has recorded: without it no Node can be known as the instance's.
	providerID string
	// neverRan is true if the object records that the launch has failed.
	neverRan bool
	// owner is the name of the Machine that an owner reference names; empty for none.
	owner string
}

// hold describes why an instance is not terminated yet.
type hold struct {
	explanation
	// needsUser is true if the hold lasts until a user acts.
	needsUser bool
	// until is the time at which the hold ends by itself; zero if it does not.
	until time.Time
}

// holdTermination returns why an instance must not be terminated yet, nil if it may be. machine is the Machine of the object, nil if it
// does not exist:
//
//  1. nothing has ever run as a Node, or a user forces the deletion: terminate;
//  2. there is no Machine: terminate, after a grace if an owner reference names one;
//  3. the Machine is not being deleted: hold until it is;
//  4. the Machine is being deleted: hold until hooks, drain and volumes are over.
func holdTermination(c candidate, machine *clusterv1.Machine, now time.Time) *hold {
	const reason = driverv1.WaitingForMachineDeletionReason
	switch {
	case !c.needsMachine():
		return nil
	case machine == nil:
		until := c.object.GetDeletionTimestamp().Add(missingMachineGrace)
		if c.owner == "" || !now.Before(until) {
			return nil
		}
		return &hold{explanation: explanation{reason, fmt.Sprintf(
			"Machine %s, which owns this object, does not exist. Unless it is created, the instance is terminated at %s",
			c.owner, instant(until))}, until: until}
	case machine.DeletionTimestamp.IsZero():
		return &hold{explanation: explanation{reason, fmt.Sprintf(
			"Machine %s is not being deleted, so the instance stays. Delete the Machine to drain its Node and terminate the instance; "+
				"to terminate it without a drain, annotate this object with %s=true", machine.Name, contract.ForceDeletionAnnotation)},
			needsUser: true}
	case contract.MayTerminate(machine):
		return nil
	}
	return &hold{explanation: explanation{reason, fmt.Sprintf(
		"The instance stays until Machine %s has completed hooks, drain and volume detachment: see its condition %s",
		machine.Name, clusterv1.MachineDeletingCondition)}}
}

// needsMachine reports whether the instance could be a Node that has to be drained, and no user forces the deletion.
func (c candidate) needsMachine() bool {
	return c.providerID != "" && !c.neverRan && !isForced(c.object)
}

// isForced reports whether a user wants the instance terminated whatever its Machine waits for.
func isForced(object client.Object) bool {
	forced, err := strconv.ParseBool(object.GetAnnotations()[contract.ForceDeletionAnnotation])
	return err == nil && forced
}
