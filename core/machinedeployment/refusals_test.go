package machinedeployment

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// TestWhatFailsIsReported: by one condition at least, whatever the deployment is doing; and each message is whole.
func TestWhatFailsIsReported(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "machinesets"}, "fresh", errors.New("exceeded quota"))
	const again, line = "the last attempt failed and is repeated: ", "The last attempt failed and is repeated: "
	rolling, down := clusterv1.MachineDeploymentRollingOutCondition, clusterv1.MachineDeploymentScalingDownCondition
	gone, up := clusterv1.MachineDeploymentDeletingCondition, clusterv1.MachineDeploymentScalingUpCondition
	settled := func(s *scope) { s.Original.Status.Conditions[0].Status = metav1.ConditionFalse }
	blocked := func(s *scope) {
		s.current.Status.Conditions = []metav1.Condition{conditions.True(clusterv1.MachineSetScalingUpCondition, "ScalingUpBlocked", "no\nquota")}
	}
	kept := func(s *scope) {
		s.sets[0].Status.Conditions = []metav1.Condition{conditions.True(clusterv1.MachineSetScalingDownCondition, "ScalingDown",
			"Scaling down from 1 to 0 replicas; being deleted: none\n"+line+"no ticket")}
	}
	const keptLine = "\n* MachineSet old cannot delete Machines: no ticket"
	slow := func() *clusterv1.Machine {
		machine := serving("slow")
		machine.DeletionTimestamp = ptr.To(metav1.NewTime(start.Add(-time.Hour)))
		return machine
	}
	const slowLine = "\nBeing deleted for more than 15 minutes:\n* Machine slow: being deleted"
	outdated := "MachineSet old, 1 Machines (a): infrastructure machine template XTemplate.i u, XTemplate.i t required"
	tests := map[string]struct {
		scope   *scope
		failure error
		want    expectation
	}{
		"scaling down": {rollout(nil, servingAll(3), wants(2)), refused, expectation{down, "True", "ScalingDown",
			"Scaling down from 3 to 2 replicas: " + again + refused.Error()}},
		"scaling down, slowly": {rollout(nil, append(servingAll(2), slow()), wants(2)), nil, expectation{down, "True", "ScalingDown",
			"Scaling down from 3 to 2 replicas" + slowLine}},
		"a set cannot scale down": {rollout(servingAll(1), servingAll(2), wants(2), kept), nil, expectation{down, "True", "ScalingDown",
			"Scaling down from 3 to 2 replicas" + keptLine}},
		"a set cannot scale down, without surge": {rollout(servingAll(1), servingAll(1), wants(2), kept), nil, expectation{rolling, "True",
			"RollingOut", "Rolling out: 1 of 2 replicas are up to date; outdated are:\n* " + outdated + keptLine}},
		"going, and a set cannot delete": {rollout(servingAll(1), nil, wants(1), kept, goes), nil, expectation{gone, "True", "Deleting",
			"Waiting for the deletion of MachineSets old (1 Machines), fresh (0 Machines)" + keptLine}},
		"going": {rollout(nil, servingAll(1), wants(1), goes), refused, expectation{gone, "True", "Deleting",
			"Waiting for the deletion of MachineSets old (0 Machines), fresh (1 Machines)\n" + line + refused.Error()}},
		"going, slowly": {rollout(nil, []*clusterv1.Machine{slow()}, wants(1), goes), nil, expectation{gone, "True", "Deleting",
			"Waiting for the deletion of MachineSets old (0 Machines), fresh (1 Machines)" + slowLine}},
		"gone": {rollout(nil, nil, wants(1), goes, func(s *scope) { s.sets = nil }), nil, expectation{gone, "True", "Deleting",
			"All MachineSets are gone"}},
		"rolling out": {rollout(servingAll(1), nil, wants(1)), refused, expectation{rolling, "True", "RollingOut",
			"Rolling out: 0 of 1 replicas are up to date; outdated are:\n* " + outdated + "\n" + line + refused.Error()}},
		"doing nothing": {rollout(nil, servingAll(1), wants(1), settled), refused, expectation{rolling, "False", "InternalError",
			line + refused.Error()}},
		"doing nothing, and what passes by itself": {rollout(nil, servingAll(1), wants(1), settled), errors.New("no answer"),
			expectation{rolling, "False", "NotRollingOut", ""}},
		"paused": {rollout(servingAll(1), nil, wants(1), func(s *scope) { s.settings.paused = true }), refused, expectation{
			rolling, "False", "RolloutPaused", "spec.paused is true; outdated are:\n* " + outdated + "\n" + line + refused.Error()}},
		"with a spec that is wrong": {rollout(servingAll(1), nil, wants(1), wrong), nil, expectation{rolling, "False", "InvalidSpec", "See ScalingUp"}},
		"going, with a spec that is wrong": {rollout(servingAll(1), nil, wants(1), wrong, goes), nil,
			expectation{up, "False", "NotScalingUp", ""}},
		"going, and blocked": {rollout(nil, servingAll(1), wants(1), blocked, goes), nil, expectation{up, "False", "NotScalingUp", ""}},
		"going, and a rollback that could not be": {rollout(nil, servingAll(1), wants(1), goes, func(s *scope) { s.rollbackRefused = "Revision 9 is not kept" }),
			refused, expectation{rolling, "False", "NotRollingOut", ""}},
		"going, with outdated Machines": {rollout(servingAll(1), nil, wants(1), goes), nil, expectation{rolling, "False", "NotRollingOut", ""}},
		"blocked": {rollout(nil, servingAll(1), wants(2), blocked), refused, expectation{up, "True", "ScalingUpBlocked",
			"Scaling up from 1 to 2 replicas is blocked:\n* MachineSet fresh: no\n  quota"}},
		"a new set after a rollout": {rollout(nil, nil, wants(1), settled, func(s *scope) { s.created = true }), nil, expectation{
			rolling, "True", "RollingOut", "Rolling out: 0 of 1 replicas are up to date, 0 available"}},
		"an outdated Machine after a rollout": {rollout(servingAll(1), servingAll(1), wants(1), settled), nil, expectation{
			rolling, "True", "RollingOut", "Rolling out: 1 of 1 replicas are up to date; outdated are:\n* " + outdated}},
		"ready no more": {rollout(nil, []*clusterv1.Machine{member("m", 0, conditions.False(clusterv1.MachineReadyCondition, "Bad", "broken"))}, wants(1)), nil,
			expectation{clusterv1.MachineDeploymentMachinesReadyCondition, "False", "NotReady", "* Machine m: broken"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.scope.setStatus(test.failure)
			reported := meta.FindStatusCondition(test.scope.Object.Status.Conditions, test.want.kind)
			g.Expect(reported).NotTo(BeNil())
			g.Expect(expectation{reported.Type, string(reported.Status), reported.Reason, reported.Message}).To(Equal(test.want))
		})
	}
}
