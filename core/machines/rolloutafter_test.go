package machines

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestOutdatedByRolloutAfter has a set of each origin. The creation time decides only where no record does.
func TestOutdatedByRolloutAfter(t *testing.T) {
	after := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	stamp := func(at time.Time) string { return at.Format(time.RFC3339) }
	const unrecorded = ""
	tests := map[string]struct {
		record   string
		created  time.Duration
		now      time.Duration
		outdated bool
	}{
		"the time has not come":                                {noRolloutAfter, -time.Hour, -time.Second, false},
		"created for no time":                                  {noRolloutAfter, -time.Hour, 0, true},
		"created for no time, by an API server that is ahead":  {noRolloutAfter, time.Hour, 0, true},
		"created for no time, long after":                      {noRolloutAfter, 3 * time.Hour, 4 * time.Hour, false},
		"created for an earlier time":                          {stamp(after.Add(-time.Second)), -time.Second, 0, true},
		"created for this time":                                {stamp(after), 0, 0, false},
		"created for this time, by an API server that is slow": {stamp(after), -time.Hour, 0, false},
		"created for a later time":                             {stamp(after.Add(time.Minute)), -time.Hour, 0, false},
		"of another core, created before":                      {unrecorded, -time.Second, 0, true},
		"of another core, created at that time":                {unrecorded, 0, 0, false},
		"of another core, created after":                       {unrecorded, time.Second, time.Minute, false},
		"with a record that was not written":                   {"yes", -time.Second, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			deployment, set := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}
			deployment.Spec.Rollout.After = metav1.NewTime(after)
			set.CreationTimestamp = metav1.NewTime(after.Add(test.created))
			if test.record != unrecorded {
				set.Annotations = map[string]string{RolloutAfterAnnotation: test.record}
			}
			NewWithT(t).Expect(len(Outdated(deployment, set, after.Add(test.now))) > 0).To(Equal(test.outdated))
		})
	}
}

// TestRecordOfRolloutAfter: what a set is created for is known later, whatever the clocks say then.
func TestRecordOfRolloutAfter(t *testing.T) {
	after := time.Date(2026, 5, 4, 12, 0, 0, 0, time.FixedZone("", 3600))
	for name, test := range map[string]struct {
		after, now time.Time
		record     string
		created    bool
	}{
		"none":                  {time.Time{}, after, "none", false},
		"the time has not come": {after, after.Add(-time.Second), "none", false},
		"the time has come":     {after, after, "2026-05-04T11:00:00Z", true},
		"long after":            {after, after.Add(time.Hour), "2026-05-04T11:00:00Z", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			deployment, set := &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}
			g.Expect(CreatedFor(set, after)).To(BeFalse(), "without a record nothing is known")
			deployment.Spec.Rollout.After = metav1.NewTime(test.after)
			record := RolloutAfterRecord(deployment, test.now)
			g.Expect(record).To(Equal(test.record))
			set.Annotations = map[string]string{RolloutAfterAnnotation: record}
			g.Expect(CreatedFor(set, after)).To(Equal(test.created))
			g.Expect(CreatedFor(set, after.Add(time.Second))).To(BeFalse(), "another time")
		})
	}
}
