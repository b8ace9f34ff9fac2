package outcome_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/outcome"
)

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// TestRacesThatAreLostWithoutEnd: the pauses grow, up to a bound, for that object alone, and begin again after any other result.
func TestRacesThatAreLostWithoutEnd(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	retries := &outcome.Retries{Clock: clock}
	lose := func(name string) time.Duration {
		result, err := retries.Result(request(name), outcome.FromError(conflict))
		g.Expect(err).NotTo(HaveOccurred())
		clock.SetTime(clock.Now().Add(result.RequeueAfter))
		return result.RequeueAfter
	}
	var pauses []time.Duration
	begun := clock.Now()
	for range 12 {
		pauses = append(pauses, lose("a"))
	}
	const ms, s = time.Millisecond, time.Second
	g.Expect(pauses).To(Equal([]time.Duration{
		500 * ms, 500 * ms, 500 * ms, s, 2 * s, 4 * s, 8 * s, 10 * s, 10 * s, 10 * s, 10 * s, 10 * s,
	}))
	g.Expect(clock.Now().Sub(begun)).To(BeNumerically(">", time.Minute), "twelve attempts instead of some 130")
	g.Expect(lose("b")).To(Equal(500*ms), "another object has lost none")
	g.Expect(lose("a")).To(Equal(10 * s))

	for name, end := range map[string]outcome.Outcome{
		"a success": outcome.Continue(), "a wait": outcome.WaitFor(time.Hour), "a failure": outcome.FromError(errBroken),
	} {
		for range 5 {
			lose(name)
		}
		result, err := retries.Result(request(name), end)
		wanted, failure := end.Result()
		g.Expect(result).To(Equal(wanted))
		g.Expect(fmt.Sprint(err)).To(Equal(fmt.Sprint(failure)))
		g.Expect(lose(name)).To(Equal(500*ms), "after %s", name)
	}

	for range 5 {
		lose("c")
	}
	clock.SetTime(clock.Now().Add(time.Minute))
	g.Expect(lose("c")).To(Equal(500*ms), "long ago is not in a row")
}

// TestADeadlineBeforeThePauseHolds, and a real failure beside a conflict is one.
func TestADeadlineBeforeThePauseHolds(t *testing.T) {
	g := NewWithT(t)
	retries := &outcome.Retries{}
	for range 10 {
		result, err := retries.Result(request("a"), outcome.WaitFor(time.Second).And(outcome.FromError(conflict)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(result.RequeueAfter).To(BeNumerically("<=", time.Second))
	}
	_, err := retries.Result(request("a"), outcome.FromError(errBroken).And(outcome.FromError(conflict)))
	g.Expect(err).To(MatchError(ContainSubstring("broken")))
}

// TestWhatAWebhookDeniesIsNoLostRace, though it says so: it fails, so that it is logged, counted and tried ever less often.
func TestWhatAWebhookDeniesIsNoLostRace(t *testing.T) {
	g := NewWithT(t)
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
		Message: `admission webhook "x.example.com" denied the request: no`,
	}}
	for _, result := range []func(outcome.Outcome) (ctrl.Result, error){
		outcome.Outcome.Result,
		func(o outcome.Outcome) (ctrl.Result, error) { return (&outcome.Retries{}).Result(request("a"), o) },
	} {
		got, err := result(outcome.FromError(fmt.Errorf("patching: %w", denied)))
		g.Expect(err).To(MatchError(ContainSubstring("denied the request")))
		g.Expect(got).To(BeZero())
	}
}

// TestNothingIsKeptOfObjectsThatAreGone: no other result than a conflict says so.
func TestNothingIsKeptOfObjectsThatAreGone(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	retries := &outcome.Retries{Clock: clock}
	for i := range 1000 {
		_, err := retries.Result(request(fmt.Sprint(i)), outcome.FromError(conflict))
		g.Expect(err).NotTo(HaveOccurred())
		clock.SetTime(clock.Now().Add(time.Second))
	}
	g.Expect(retries.Len()).To(BeNumerically("<=", 40))
}
