package remediation_test

import (
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/freeze"
	. "millwright.dev/test/coretest/builder"
)

// TestSetsOf: which sets of a deployment go, and what none of them has any more.
func TestSetsOf(t *testing.T) {
	set := func(revision int, replicas int32, creates bool, has int) remediation.Owned {
		s := &clusterv1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{clusterv1.RevisionAnnotation: strconv.Itoa(revision)}},
		}
		s.Spec.Replicas = ptr.To(replicas)
		if !creates {
			s.Annotations[clusterv1.DisableMachineCreateAnnotation] = "true"
		}
		owned := remediation.Owned{MachineSet: s}
		for range has {
			owned.Machines = append(owned.Machines, Machine("m"))
		}
		return owned
	}
	type found struct {
		replicas int
		outgoing bool
	}
	for name, test := range map[string]struct {
		strategy clusterv1.MachineDeploymentRolloutStrategyType
		replicas int32
		sets     []remediation.Owned
		want     []found
	}{
		"the newest stays, in any order": {clusterv1.RollingUpdateMachineDeploymentStrategyType, 3,
			[]remediation.Owned{set(1, 1, true, 1), set(3, 1, true, 1), set(2, 1, true, 1)}, []found{{1, true}, {1, false}, {1, true}}},
		"one that makes none stays until its Machines are deleted": {clusterv1.OnDeleteMachineDeploymentStrategyType, 2,
			[]remediation.Owned{set(1, 1, false, 1), set(2, 1, true, 1)}, []found{{1, false}, {1, false}}},
		"a Machine that is in no set":       {clusterv1.OnDeleteMachineDeploymentStrategyType, 3, []remediation.Owned{set(1, 1, false, 1), set(2, 1, true, 1)}, []found{{1, false}, {1, false}, {1, false}}},
		"of a rolling update there is none": {clusterv1.RollingUpdateMachineDeploymentStrategyType, 3, []remediation.Owned{set(1, 1, true, 1)}, []found{{1, false}}},
		"a Machine that a set wants no more is there still": {clusterv1.OnDeleteMachineDeploymentStrategyType, 2,
			[]remediation.Owned{set(1, 1, true, 2)}, []found{{1, false}}},
		"one that a set has not made yet": {clusterv1.OnDeleteMachineDeploymentStrategyType, 2, []remediation.Owned{set(1, 2, true, 1)}, []found{{2, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &clusterv1.MachineDeployment{}
			deployment.Spec.Replicas = ptr.To(test.replicas)
			deployment.Spec.Rollout.Strategy.Type = test.strategy
			var got []found
			for _, s := range remediation.SetsOf(deployment, test.sets) {
				got = append(got, found{s.Replicas, s.Outgoing})
			}
			NewWithT(t).Expect(got).To(Equal(test.want))
		})
	}
}

// TestWhoWaitsForASlotLooksAgainWhenItEnds, and nothing else does.
func TestWhoWaitsForASlotLooksAgainWhenItEnds(t *testing.T) {
	g := NewWithT(t)
	var slots remediation.Slots
	view := seen(
		map[types.UID][]remediation.Set{"d": {{Machines: []*clusterv1.Machine{Machine("a", handed), Machine("b", handed)}, Replicas: 2}}},
	)
	slots.Verify(inCluster, remediation.Unverified{}, nil, view, Epoch)
	first := decide(&slots, "d", view, asking(1, 10, Epoch, "a"))
	g.Expect(allowed(first)).To(Equal([]string{"a"}))
	g.Expect(first.Next).To(BeZero(), "none waits")
	later, ends := Epoch.Add(time.Second), Epoch.Add(remediation.UnseenTimeout)
	frozen := func(until time.Time) remediation.Input {
		in := asking(1, 10, later, "b")
		in.Frozen = freeze.State{Reason: freeze.RecoveringReason, Until: until}
		return in
	}
	for name, test := range map[string]struct {
		in      remediation.Input
		allowed []string
		next    time.Time
	}{
		"it waits for the slot":                    {asking(1, 10, later, "b"), []string{}, ends},
		"it does, before the one that has it":      {asking(1, 10, later, "b", "a"), []string{"a"}, ends},
		"there is room beside it":                  {asking(2, 10, later, "b"), []string{"b"}, time.Time{}},
		"it waits for something that ends earlier": {frozen(ends.Add(-time.Second)), []string{}, ends.Add(-time.Second)},
		"it waits for something that ends later":   {frozen(ends.Add(time.Hour)), []string{}, ends},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var slots remediation.Slots
			decide(&slots, "d", view, asking(1, 10, Epoch, "a"))
			decision := decide(&slots, "d", view, test.in)
			g.Expect(allowed(decision)).To(Equal(test.allowed))
			g.Expect(decision.Next).To(Equal(test.next))
		})
	}
	var free remediation.Slots
	g.Expect(decide(&free, "d", view, frozen(ends)).Next).To(Equal(ends), "none has a slot")
}
