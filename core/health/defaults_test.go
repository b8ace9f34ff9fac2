package health

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// mcm are the values of the Machine Controller Manager.
var mcm = Defaults{
	CreationTimeout: 20 * time.Minute,
	HealthTimeout:   10 * time.Minute,
	NodeConditions:  []string{"KernelDeadlock", "DiskPressure"},
}

// TestOfCheck: what is not set is as in Cluster API.
func TestOfCheck(t *testing.T) {
	g, check := NewWithT(t), &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	g.Expect(OfCheck(check)).
		To(Equal(Policy{Name: "MachineHealthCheck workers", NodeStartup: 10 * time.Minute, NodeGone: ptr.To(time.Duration(0))}))
	check.Spec.Checks = clusterv1.MachineHealthCheckChecks{
		NodeStartupTimeoutSeconds: ptr.To[int32](0),
		UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
			{Type: corev1.NodeReady, Status: "False", TimeoutSeconds: ptr.To[int32](60)},
		},
		UnhealthyMachineConditions: []clusterv1.UnhealthyMachineCondition{{Type: "X", Status: "True", TimeoutSeconds: ptr.To[int32](5)}},
	}
	got := OfCheck(check)
	g.Expect(got.NodeStartup).To(BeZero())
	g.Expect(got.NodeConditions).To(Equal([]Rule{{"Ready", "False", time.Minute}}))
	g.Expect(got.MachineConditions).To(Equal([]Rule{{"X", "True", 5 * time.Second}}))
	f := facts(nodeless(24 * time.Hour))
	g.Expect(Judge(got, f).State).To(Equal(Pending), "0 means no limit")
	g.Expect(Judge(got, f).Next).To(BeZero())
}

// TestDefaults has the timeouts that a Machine gets: its own annotation before that of its MachineDeployment, ours before that of the
// Machine Controller Manager, and what cannot be read does not count.
func TestDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		machine, deployment map[string]string
		creation, health    time.Duration
	}{
		"the flags":                     {nil, nil, 20 * time.Minute, 10 * time.Minute},
		"MCM's on the deployment":       {nil, map[string]string{MCMCreationTimeoutAnnotation: "1h"}, time.Hour, 10 * time.Minute},
		"ours beside MCM's":             {nil, map[string]string{MCMCreationTimeoutAnnotation: "1h", CreationTimeoutAnnotation: "2h"}, 2 * time.Hour, 10 * time.Minute},
		"the Machine's":                 {map[string]string{CreationTimeoutAnnotation: "3h", HealthTimeoutAnnotation: "5m"}, map[string]string{CreationTimeoutAnnotation: "2h", HealthTimeoutAnnotation: "1m"}, 3 * time.Hour, 5 * time.Minute},
		"none for this one":             {map[string]string{CreationTimeoutAnnotation: "0", HealthTimeoutAnnotation: "0"}, nil, 0, 0},
		"what is not a duration":        {map[string]string{CreationTimeoutAnnotation: "soon", HealthTimeoutAnnotation: "-5m"}, nil, 20 * time.Minute, 10 * time.Minute},
		"an empty one on a Machine":     {map[string]string{CreationTimeoutAnnotation: ""}, map[string]string{CreationTimeoutAnnotation: "2h"}, 2 * time.Hour, 10 * time.Minute},
		"nothing of others' annotation": {map[string]string{"x": "1h"}, nil, 20 * time.Minute, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := mcm.For(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: test.machine}},
				&clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: test.deployment}})
			g.Expect(got.NodeStartup).To(Equal(test.creation))
			if test.health == 0 {
				g.Expect(got.NodeGone).To(BeNil())
				g.Expect(got.NodeConditions).To(BeEmpty())
				return
			}
			g.Expect(got.NodeGone).To(HaveValue(Equal(test.health)))
			for _, rule := range got.NodeConditions {
				g.Expect(rule.Timeout).To(Equal(test.health))
			}
		})
	}
	g := NewWithT(t)
	g.Expect(Defaults{}.Enabled()).To(BeFalse())
	g.Expect(Defaults{HealthTimeout: 1}.Enabled()).To(BeTrue())
	g.Expect(mcm.Judges(&clusterv1.Machine{})).To(BeTrue())
	g.Expect(Defaults{}.Judges(&clusterv1.Machine{})).To(BeFalse())
	g.Expect(mcm.Judges(&clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}})).
		To(BeFalse())
}

// TestJudgeByDefaults: not Ready and Unknown count, a condition of node-problem-detector only if it is True, and a Node that no longer
// exists has the timeout too.
func TestJudgeByDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		facts Facts
		want  State
		next  time.Duration
	}{
		"Ready":                            {facts(), Healthy, 0},
		"not Ready":                        {facts(ready("False", 10*time.Minute)), Unhealthy, 0},
		"not Ready for less":               {facts(ready("False", 9*time.Minute)), Pending, time.Minute},
		"Unknown":                          {facts(ready("Unknown", 10*time.Minute)), Unhealthy, 0},
		"a deadlock":                       {facts(node("KernelDeadlock", "True", 10*time.Minute)), Unhealthy, 0},
		"a detector with no result":        {facts(node("KernelDeadlock", "Unknown", time.Hour)), Healthy, 0},
		"pressure that no flag names":      {facts(node("PIDPressure", "True", time.Hour)), Healthy, 0},
		"created too long ago":             {facts(nodeless(20 * time.Minute)), Unhealthy, 0},
		"gone":                             {facts(deleted), Pending, 10 * time.Minute},
		"terminated":                       {facts(infrastructure("InstanceTerminated", 0)), Unhealthy, 0},
		"no creation timeout in the flags": {facts(nodeless(19 * time.Minute)), Pending, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := mcm.For(test.facts.Machine, nil)
			Observe(test.facts, p)
			got := Judge(p, test.facts)
			g.Expect(got.State).To(Equal(test.want), got.Message)
			if test.next != 0 {
				g.Expect(got.Next).To(BeTemporally("==", now.Add(test.next)))
			}
		})
	}
	g := NewWithT(t)
	only := Defaults{CreationTimeout: time.Hour}.For(facts().Machine, nil)
	f := facts(deleted)
	Observe(f, only)
	g.Expect(Judge(only, f)).To(And(HaveField("State", Pending), HaveField("Next", BeZero())), "without a health timeout a Node may be gone")
}
