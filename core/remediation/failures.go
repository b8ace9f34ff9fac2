package remediation

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// Retries are those of one template since a Machine of it came up last. They are in the records of the Machines and of the set, so that
// a core that starts knows them.
type Retries struct {
	// Made counts them over all Machines.
	Made int
	// Pending is the Machine of one that has neither come up nor failed, or the Machine that it replaces while it does not exist; "" when
	// there is none.
	Pending string
	// PendingSince is when that one was decided if it should exist by now and does not: the Machine that it replaces no longer exists. Else
	// zero.
	PendingSince time.Time
	// Failed counts the replacements that failed, those that were no retries included.
	Failed int
	// SameWay means that all of them failed for one reason.
	SameWay bool
	// Reason and Message are those of the last failure.
	Reason, Message string
}

// RetriesOf counts the retries of a set, whose Machines all have one template. A Machine that came up after an attempt began shows that
// the template comes up: that attempt counts no longer.
func RetriesOf(set *clusterv1.MachineSet, all []*clusterv1.Machine) Retries {
	cameUp := lastCameUp(all)
	c := counting{Retries: Retries{SameWay: true}}
	replaced := map[string]bool{}
	for _, machine := range all {
		if record := RecordOf(machine); record != nil {
			replaced[record.Machine] = true
		}
	}
	exists := map[string]bool{}
	for _, machine := range all {
		exists[machine.Name] = true
	}
	for _, record := range RecordsOf(set.Annotations) {
		// One whose replacement exists is counted with that.
		if !replaced[record.Machine] && record.Since.After(cameUp) {
			c.add(record, record.Machine)
			if c.Pending == record.Machine && !exists[record.Machine] {
				c.PendingSince = record.Since
			}
		}
		replaced[record.Machine] = true
	}
	for _, machine := range all {
		record := RecordOf(machine)
		if record == nil || record.Available != nil || replaced[machine.Name] || !machine.DeletionTimestamp.IsZero() ||
			!record.Since.After(cameUp) {
			continue
		}
		if !machines.FailedHealthCheck(machine) {
			c.add(*record, machine.Name)
			continue
		}
		c.addFailed(*record, meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition))
	}
	return c.Retries
}

// lastCameUp is when a Machine came up last, as far as those that exist show it; of one that replaces none its creation is known alone.
func lastCameUp(all []*clusterv1.Machine) time.Time {
	var last time.Time
	for _, machine := range all {
		at := machine.CreationTimestamp.Time
		if record := RecordOf(machine); record != nil {
			if record.Available == nil {
				continue
			}
			at = *record.Available
		} else if !meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineAvailableCondition) {
			continue
		}
		if at.After(last) {
			last = at
		}
	}
	return last
}

// counting is Retries while they are counted.
type counting struct {
	Retries
	lastFailed time.Time
}

// add counts a replacement that has not failed yet.
func (c *counting) add(record Record, name string) {
	c.Made += record.Retry
	c.Failed += record.Retry
	if record.Retry > 0 {
		c.Pending, c.PendingSince = name, time.Time{}
	}
}

// addFailed counts one that has failed by the condition of its health check.
func (c *counting) addFailed(record Record, why *metav1.Condition) {
	c.Made += record.Retry
	c.Failed += record.Retry + 1
	c.SameWay = c.SameWay && (c.Reason == "" || why.Reason == c.Reason) && (record.Reason == why.Reason || record.Retry == 0)
	if c.Reason == "" || why.LastTransitionTime.After(c.lastFailed) {
		c.Reason, c.Message, c.lastFailed = why.Reason, why.Message, why.LastTransitionTime.Time
	}
}
