package inframachine

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/shortage"
)

// karpenter-aws 1556: the condition has the quota in the cloud's words, the types that were tried, and what comes next.
func TestExplain_QuotaExceeded_NamesTypesAndRemedy(t *testing.T) {
	quota := driver.NewQuotaError("RunInstances", "VcpuLimitExceeded", errors.New("the limit is 5."))
	capacity := driver.NewCapacityError("RunInstances", "InsufficientInstanceCapacity", errors.New("no room."))
	over := []shortage.TypeOverQuota{{InstanceType: "m5", Words: "VcpuLimitExceeded: the limit is 5."}, {InstanceType: "c5", Words: "x"}}
	for name, c := range map[string]struct {
		err    error
		reason string
		want   string
	}{
		"another type is left": {
			&shortageError{err: quota, remedy: quotaRemedy(true, []string{"m5", "c5"})}, driverv1.QuotaExceededReason,
			"RunInstances: VcpuLimitExceeded: the limit is 5. Now the other instance types that the spec allows are tried",
		},
		"another place is left": {
			&shortageError{err: quota, remedy: quotaRemedy(true, []string{"m5"})}, driverv1.QuotaExceededReason,
			"RunInstances: VcpuLimitExceeded: the limit is 5. Tried again elsewhere",
		},
		"no type is left": {
			&shortageError{err: quota, others: othersOverQuota("c5", true, over), remedy: quotaRemedy(false, []string{"m5", "c5"})},
			driverv1.QuotaExceededReason,
			"RunInstances: VcpuLimitExceeded: the limit is 5. Over quota as well: m5. All instance types that the spec allows were tried: " +
				"m5, c5. Retried slowly; raise the quota or free some of it",
		},
		"one type alone": {
			&shortageError{err: quota, others: othersOverQuota("m5", true, over[:1]), remedy: quotaRemedy(false, []string{"m5"})},
			driverv1.QuotaExceededReason,
			"RunInstances: VcpuLimitExceeded: the limit is 5. Retried slowly; raise the quota or free some of it, or allow other instance types",
		},
		"capacity, and quotas of others": {
			&shortageError{err: capacity, others: othersOverQuota("g5", false, over)}, driverv1.InsufficientCapacityReason,
			"RunInstances: InsufficientInstanceCapacity: no room. Over quota as well: m5 (VcpuLimitExceeded: the limit is 5), c5. " +
				"Tried again, where the spec allows it in another zone or with another instance type: allow more of them",
		},
		"all types alike": {
			&driver.Error{Class: driver.ClassQuota, Code: "VolumeLimitExceeded", AllTypes: true, Err: errors.New("too many")},
			driverv1.QuotaExceededReason, "VolumeLimitExceeded: too many. Retried slowly; raise the quota or free some of it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			why := explain(c.err)
			NewWithT(t).Expect(why.message).To(Equal(c.want))
			NewWithT(t).Expect(why.reason).To(Equal(c.reason))
		})
	}
}
