package rules_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/infracluster"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/contracts/version"
)

// TestPausedOfAllKinds: each kind reports in the same condition that it is paused.
func TestPausedOfAllKinds(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Paused", "status": "True", "reason": "Paused"},
		map[string]any{"type": "RollingOut", "status": "False", "reason": "NotRollingOut"},
	}}}}
	for name, read := range map[string]func(*unstructured.Unstructured) (*metav1.Condition, error){
		"inframachine":    inframachine.At(version.V1Beta2).Paused,
		"bootstrapconfig": bootstrapconfig.At(version.V1Beta2).Paused,
		"infracluster":    infracluster.At(version.V1Beta2).Paused,
		"controlplane":    controlplane.At(version.V1Beta2).Paused,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			paused, err := read(obj)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(paused).To(HaveField("Status", metav1.ConditionTrue))
			g.Expect(read(&unstructured.Unstructured{Object: map[string]any{}})).To(BeNil())
		})
	}
	g := NewWithT(t)
	rolling, err := controlplane.At(version.V1Beta2).Condition(obj, "RollingOut")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(rolling).To(HaveField("Status", metav1.ConditionFalse))
}

// TestFailureOfTheOlderContract: the newer one has no permanent failures.
func TestFailureOfTheOlderContract(t *testing.T) {
	type failure = func(*unstructured.Unstructured) (reason, message string, err error)
	obj := &unstructured.Unstructured{
		Object: map[string]any{"status": map[string]any{"failureReason": "Broken", "failureMessage": "permanently"}},
	}
	for name, of := range map[string]func(version.Contract) failure{
		"infracluster": func(c version.Contract) failure { return infracluster.At(c).Failure },
		"controlplane": func(c version.Contract) failure { return controlplane.At(c).Failure },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reason, message, err := of(version.V1Beta1)(obj)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]string{reason, message}).To(Equal([]string{"Broken", "permanently"}))
			reason, message, err = of(version.V1Beta2)(obj)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(reason + message).To(BeEmpty())
			_, _, err = of(version.V1Beta1)(&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"failureReason": int64(1)}}})
			g.Expect(err).To(MatchError(ContainSubstring("status.failureReason")))
		})
	}
}
