package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// TestRemediationAllowedIsPassedOn: the deployment shows why its unhealthy Machines stay.
func TestRemediationAllowedIsPassedOn(t *testing.T) {
	g := NewWithT(t)
	s := begin(valid())
	s.read = true
	a, b := setOf("a", "t", 3, time.Hour, "1"), setOf("b", "t", 3, time.Minute, "2")
	s.sets = []*clusterv1.MachineSet{a, b}
	s.setStatus(nil)
	const kind = clusterv1.MachineHealthCheckRemediationAllowedCondition
	g.Expect(meta.IsStatusConditionTrue(s.Object.Status.Conditions, kind)).To(BeTrue())
	conditions.Set(&a.Status.Conditions, conditions.True(kind, "RemediationAllowed", "an annotation is no number"), 1, s.Now)
	s.setStatus(nil)
	g.Expect(meta.IsStatusConditionTrue(s.Object.Status.Conditions, kind)).To(BeTrue())
	g.Expect(meta.FindStatusCondition(s.Object.Status.Conditions, kind).Message).To(Equal("an annotation is no number"))
	conditions.Set(&b.Status.Conditions, conditions.False(kind, "MaxRetryReached", "Gave up after 4 failed replacements"), 1, s.Now)
	s.setStatus(nil)
	found := meta.FindStatusCondition(s.Object.Status.Conditions, kind)
	g.Expect(found.Reason).To(Equal("MaxRetryReached"))
	g.Expect(found.Message).To(Equal("MachineSet b: Gave up after 4 failed replacements"))
}
