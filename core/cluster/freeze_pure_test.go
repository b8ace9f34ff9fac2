package cluster

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/safety/freeze"
)

// A freeze is reported where there was something to replace, and its end where the freeze was reported.
func TestSetRemediationAllowed(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	since := func(reason string, ago time.Duration) freeze.State {
		return freeze.State{Reason: reason, Message: "because", Since: now.Add(-ago)}
	}
	starting := since(freeze.TargetAPIServerUnreachableReason, time.Minute)
	starting.Starting = true
	initialized := func(ago time.Duration) []metav1.Condition {
		return []metav1.Condition{{
			Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		}}
	}
	frozen := metav1.Condition{Type: RemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: freeze.RecoveringReason}
	for _, c := range []struct {
		name  string
		state freeze.State
		had   []metav1.Condition
		want  string
	}{
		{"never frozen", freeze.State{}, initialized(time.Hour), "absent"},
		{"a target that does not answer", since(freeze.TargetAPIServerUnreachableReason, time.Minute), initialized(time.Hour), "False/TargetAPIServerUnreachable"},
		{"a target that answers again", since(freeze.RecoveringReason, time.Minute), initialized(time.Hour), "False/Recovering"},
		{"a control plane that is new", since(freeze.RecoveringReason, time.Minute), initialized(time.Second), "absent"},
		{"no control plane", since(freeze.TargetAPIServerUnreachableReason, time.Minute), nil, "absent"},
		{"the start of a core", starting, initialized(time.Hour), "absent"},
		{"the start of a core in a freeze", starting, append(initialized(time.Hour), frozen), "False/Recovering"},
		{"the next outage", since(freeze.TargetAPIServerUnreachableReason, time.Minute), append(initialized(time.Hour), frozen), "False/TargetAPIServerUnreachable"},
		{"the end", freeze.State{}, append(initialized(time.Hour), frozen), "True/RemediationAllowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scope{frozen: c.state}
			s.Original = &clusterv1.Cluster{Status: clusterv1.ClusterStatus{Conditions: c.had}}
			s.Object, s.Now = s.Original.DeepCopy(), now
			s.setRemediationAllowed()
			got := "absent"
			if found := meta.FindStatusCondition(s.Object.Status.Conditions, RemediationAllowedCondition); found != nil {
				got = string(found.Status) + "/" + found.Reason
			}
			NewWithT(t).Expect(got).To(Equal(c.want))
		})
	}
}
