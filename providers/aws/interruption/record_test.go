package interruption

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
)

// TestWhatBecomesOfAMessage is the table of results, which decide whether a message is received again.
func TestWhatBecomesOfAMessage(t *testing.T) {
	interruption := func(age time.Duration) string {
		return message(
			"aws.ec2",
			detailInterruption,
			region,
			time.Date(2026, 11, 23, 10, 0, 30, 0, time.UTC).Add(-age).Format(time.RFC3339),
			instanceA,
		)
	}
	rebalance := message("aws.ec2", detailRebalance, region, at, instanceA)
	onDemand := func(m *infrav1.AWSMachine) { m.Spec.Spot = nil }
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "awsmachines"}, "m")
	deniedAsNotFound := apierrors.NewNotFound(schema.GroupResource{Resource: "awsmachines"}, "m")
	deniedAsNotFound.ErrStatus.Message = `admission webhook "x.example.com" denied the request: no`
	for name, test := range map[string]struct {
		body    string
		queued  time.Duration // how long ago it was sent
		change  func(*infrav1.AWSMachine)
		list    error
		refuse  error
		pending bool
		result  string
	}{
		"recorded":                         {body: interruption(0), result: resultRecorded},
		"of another source":                {body: message("aws.s3", detailInterruption, region, at, instanceA), result: resultIgnored},
		"malformed":                        {body: "{", result: resultMalformed},
		"just not too old":                 {body: interruption(staleAfter), result: resultRecorded},
		"too old":                          {body: interruption(staleAfter + time.Second), result: resultStale},
		"of a clock that is a minute fast": {body: interruption(-time.Minute), result: resultRecorded},
		"of the future":                    {body: interruption(-time.Minute - time.Second), result: resultStale},
		"the cache cannot be read":         {body: interruption(0), list: errors.New("no index"), result: resultRefused},
		"of no machine yet":                {body: message("aws.ec2", detailInterruption, region, at, "i-0c000000000000000"), queued: unknownFor - 1, result: resultWaiting},
		"of no machine":                    {body: message("aws.ec2", detailInterruption, region, at, "i-0c000000000000000"), queued: unknownFor, result: resultUnknown},
		"interruption of on-demand":        {body: interruption(0), change: onDemand, result: resultOnDemand},
		"interruptible by its launch": {body: interruption(0), result: resultRecorded, change: func(m *infrav1.AWSMachine) {
			onDemand(m)
			m.Status.Interruptible = ptr.To(true)
		}},
		"rebalance of on-demand": {body: rebalance, change: onDemand, result: resultRecorded},
		"of an object that is being deleted": {body: interruption(0), result: resultKnown, change: func(m *infrav1.AWSMachine) {
			m.DeletionTimestamp, m.Finalizers = ptr.To(metav1.NewTime(time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC))), []string{"test/f"}
		}},
		"refused":                            {body: interruption(0), refuse: errors.New("denied"), result: resultRefused},
		"denied as not found":                {body: interruption(0), refuse: deniedAsNotFound, result: resultRefused},
		"of an object that was just removed": {body: interruption(0), refuse: notFound, result: resultUnknown},
		"its Machine is not deleted yet":     {body: interruption(0), pending: true, result: resultPending},
		"it was removed before its Machine":  {body: interruption(0), pending: true, refuse: notFound, result: resultUnknown},
		"a rebalance waits for no deletion":  {body: rebalance, pending: true, result: resultRecorded},
	} {
		t.Run(name, func(t *testing.T) {
			change := test.change
			if change == nil {
				change = func(*infrav1.AWSMachine) {}
			}
			r := newRig(t, awsMachine("m", change))
			r.refuse = test.refuse
			r.Interrupted = func(client.Object, inframachine.Notice) bool { return !test.pending }
			inner := r.Client
			if test.list != nil {
				r.Client = interceptor.NewClient(inner.(client.WithWatch), interceptor.Funcs{
					List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
						return test.list
					},
				})
			}
			taken := r.take(t.Context(), test.body, r.clock.Now().Add(-test.queued))
			r.record(t.Context(), []*taking{taken})
			r.Expect(taken.result).To(Equal(test.result))
			r.Client = inner
			r.Expect(r.notice("m") != "").To(Equal(test.refuse == nil && (test.result == resultRecorded || test.result == resultPending)))
		})
	}
}

// TestTheIndexOfInstances has no entry for objects without an instance.
func TestTheIndexOfInstances(t *testing.T) {
	g := NewWithT(t)
	var index client.IndexerFunc
	g.Expect(IndexInstances(t.Context(), indexerFunc(func(f client.IndexerFunc) { index = f }))).To(Succeed())
	g.Expect(index(awsMachine("m"))).To(Equal([]string{instanceA}))
	g.Expect(index(awsMachine("m", func(m *infrav1.AWSMachine) { m.Spec.ProviderID = "" }))).To(BeEmpty())
	g.Expect(index(&infrav1.AWSMachineTemplate{})).To(BeEmpty())
}

// TestANoticeAfterOneThatIsRefused is written into the object as it was read, not as the refused write has left it.
func TestANoticeAfterOneThatIsRefused(t *testing.T) {
	r := newRig(t, awsMachine("m"))
	refused := 0
	inner := r.Client
	r.Client = interceptor.NewClient(inner.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if refused++; refused == 1 {
				return errors.New("denied")
			}
			return c.Patch(ctx, obj, p, opts...)
		},
	})
	first := r.take(t.Context(), message("aws.ec2", detailInterruption, region, at, instanceA), r.clock.Now())
	second := r.take(t.Context(), message("aws.ec2", detailRebalance, region, at, instanceA), r.clock.Now())
	r.record(t.Context(), []*taking{first, second})
	r.Expect([]string{first.result, second.result}).To(Equal([]string{resultRefused, resultRecorded}))
	r.Expect(r.notice("m")).To(ContainSubstring(string(inframachine.NoticeRebalance)))
}
