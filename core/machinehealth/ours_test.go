package machinehealth

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/health"
)

// TestOurs: only what a policy of the core can have said is taken from a Machine, by reason and message together.
func TestOurs(t *testing.T) {
	const unhealthy = clusterv1.MachineHealthCheckUnhealthyNodeReason
	tests := map[string]struct {
		status          metav1.ConditionStatus
		reason, message string
		want            bool
	}{
		"healthy":                           {"True", clusterv1.MachineHealthCheckSucceededReason, healthyMessage, true},
		"found by a check":                  {"False", unhealthy, "MachineHealthCheck my.check-1: Node n …", true},
		"found by the default policy":       {"False", clusterv1.MachineHealthCheckNodeStartupTimeoutReason, health.DefaultName + ": no Node", true},
		"asked for":                         {"False", clusterv1.MachineHealthCheckHasRemediateAnnotationReason, "MachineHealthCheck c: asked", true},
		"healthy, of another controller":    {"True", "ByHand", healthyMessage, false},
		"healthy, of Cluster API":           {"True", clusterv1.MachineHealthCheckSucceededReason, "", false},
		"unhealthy, another reason":         {"False", "ByHand", "MachineHealthCheck c: by hand", false},
		"unhealthy, of a product like this": {"False", unhealthy, "MachineHealthCheck of ACME: broken", false},
		"unhealthy, of Cluster API":         {"False", unhealthy, "Health check failed: Node n", false},
		"not known":                         {"Unknown", unhealthy, "MachineHealthCheck c: x", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			machine := &clusterv1.Machine{}
			NewWithT(t).Expect(ours(machine)).To(BeFalse())
			machine.Status.Conditions = []metav1.Condition{{
				Type: clusterv1.MachineHealthCheckSucceededCondition, Status: test.status, Reason: test.reason, Message: test.message,
			}}
			NewWithT(t).Expect(ours(machine)).To(Equal(test.want))
		})
	}
}
