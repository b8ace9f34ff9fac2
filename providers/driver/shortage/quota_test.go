package shortage

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

// karpenter-aws 1556, 5789: a quota is remembered for the type and market, in the cloud's words, and forgotten as other shortages are.
func TestOverQuota_ReportedTypes_InTheOrderOfTheCandidates(t *testing.T) {
	r := newRig(t)
	vcpu := driver.NewQuotaError("Run", "Vcpu", errors.New("the limit is 5"))
	candidates := []driver.Candidate{candidate("g5", "b1", ""), candidate("m5", "b1", ""), candidate("m5", "a1", ""), candidate("p3",
		"a1", "")}
	r.Report("r", candidate("p3", "a1", ""), vcpu)
	r.Report("r", candidate("m5", "a1", ""), vcpu)
	r.Report("r", candidate("g5", "a1", "spot"), vcpu)
	r.Report("elsewhere", candidate("g5", "a1", ""), vcpu)
	r.Report("r", candidate("g5", "b1", ""), lacking(false))
	words := "Run: Vcpu: the limit is 5"
	r.Expect(r.OverQuota("r", candidates)).To(Equal([]TypeOverQuota{{"m5", words}, {"p3", words}}))
	r.Expect(r.refusals).To(HaveLen(1), "a quota is no lack of capacity")
	r.passes(DefaultTTL)
	r.Expect(r.OverQuota("r", candidates)).To(BeEmpty())
	r.Expect(r.quotas).To(BeEmpty())
}
