package controller

import (
	"testing"

	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/contracts/controller/conditions"
)

func TestOverdueJoinsAreCounted(t *testing.T) {
	g := NewWithT(t)
	o := &overdue{}
	scopeOf := func(name, reason string) *scope {
		return &scope{
			machine: &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: "counted", Name: name},
				Spec:       clusterv1.MachineSpec{ClusterName: "c"},
			},
			Base: base(
				&bootstrapv1.CloudConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "counted", Name: name}, Status: bootstrapv1.CloudConfigStatus{
					Conditions: []metav1.Condition{conditions.False(bootstrapv1.NodeJoinedCondition, reason, "")},
				}},
			),
		}
	}
	count := func() float64 {
		metric := &dto.Metric{}
		g.Expect(joinsOverdue.WithLabelValues("counted/c").Write(metric)).To(Succeed())
		return metric.GetGauge().GetValue()
	}
	o.follow(scopeOf("a", bootstrapv1.JoinOverdueReason))
	o.follow(scopeOf("a", bootstrapv1.JoinOverdueReason))
	o.follow(scopeOf("b", bootstrapv1.JoinOverdueReason))
	o.follow(scopeOf("c", bootstrapv1.WaitingForNodeReason))
	g.Expect(count()).To(Equal(2.0))
	o.follow(scopeOf("a", bootstrapv1.JoinedReason))
	g.Expect(count()).To(Equal(1.0))
	going := scopeOf("b", bootstrapv1.JoinOverdueReason)
	now := metav1.Now()
	going.machine.DeletionTimestamp = &now
	o.follow(going)
	o.forget(client.ObjectKey{Namespace: "counted", Name: "b"})
	g.Expect(joinsOverdue.DeleteLabelValues("counted/c")).To(BeFalse(), "a Cluster without any has no series")
}
