package remediation_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
	. "millwright.dev/test/coretest/builder"
)

// TestARetryThatIsNotCreated holds up the others, since it may still be bought; who waits says so, since when, and where to look.
func TestARetryThatIsNotCreated(t *testing.T) {
	g := NewWithT(t)
	record := remediation.Record{Machine: "gone", Since: Epoch.Add(time.Hour), Retry: 1}
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		remediation.ReplacingAnnotation: remediation.FormatRecords([]remediation.Record{record}),
	}}}
	there := Machine("gone", Unavailable, handed)
	for name, test := range map[string]struct {
		all     []*clusterv1.Machine
		after   time.Duration
		reason  string
		message string
		until   time.Duration
	}{
		"it goes":               {[]*clusterv1.Machine{there}, 2 * time.Hour, remediation.RetryInProgressReason, "Waiting until the replacement gone", 0},
		"it is gone":            {nil, remediation.RetryOverdue - 1, remediation.RetryInProgressReason, "Waiting until the replacement gone", remediation.RetryOverdue},
		"it is gone for long":   {nil, remediation.RetryOverdue, remediation.RetryNotCreatedReason, "of gone, which was decided at 2026-11-20T13:00:00Z", 0},
		"it is for ever so far": {nil, 99 * time.Hour, remediation.RetryNotCreatedReason, "see condition ScalingUp of the MachineSet", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := asking(9, 9, record.Since.Add(test.after), "waiting")
			in.Retry = remediation.Retry{Max: 3}
			in.Candidates[0].Replaces = &remediation.Record{Machine: "before", Since: Epoch}
			in.Retries = remediation.RetriesOf(set, test.all)
			blocker := remediation.Decide(in).Results[0].Blocker
			g.Expect(blocker.Reason).To(Equal(test.reason))
			g.Expect(blocker.Message).To(ContainSubstring(test.message))
			if test.until == 0 {
				g.Expect(blocker.Until).To(BeZero())
			} else {
				g.Expect(blocker.Until).To(BeTemporally("==", record.Since.Add(test.until)), "then it is said")
			}
		})
	}
	g.Expect(remediation.RetriesOf(set, nil).PendingSince).To(BeTemporally("==", record.Since))
	g.Expect(remediation.RetriesOf(set, []*clusterv1.Machine{there}).PendingSince).To(BeZero())
}
