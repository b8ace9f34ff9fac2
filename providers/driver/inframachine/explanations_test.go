package inframachine

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

func TestExplain(t *testing.T) {
	for class, reason := range map[driver.Class]string{
		driver.ClassCapacity: "InsufficientCapacity", driver.ClassQuota: "QuotaExceeded", driver.ClassThrottle: "Throttled",
		driver.ClassAuth: "Unauthorized", driver.ClassTerminal: "InvalidConfiguration", driver.ClassNotFound: "InstanceNotVisible",
		driver.ClassUnresolved: "UnresolvedReference", driver.ClassRefused: "CloudError", driver.ClassUnknown: "CloudError",
	} {
		why := explain(&driver.Error{Class: class, Operation: "Run", Code: "Code", Err: errors.New("The cause.")})
		g := NewWithT(t)
		g.Expect(why.reason).To(Equal(reason))
		g.Expect(why.message).To(HavePrefix("Run: Code: The cause. "), "one full stop, then what to do")
	}
	NewWithT(t).Expect(explain(nil)).To(BeNil())
	NewWithT(t).Expect(explain(errors.New("x")).reason).To(Equal("CloudError"))
}

// Only a launch has a token, and only one whose answer was lost is repeated with it.
func TestOnlyALaunchOfUnknownOutcomeSpeaksOfItsToken(t *testing.T) {
	g := NewWithT(t)
	lost := driver.NewUnknownError("Run", "C", errors.New("x"))
	g.Expect(explainLaunch(lost).message).To(ContainSubstring("may have taken effect; tried again with the same token"))
	g.Expect(explain(lost).message).NotTo(ContainSubstring("token"))
	g.Expect(explainLaunch(driver.NewRefusedError("Run", "C", errors.New("x"))).message).To(ContainSubstring("had no effect"))
	g.Expect(explainLaunch(driver.NewRefusedError("Run", "C", errors.New("x"))).message).NotTo(ContainSubstring("token"))
	g.Expect(explainLaunch(&foreignError{}).reason).To(Equal("ForeignInstance"))
}

func TestExplainDeletion(t *testing.T) {
	g := NewWithT(t)
	g.Expect(explainDeletion(driver.NewTerminalError("T", "C", errors.New("x"))).reason).To(Equal("DeletionBlocked"))
	g.Expect(explainDeletion(driver.NewThrottleError("T", "C", 0, errors.New("x"))).reason).To(Equal("Throttled"))
	auth := driver.NewAuthError("T", "C", errors.New("x"))
	for _, why := range []*explanation{explainDeletion(auth), explainDependants(auth)} {
		g.Expect(why.reason).To(Equal("Unauthorized"))
		g.Expect(why.message).
			To(And(ContainSubstring("check the permissions"), ContainSubstring("remove the finalizer "+Finalizer)), "there is a way out")
	}
	g.Expect(explainDependants(driver.NewUnknownError("", "", &dependantsError{[]string{"volume v"}})).message).
		To(ContainSubstring("volume v"))
}
