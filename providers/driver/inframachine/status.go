package inframachine

import (
	"slices"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// maxFailureMessage is how long status.failureMessage may be.
const maxFailureMessage = 10240

// setStatus brings the status in line with what the steps have observed.
func (s *scope[M]) setStatus() {
	deriveMachine(s.Object.CommonStatus(), s.observed, s.Object.GetGeneration(), s.Now)
	s.deriveReachable()
}

// explained returns whether the object has, or gets, a condition Ready: it never has other conditions without that one.
func (s *scope[M]) explained() bool {
	return s.observed.state != nil || s.observed.failure != nil || len(s.observed.pausedBy) > 0 ||
		meta.FindStatusCondition(s.Object.CommonStatus().Conditions, driverv1.ReadyCondition) != nil
}

// deriveReachable derives the condition CloudReachable, once all else of the status is derived.
func (s *scope[M]) deriveReachable() {
	status := s.Object.CommonStatus()
	if status.HasFailed() && len(s.observed.pausedBy) == 0 { // Its instance is not followed any more.
		meta.RemoveStatusCondition(&status.Conditions, driverv1.CloudReachableCondition)
	}
	if reachable := reachableCondition(s.Original.CommonStatus(), status, s.observed, s.view); reachable != nil {
		conditions.Set(&status.Conditions, *reachable, s.Object.GetGeneration(), s.Now)
	}
}

// deriveMachine derives all of the status but the condition CloudReachable. It depends on nothing else, and changes nothing when
// there is nothing new.
func deriveMachine(status *driverv1.MachineStatus, o observed, generation int64, now time.Time) {
	status.ObservedGeneration = generation
	if len(o.pausedBy) == 0 {
		setInstance(status, o)
		setProgress(status, o)
	}
	for _, own := range []*metav1.Condition{healthyCondition(status, o), configuredCondition(status, o), scheduledCondition(status, o)} {
		if own != nil {
			conditions.Set(&status.Conditions, *own, generation, now)
		}
	}
	for _, condition := range machineConditions(o, status.IsProvisioned()) {
		conditions.Set(&status.Conditions, condition, generation, now)
	}
}

// setProgress sets, and never unsets, that the instance has run and that the machine has failed permanently.
func setProgress(status *driverv1.MachineStatus, o observed) {
	if o.failure != nil {
		status.FailureReason = &o.failure.reason
		status.FailureMessage = ptr.To(conditions.Cut(o.failure.message, maxFailureMessage))
	}
	if o.runs() {
		status.Ready, status.Initialization.Provisioned = true, ptr.To(true)
	}
}

// setInstance copies what the cloud reports about the instance. Addresses, once known, stay while an ending instance loses
// them: a person sees by them which machine it was.
func setInstance(status *driverv1.MachineStatus, o observed) {
	if o.missing {
		status.InstanceState = driverv1.InstanceMissing
	}
	i := o.instance
	if i == nil || o.missing {
		return
	}
	status.InstanceID = i.ID
	status.InstanceState = i.State
	if i.InstanceType != "" {
		status.InstanceType = i.InstanceType
	}
	if i.FailureDomain != "" {
		status.FailureDomain = i.FailureDomain
	}
	if i.Interruptible && !ptr.Deref(status.Interruptible, false) {
		status.Interruptible = ptr.To(true)
	}
	if len(i.Addresses) > 0 {
		status.Addresses = acceptedAddresses(i.Addresses)
	}
}

// maxAddresses is how many addresses the CRDs accept, maxAddress how long one may be.
const maxAddresses, maxAddress = 256, 256

// acceptedAddresses are those that the API accepts: one that it does not, or one too many, as an instance with the addresses of many
// Pods has, would have it refuse the whole status. Of too many the least informative are dropped: internal addresses beyond the first.
func acceptedAddresses(list []clusterv1.MachineAddress) []clusterv1.MachineAddress {
	accepted := slices.DeleteFunc(slices.Clone(list), func(a clusterv1.MachineAddress) bool {
		return a.Address == "" || utf8.RuneCountInString(a.Address) > maxAddress
	})
	isInternal := func(a clusterv1.MachineAddress) bool { return a.Type == clusterv1.MachineInternalIP }
	for n := len(accepted) - 1; n >= 0 && len(accepted) > maxAddresses; n-- {
		if isInternal(accepted[n]) && slices.ContainsFunc(accepted[:n], isInternal) {
			accepted = slices.Delete(accepted, n, n+1)
		}
	}
	return accepted[:min(len(accepted), maxAddresses)]
}
