package driver

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestClasses(t *testing.T) {
	cause := errors.New("cause")
	for _, test := range []struct {
		err   error
		class Class
		is    func(error) bool
	}{
		{NewCapacityError("Run", "C", cause), ClassCapacity, IsCapacity},
		{NewQuotaError("Run", "C", cause), ClassQuota, IsQuota},
		{NewThrottleError("Run", "C", time.Second, cause), ClassThrottle, IsThrottle},
		{NewAuthError("Run", "C", cause), ClassAuth, IsAuth},
		{NewTerminalError("Run", "C", cause), ClassTerminal, IsTerminal},
		{NewUnresolvedError("Run", "C", cause), ClassUnresolved, IsUnresolved},
		{NewNotFoundError("Run", "C", cause), ClassNotFound, IsNotFound},
		{NewRefusedError("Run", "C", cause), ClassRefused, IsRefused},
		{NewUnknownError("Run", "C", cause), ClassUnknown, IsUnknown},
	} {
		t.Run(string(test.class), func(t *testing.T) {
			g := NewWithT(t)
			for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
				g.Expect(ClassOf(err)).To(Equal(test.class))
				g.Expect(test.is(err)).To(BeTrue())
				g.Expect(err).To(MatchError(cause))
				g.Expect(err.Error()).To(HaveSuffix("Run: C: cause"))
			}
			g.Expect(test.is(NewQuotaError("", "", cause))).To(Equal(test.class == ClassQuota))
		})
	}
}

func TestErrorsWithoutAClass(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ClassOf(nil)).To(BeEmpty())
	g.Expect(ClassOf(errors.New("x"))).To(Equal(ClassUnknown), "it may have taken effect")
	g.Expect(IsUnknown(nil)).To(BeFalse())
	g.Expect(IgnoreNotFound(nil)).To(Succeed())
	g.Expect(IgnoreNotFound(NewNotFoundError("", "", errors.New("x")))).To(Succeed())
	g.Expect(IgnoreNotFound(NewAuthError("", "", errors.New("x")))).NotTo(Succeed())
	g.Expect(RetryAfterOf(fmt.Errorf("w: %w", NewThrottleError("", "", time.Minute, errors.New("x"))))).To(Equal(time.Minute))
	g.Expect(RetryAfterOf(errors.New("x"))).To(BeZero())
}

func TestHandleMatches(t *testing.T) {
	i := Instance{ProviderID: "p", Token: "t"}
	for _, test := range []struct {
		handle Handle
		want   bool
	}{
		{Handle{ProviderID: "p"}, true},
		{Handle{ProviderID: "p", Token: "other"}, true},
		{Handle{ProviderID: "other", Token: "t"}, false},
		{Handle{Token: "t"}, true},
		{Handle{Token: "other"}, false},
		{Handle{}, false},
	} {
		NewWithT(t).Expect(test.handle.Matches(i)).To(Equal(test.want), "%+v", test.handle)
	}
	NewWithT(t).Expect(Handle{}.Matches(Instance{})).To(BeFalse(), "nothing is found by nothing")
}

func TestMessages(t *testing.T) {
	g := NewWithT(t)
	cause := errors.New("cause")
	g.Expect(NewQuotaError("Run", "C", cause)).To(MatchError("Run: C: cause"))
	g.Expect(NewQuotaError("Run", "", cause)).To(MatchError("Run: cause"))
	g.Expect(NewQuotaError("", "", cause)).To(MatchError("cause"))
}

// A call that only reads has no effect to be uncertain about.
func TestALostAnswerOfACallThatReads(t *testing.T) {
	g := NewWithT(t)
	cause := errors.New("cause")
	g.Expect(WithoutEffect(nil)).To(Succeed())
	for _, err := range []error{cause, NewUnknownError("Describe", "C", cause),
		fmt.Errorf("wrapped: %w", NewUnknownError("Describe", "C", cause))} {
		g.Expect(IsRefused(WithoutEffect(err))).To(BeTrue())
		g.Expect(WithoutEffect(err)).To(MatchError(cause))
	}
	quota := NewQuotaError("Describe", "C", cause)
	g.Expect(WithoutEffect(quota)).To(BeIdenticalTo(quota))
}
