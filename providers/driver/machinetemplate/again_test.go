package machinetemplate

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// TestBrokenTemplatesAreNotAskedForEver: what is refused for good is in the condition and not asked again, and what fails
// otherwise is asked more and more rarely.
func TestBrokenTemplatesAreNotAskedForEver(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	unknown := driver.NewUnknownError("Describe", "X", errors.New("no answer"))
	for name, test := range map[string]struct {
		failure error
		since   time.Duration
		want    time.Duration
	}{
		"known":            {nil, time.Hour, 0},
		"refused for good": {driver.NewTerminalError("Describe", "X", errors.New("no such type")), time.Hour, 0},
		"just failed":      {unknown, 0, time.Second},
		"failing":          {unknown, 40 * time.Second, 40 * time.Second},
		"failing for long": {unknown, time.Hour, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			status := &driverv1.MachineTemplateStatus{Conditions: []metav1.Condition{{
				Type: driverv1.CapacityKnownCondition, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-test.since)),
			}}}
			NewWithT(t).Expect(again(status, test.failure, now).RequeueAfter).To(Equal(test.want))
		})
	}
}
