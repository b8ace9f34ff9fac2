package machinedeployment

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// serving is a Machine that is ready and available.
func serving(name string) *clusterv1.Machine {
	return member(name, time.Hour, conditions.True(clusterv1.MachineReadyCondition, "Ready", ""),
		conditions.True(clusterv1.MachineAvailableCondition, "Available", ""))
}

// servingAll are so many of them.
func servingAll(n int) []*clusterv1.Machine {
	var machines []*clusterv1.Machine
	for i := range n {
		machines = append(machines, serving(string(rune('a'+i))))
	}
	return machines
}

func wants(n int32) func(*scope) {
	return func(s *scope) {
		s.deployment.Spec.Replicas = &n
		s.settings.replicas = int(n)
	}
}

func goes(s *scope) { s.Original.DeletionTimestamp = ptr.To(metav1.NewTime(start)) }

func unreadable(s *scope) { s.read = false }

func wrong(s *scope) { s.specErrors = []string{"spec.x is wrong: correct it"} }

type expectation struct{ kind, status, reason, message string }

func TestConditions(t *testing.T) {
	ready, current := []*clusterv1.Machine{serving("m"), serving("n"), serving("o")}, []*clusterv1.Machine(nil)
	unhealthy := member("unhealthy", time.Hour, conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "Bad", "no heartbeat"),
		conditions.False(clusterv1.MachineOwnerRemediatedCondition, "Waiting", "waits"))
	available, rolling := clusterv1.MachineDeploymentAvailableCondition, clusterv1.MachineDeploymentRollingOutCondition
	up, down := clusterv1.MachineDeploymentScalingUpCondition, clusterv1.MachineDeploymentScalingDownCondition
	tests := map[string]struct {
		scope   *scope
		failure error
		want    []expectation
		phase   string
	}{
		"as it should be": {rollout(nil, ready, wants(3)), nil, []expectation{
			{available, "True", "Available", ""}, {rolling, "False", "NotRollingOut", ""}, {up, "False", "NotScalingUp", ""},
			{down, "False", "NotScalingDown", ""}, {clusterv1.MachineDeploymentMachinesReadyCondition, "True", "Ready", ""},
			{clusterv1.MachineDeploymentMachinesUpToDateCondition, "True", "UpToDate", ""},
			{clusterv1.MachineDeploymentRemediatingCondition, "False", "NotRemediating", ""},
			{clusterv1.MachineDeploymentDeletingCondition, "False", "NotDeleting", ""},
			{clusterv1.PausedCondition, "False", "NotPaused", ""},
		}, "Running"},
		"nothing is wanted": {rollout(nil, nil, wants(0)), nil, []expectation{
			{available, "True", "Available", ""}, {clusterv1.MachineDeploymentMachinesReadyCondition, "True", "NoReplicas", ""},
			{clusterv1.MachineDeploymentMachinesUpToDateCondition, "True", "NoReplicas", ""},
		}, "Running"},
		"too few": {rollout(nil, ready, wants(5)), errors.New("no quota"), []expectation{
			{available, "False", "NotAvailable", "3 available replicas, at least 5 required"},
			{up, "True", "ScalingUp", "Scaling up from 3 to 5 replicas: the last attempt failed and is repeated: no quota"},
		}, "ScalingUp"},
		"none of two, though all may be unavailable": {rollout(nil, []*clusterv1.Machine{member("m", 0), member("n", 0)}, wants(2), func(s *scope) {
			s.settings.maxUnavailable = 2
		}), nil, []expectation{
			{available, "False", "NotAvailable", "0 available replicas, at least 1 required (spec.replicas is 2, maxUnavailable 2)"},
			{rolling, "True", "RollingOut", "2 of 2 replicas are up to date, 0 available"},
		}, "ScalingUp"},
		"one is lost after the rollout": {rollout(nil, append(servingAll(1), member("n", 0)), wants(2), func(s *scope) {
			s.Original.Status.Conditions[0].Status = "False"
		}), nil, []expectation{{rolling, "False", "NotRollingOut", ""}}, "ScalingUp"},
		"none is missing, and one cannot be completed": {rollout(nil, ready, wants(3), func(s *scope) {
			s.current.Status.Conditions = []metav1.Condition{
				conditions.True(clusterv1.MachineSetScalingUpCondition, "ScalingUpBlocked", "exceeded quota"),
			}
		}), nil, []expectation{
			{up, "True", "ScalingUpBlocked", "Machines cannot be created, completed or updated:\n* MachineSet fresh: exceeded quota"},
		}, "Running"},
		"too many": {rollout(nil, ready, wants(2)), nil, []expectation{
			{down, "True", "ScalingDown", "Scaling down from 3 to 2 replicas"},
		}, "ScalingDown"},
		"a rollout": {rollout(ready, current, wants(3)), nil, []expectation{
			{rolling, "True", "RollingOut", "0 of 3 replicas are up to date"},
			{clusterv1.MachineDeploymentMachinesUpToDateCondition, "False", "NotUpToDate", "MachineSet old, 3 Machines (m, n, o): infrastructure machine template"},
		}, "Running"},
		"a rollout whose time has come": {rollout(nil, ready, wants(3), func(s *scope) {
			s.deployment.Spec.Rollout.After = metav1.NewTime(start.Add(-time.Minute))
		}), nil, []expectation{
			{rolling, "True", "RollingOut", "created before spec.rollout.after"},
			{clusterv1.MachineDeploymentMachinesUpToDateCondition, "False", "NotUpToDate", "MachineSet fresh"},
		}, "Running"},
		"a rollout whose time has not come": {rollout(nil, ready, wants(3), func(s *scope) {
			s.deployment.Spec.Rollout.After = metav1.NewTime(start.Add(time.Minute))
		}), nil, []expectation{{rolling, "False", "NotRollingOut", ""}}, "Running"},
		"a paused rollout": {rollout(ready, current, wants(3), func(s *scope) { s.settings.paused = true }), nil, []expectation{
			{rolling, "False", "RolloutPaused", "spec.paused is true"},
		}, "Running"},
		"a rollback that cannot be, in a rollout": {rollout(ready, current, wants(3), func(s *scope) { s.rollbackRefused = "Revision 9 is not kept" }), nil, []expectation{
			{rolling, "True", "RollbackRevisionNotFound", "Revision 9 is not kept\nRolling out: 0 of 3"},
		}, "Running"},
		"a wrong annotation": {rollout(nil, ready, wants(3), func(s *scope) {
			s.deployment.Annotations = map[string]string{ProgressDeadlineAnnotation: "soon"}
		}), nil, []expectation{{rolling, "False", "NotRollingOut", `"soon" is not a duration, 10m0s is assumed`}}, "Running"},
		"unhealthy": {rollout(nil, []*clusterv1.Machine{unhealthy}, wants(1)), nil, []expectation{
			{clusterv1.MachineDeploymentRemediatingCondition, "True", "Remediating", "unhealthy"},
			{clusterv1.MachineDeploymentMachinesReadyCondition, "Unknown", "ReadyUnknown", "unhealthy"},
		}, "ScalingUp"},
		"being deleted": {rollout(nil, ready, wants(3), goes), nil, []expectation{
			{available, "False", "NotAvailable", "Deletion in progress"}, {down, "True", "ScalingDown", "from 3 to 0"},
			{clusterv1.MachineDeploymentDeletingCondition, "True", "Deleting", "fresh (3 Machines)"}, {rolling, "False", "NotRollingOut", ""},
		}, "ScalingDown"},
		"a wrong spec": {rollout(ready, current, wants(4), wrong), nil, []expectation{
			{up, "True", "InvalidSpec", "spec.x is wrong: correct it"}, {rolling, "False", "InvalidSpec", ""}, {available, "Unknown", "InvalidSpec", ""},
		}, "ScalingUp"},
		"nothing is known": {rollout(nil, nil, unreadable), errors.New("timeout"), []expectation{
			{available, "Unknown", "InternalError", "timeout"}, {rolling, "Unknown", "InternalError", "timeout"}, {up, "Unknown", "InternalError", ""},
			{down, "Unknown", "InternalError", ""}, {clusterv1.MachineDeploymentMachinesReadyCondition, "Unknown", "InternalError", ""},
			{clusterv1.MachineDeploymentMachinesUpToDateCondition, "Unknown", "InternalError", ""},
			{clusterv1.MachineDeploymentRemediatingCondition, "Unknown", "InternalError", ""},
		}, "Unknown"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.scope.setStatus(test.failure)
			status := &test.scope.Object.Status
			for _, want := range test.want {
				reported := meta.FindStatusCondition(status.Conditions, want.kind)
				g.Expect(reported).NotTo(BeNil(), want.kind)
				g.Expect([]string{string(reported.Status), reported.Reason}).To(Equal([]string{want.status, want.reason}), want.kind)
				g.Expect(reported.Message).To(ContainSubstring(want.message))
			}
			g.Expect(status.Phase).To(Equal(test.phase))
		})
	}
}

