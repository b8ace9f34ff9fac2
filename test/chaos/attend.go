package chaos

import (
	"context"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
)

// attend does what the runbooks say about what does not end by itself, as an operator who has repaired the cause: it requests another
// try where the core has given up, and raises limits where more Machines are unhealthy than they allow. A set that reports that it is
// stopped without being over its limit is left alone, so that the run fails.
func (r *run) attend(ctx context.Context, s *state) error {
	for _, m := range gaveUp(s) {
		if r.attended[m.UID] {
			continue
		}
		r.attended[m.UID] = true
		r.note("request another try of Machine %s: %s", m.Name, textOf(m, clusterv1.MachineOwnerRemediatedCondition))
		if err := r.patch(ctx, m, func() { setAnnotation(m, clusterv1.RemediateMachineAnnotation, "") }); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if stopped(s) && overLimit(s.machines.Items, stopAbove) && !r.raised {
		r.raised = true
		r.note("raise the limit of unhealthy Machines of the Cluster")
		cluster := &clusterv1.Cluster{ObjectMeta: r.meta(clusterName)}
		if err := r.patchSpec(ctx, cluster, func() { setAnnotation(cluster, remediation.StopAboveAnnotation, "100%") }); err != nil {
			return err
		}
	}
	if err := r.attendOrphans(s); err != nil {
		return err
	}
	r.relapse(s)
	return r.attendCheck(ctx, s)
}

// relapse lets a replacement that has just become available fall silent, and every other time the retry that comes after it as well: so
// retries wait, and the core gives up. It ends by itself, as a run has few of them.
func (r *run) relapse(s *state) {
	if r.relapses == 0 {
		return
	}
	nodes, retry := s.byProviderID(), len(r.relapsed)%2
	for i := range s.machines.Items {
		m := &s.machines.Items[i]
		record := remediation.RecordOf(m)
		if record == nil || record.Retry < retry || r.relapsed[m.UID] || !m.DeletionTimestamp.IsZero() ||
			!isTrue(m.Status.Conditions, clusterv1.MachineAvailableCondition) {
			continue
		}
		for _, node := range nodes[m.Spec.ProviderID] {
			r.relapses--
			r.relapsed[m.UID] = true
			r.note("let the kubelet of the replacement %s fall silent, which is retry %d", m.Name, record.Retry)
			r.kubelets.fallSilent(node.UID)
			return
		}
	}
}

// attendCheck raises the limit of the health check.
func (r *run) attendCheck(ctx context.Context, s *state) error {
	check := &clusterv1.MachineHealthCheck{ObjectMeta: r.meta(checkName)}
	if err := r.plane.direct.Get(ctx, client.ObjectKeyFromObject(check), check); err != nil {
		return errors.Wrap(client.IgnoreNotFound(err), "reading the health check")
	}
	var checked []clusterv1.Machine
	for _, m := range s.machines.Items {
		if m.Labels[checkLabel] != "" {
			checked = append(checked, m)
		}
	}
	c := meta.FindStatusCondition(check.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	trigger := &check.Spec.Remediation.TriggerIf
	if c == nil || c.Reason != clusterv1.MachineHealthCheckTooManyUnhealthyReason || !overLimit(checked, checkedStopAbove) ||
		trigger.UnhealthyLessThanOrEqualTo.String() == "100%" {
		return nil
	}
	r.note("raise the limit of the health check: %s", c.Message)
	raised := intstr.FromString("100%")
	return r.patch(ctx, check, func() { trigger.UnhealthyLessThanOrEqualTo = &raised })
}

// gaveUp are the Machines that are unhealthy and not replaced since as many replacements have failed as may.
func gaveUp(s *state) []*clusterv1.Machine {
	var found []*clusterv1.Machine
	for i := range s.machines.Items {
		m := &s.machines.Items[i]
		c := meta.FindStatusCondition(m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
		if m.DeletionTimestamp.IsZero() && c != nil && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "Gave up after ") {
			found = append(found, m)
		}
	}
	return found
}

// stopped reports whether a set says that too many Machines of the Cluster are unhealthy.
func stopped(s *state) bool {
	for i := range s.sets.Items {
		c := meta.FindStatusCondition(s.sets.Items[i].Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
		if c != nil && c.Status == metav1.ConditionFalse && c.Reason == remediation.TooManyUnhealthyReason {
			return true
		}
	}
	return false
}

// overLimit reports whether more of the Machines than that share are unhealthy or, for a health check, have not started.
func overLimit(all []clusterv1.Machine, share string) bool {
	limit := intstr.FromString(share)
	most, err := intstr.GetScaledValueFromIntOrPercent(&limit, len(all), false)
	if err != nil {
		return false
	}
	unhealthy := 0
	for i := range all {
		if machines.FailedHealthCheck(&all[i]) || !all[i].Status.NodeRef.IsDefined() {
			unhealthy++
		}
	}
	return unhealthy > most
}
