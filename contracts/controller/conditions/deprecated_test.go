//nolint:staticcheck // for clients of v1beta1, as long as upstream converts for them
package conditions_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	capierrors "sigs.k8s.io/cluster-api/api/deprecated/errors"

	"millwright.dev/contracts/controller/conditions"
)

func TestToV1Beta1(t *testing.T) {
	g := NewWithT(t)
	at := metav1.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	types := []conditions.Older{
		{Type: "BootstrapConfigReady", As: "BootstrapReady"},
		{Type: "InfrastructureReady", As: "InfrastructureReady"},
		{Type: "Ready", As: "Ready"},
	}
	list := []metav1.Condition{
		{Type: "InfrastructureReady", Status: "False", Reason: "ObjectDeleted", Message: "gone", LastTransitionTime: at},
		{Type: "BootstrapConfigReady", Status: "True", Reason: "Ready", LastTransitionTime: at},
		{Type: "Ready", Status: "False", Reason: "NotReady", Message: "m", LastTransitionTime: at},
		{Type: "Paused", Status: "False", Reason: "NotPaused", LastTransitionTime: at},
	}
	foreign := clusterv1.Condition{Type: "EtcdPodHealthy", Status: "True", LastTransitionTime: at}
	before := clusterv1.Conditions{{Type: "Ready", Status: "True"}, foreign}
	got := conditions.ToV1Beta1(list, before, types...)
	g.Expect(before).To(Equal(clusterv1.Conditions{{Type: "Ready", Status: "True"}, foreign}), "what was read stays as it is, to compare with")
	g.Expect(got).To(Equal(clusterv1.Conditions{
		{Type: "Ready", Status: "False", Severity: "Info", Reason: "NotReady", Message: "m", LastTransitionTime: at},
		{Type: "BootstrapReady", Status: "True", LastTransitionTime: at},
		foreign,
		{Type: "InfrastructureReady", Status: "False", Severity: "Error", Reason: "ObjectDeleted", Message: "gone", LastTransitionTime: at},
	}))
	g.Expect(conditions.ToV1Beta1(list, got, types...)).To(Equal(got), "the same conditions make the same older ones")
	g.Expect(conditions.ToV1Beta1(nil, nil, types...)).To(BeNil())
	g.Expect(conditions.ToV1Beta1(nil, clusterv1.Conditions{{Type: "Ready", Status: "True"}}, types...)).
		To(BeNil(), "the last of them has gone")
	unknown := []metav1.Condition{{Type: "Ready", Status: "Unknown", Reason: "Lost", Message: "m", LastTransitionTime: at}}
	g.Expect(conditions.ToV1Beta1(unknown, nil, types...)).To(Equal(clusterv1.Conditions{
		{Type: "Ready", Status: "Unknown", Reason: "Lost", Message: "m", LastTransitionTime: at},
	}), "only what is False has a severity")
	long := []metav1.Condition{{Type: "Ready", Status: "False", Reason: strings.Repeat("R", 1024), Message: strings.Repeat("m", 32768)}}
	got = conditions.ToV1Beta1(long, nil, types...)
	g.Expect(len(got[0].Reason)).To(Equal(256), "the older form has shorter reasons")
	g.Expect(len(got[0].Message)).To(Equal(conditions.MaxOlderMessage))
}

func TestOlderFailure(t *testing.T) {
	g := NewWithT(t)
	reason, message := conditions.OlderFailure[capierrors.MachineStatusError]("CreateError", strings.Repeat("m", conditions.MaxOlderMessage+1))
	g.Expect(reason).To(HaveValue(Equal(capierrors.CreateMachineError)))
	g.Expect(*message).To(HaveLen(conditions.MaxOlderMessage), "the API refuses a longer one")
	reason, message = conditions.OlderFailure[capierrors.MachineStatusError]("", "m")
	g.Expect(reason).To(BeNil())
	g.Expect(message).To(HaveValue(Equal("m")))
	reason, message = conditions.OlderFailure[capierrors.MachineStatusError]("CreateError", "")
	g.Expect(reason).To(HaveValue(Equal(capierrors.CreateMachineError)))
	g.Expect(message).To(BeNil())
}