func TestPausedDeploymentStaysAsItWasFound(t *testing.T) {
	g := NewWithT(t)
	s := rollout(servingAll(2), nil, func(s *scope) { s.paused = []string{"the Cluster is paused"} })
	s.Object.Status.Phase = "Running"
	s.setStatus(nil)
	g.Expect(s.Object.Status.Conditions).To(ConsistOf(And(HaveField("Type", "Paused"), HaveField("Message", "the Cluster is paused"))))
	g.Expect(s.Object.Status.Phase).To(Equal("Running"))
	g.Expect(s.Object.Status.Replicas).To(BeNil())
}

func TestCounts(t *testing.T) {
	g := NewWithT(t)
	updated := serving("updated")
	updated.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	s := rollout(append(servingAll(2), going5m(serving("going"))), append(servingAll(1), updated, member("coming", time.Minute)), wants(4))
	s.setStatus(nil)
	status := s.Object.Status
	g.Expect(*status.Replicas).To(BeEquivalentTo(6), "deleting ones count")
	g.Expect(*status.AvailableReplicas).To(BeEquivalentTo(3))
	g.Expect(*status.UpToDateReplicas).To(BeEquivalentTo(2), "not one that is being updated")
	g.Expect(s.machines[types.UID("fresh")]).To(HaveLen(3), "what was read is left alone")
}
