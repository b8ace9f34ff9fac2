package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kerrors "k8s.io/apimachinery/pkg/util/errors"

	"millwright.dev/contracts/controller/outcome"
)

var (
	errBroken = errors.New("broken")
	conflict  = apierrors.NewConflict(schema.GroupResource{Resource: "machines"}, "a", errors.New("changed"))
)

// steps returns steps that record their index and end with the given outcomes.
func steps(ran *[]int, ends ...outcome.Outcome) []outcome.Step[*[]int] {
	var list []outcome.Step[*[]int]
	for i, end := range ends {
		list = append(list, func(context.Context, *[]int) outcome.Outcome {
			*ran = append(*ran, i)
			return end
		})
	}
	return list
}

func TestRunners(t *testing.T) {
	tests := []struct {
		name             string
		ends             []outcome.Outcome
		inOrder          []int
		after            time.Duration
		finished, failed bool
	}{
		{"nothing to wait for", []outcome.Outcome{outcome.Continue(), outcome.Continue()}, []int{0, 1}, 0, true, false},
		{"the second waits", []outcome.Outcome{outcome.Continue(), outcome.Wait(), outcome.Continue()}, []int{0, 1}, 0, false, false},
		{"the first fails", []outcome.Outcome{outcome.FromError(errBroken), outcome.Continue()}, []int{0}, 0, false, true},
		{"a later look does not stop the run", []outcome.Outcome{outcome.ContinueAfter(time.Minute), outcome.Continue()}, []int{0, 1}, time.Minute, true, false},
		{"the earlier deadline holds", []outcome.Outcome{outcome.ContinueAfter(time.Minute), outcome.ContinueAfter(time.Second)}, []int{0, 1}, time.Second, true, false},
		{"the earlier deadline holds, whichever comes first", []outcome.Outcome{outcome.ContinueAfter(time.Second), outcome.ContinueAfter(time.Minute)}, []int{0, 1}, time.Second, true, false},
		{"waiting until a deadline stops the run", []outcome.Outcome{outcome.WaitFor(time.Minute), outcome.Continue()}, []int{0}, time.Minute, false, false},
		{"at once is not never", []outcome.Outcome{outcome.ContinueAfter(0), outcome.Continue()}, []int{0, 1}, time.Millisecond, true, false},
		{"failing with nil is no failure", []outcome.Outcome{outcome.FromError(nil), outcome.Continue()}, []int{0, 1}, 0, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			var ran []int
			got := outcome.InOrder(t.Context(), &ran, steps(&ran, test.ends...)...)
			g.Expect(ran).To(Equal(test.inOrder))
			g.Expect(got.Finished()).To(Equal(test.finished))
			g.Expect(got.Err() != nil).To(Equal(test.failed))
			g.Expect(got.After()).To(Equal(test.after))

			ran = nil
			got = outcome.All(t.Context(), &ran, steps(&ran, test.ends...)...)
			g.Expect(ran).To(HaveLen(len(test.ends)), "All runs every step")
			g.Expect(got.Finished()).To(Equal(test.finished))
		})
	}
}

func TestResult(t *testing.T) {
	g := NewWithT(t)
	result, err := outcome.WaitFor(-time.Second).Result()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(time.Millisecond), "a deadline in the past means at once")

	result, err = outcome.Wait().Result()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.IsZero()).To(BeTrue())

	_, err = outcome.FromError(errBroken).Result()
	g.Expect(err).To(MatchError(errBroken))

	result, err = outcome.FromError(kerrors.NewAggregate([]error{conflict, conflict})).Result()
	g.Expect(err).NotTo(HaveOccurred(), "to lose a race is no error")
	g.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Second)), "and the next attempt is soon")

	for _, both := range []outcome.Outcome{
		outcome.FromError(conflict).And(outcome.FromError(errBroken)), outcome.FromError(errBroken).And(outcome.FromError(conflict)),
	} {
		_, err = both.Result()
		g.Expect(err).To(MatchError(ContainSubstring("broken")), "a conflict hides no real failure")
	}
}

// TestTheOnlyFailureIsPassedOn: as it is, so that the caller can examine it.
func TestTheOnlyFailureIsPassedOn(t *testing.T) {
	g := NewWithT(t)
	g.Expect(outcome.FromError(conflict).And(outcome.Continue()).Err()).To(BeIdenticalTo(conflict))
	g.Expect(outcome.Wait().And(outcome.FromError(conflict)).Err()).To(BeIdenticalTo(conflict))
}

// TestResult_ConflictDeniedByWebhook_IsAFailure, so that it is logged, counted and retried ever less often.
func TestResult_ConflictDeniedByWebhook_IsAFailure(t *testing.T) {
	g := NewWithT(t)
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
		Message: `admission webhook "x.example.com" denied the request: no`,
	}}
	got, err := outcome.FromError(fmt.Errorf("patching: %w", denied)).Result()
	g.Expect(err).To(MatchError(ContainSubstring("denied the request")))
	g.Expect(got).To(BeZero())
}

// TestResult_DeadlineBeforeConflictRetry_Holds.
func TestResult_DeadlineBeforeConflictRetry_Holds(t *testing.T) {
	g := NewWithT(t)
	result, err := outcome.WaitFor(time.Millisecond).And(outcome.FromError(conflict)).Result()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(Equal(time.Millisecond))
}
