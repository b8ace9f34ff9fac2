package controller

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/conditions"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// setStatus brings the status in line with what was found out.
func (s *scope[I]) setStatus() {
	status, generation := s.Object.CommonStatus(), s.Object.GetGeneration()
	if s.result != nil && s.result.err == nil {
		status.Account, status.Principal = s.result.holder.Account, s.result.holder.Principal
	}
	if s.result != nil || s.refusal != "" {
		status.ObservedGeneration = generation
		conditions.Set(&status.Conditions, readyCondition(s.result, s.refusal), generation, s.Now)
	}
	if s.users != nil {
		conditions.Set(&status.Conditions, inUseCondition(s.users), generation, s.Now)
	} else {
		meta.RemoveStatusCondition(&status.Conditions, driverv1.IdentityInUseCondition)
	}
}

// readyCondition is condition Ready for the result of a check. refusal has the words of the API server, if it refuses what the identity
// needs.
func readyCondition(v *checkResult, refusal string) metav1.Condition {
	if refusal != "" {
		return conditions.False(driverv1.IdentityReadyCondition, driverv1.RefusedByAPIServerReason,
			refusal+". Retried slowly; grant the provider this permission")
	}
	if v.err == nil {
		return conditions.True(driverv1.IdentityReadyCondition, driverv1.CredentialsAcceptedReason, "")
	}
	invalid := identity.AsInvalid(v.err)
	if invalid == nil {
		return conditions.Unknown(driverv1.IdentityReadyCondition, driverv1.NotVerifiedReason, strings.TrimRight(v.err.Error(), ".: ")+
			". The credentials could not be checked; they are used meanwhile. Retried slowly")
	}
	return conditions.False(driverv1.IdentityReadyCondition, invalid.Reason, strings.TrimRight(invalid.Message, ".")+
		". The identity is not used until then")
}

// reasonOf is the reason of Ready for the error of a check, for metrics.
func reasonOf(err error) string { return readyCondition(&checkResult{err: err}, "").Reason }

// shownNamespaces is how many namespaces a message names.
const shownNamespaces = 5

// inUseCondition is condition InUse of an identity that is being deleted and stays.
func inUseCondition(u *users) metav1.Condition {
	if u.err != nil {
		return conditions.Unknown(driverv1.IdentityInUseCondition, driverv1.UsersUnknownReason,
			"It is not known whether machines use the identity, so its finalizer stays: "+u.err.Error())
	}
	return conditions.True(driverv1.IdentityInUseCondition, driverv1.UsedByMachinesReason, fmt.Sprintf(
		"%d machines use the identity, in namespaces %s. It is deleted once they are gone: only with it can their instances be terminated. Nothing new is "+
			"created with it", u.Count, conditions.ListNames(u.Namespaces, shownNamespaces)))
}
