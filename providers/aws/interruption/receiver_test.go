package interruption

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
)

const (
	instanceA = "i-0a00000000000000a"
	region    = "us-east-1"
)

func TestInterruptionIsRecorded(t *testing.T) {
	r := newRig(t, awsMachine("m"), awsMachine("other", func(m *infrav1.AWSMachine) { m.Spec.ProviderID = "aws:///us-east-1a/i-0b" }),
		awsMachine("elsewhere", func(m *infrav1.AWSMachine) { m.Spec.Region = "eu-west-1" }))
	r.send(detailRebalance, 20*time.Second)
	r.receiveOnce()
	r.Expect(r.notice("m")).
		To(MatchJSON(`{"kind":"Rebalance","providerID":"aws:///us-east-1a/` + instanceA + `","at":"2026-11-23T10:00:10Z"}`))
	r.send(detailInterruption, 0)
	r.receiveOnce()
	r.Expect(r.notice("m")).
		To(MatchJSON(`{"kind":"Interruption","providerID":"aws:///us-east-1a/` + instanceA +
			`","at":"2026-11-23T10:00:30Z","deadline":"2026-11-23T10:02:30Z"}`))
	r.Expect(r.notice("other")).To(BeEmpty())
	r.Expect(r.notice("elsewhere")).To(BeEmpty())
	r.Expect(r.queue.Left()).To(BeZero())
}

// What is of no use is deleted, changes nothing, and does not stop what comes after it.
func TestMessagesThatAreNotUsed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*infrav1.AWSMachine)
		body   string
		kind   string
		age    time.Duration
		left   int
	}{
		"malformed":                     {body: "{"},
		"another kind":                  {body: message("aws.ec2", "EC2 Instance State-change Notification", region, at, instanceA)},
		"of no machine here":            {body: message("aws.ec2", detailInterruption, region, at, "i-0c000000000000000"), age: 2 * time.Minute},
		"of no machine here yet":        {body: message("aws.ec2", detailInterruption, region, at, "i-0c000000000000000"), left: 1},
		"of another region":             {body: message("aws.ec2", detailInterruption, "eu-west-1", at, instanceA), age: 2 * time.Minute},
		"from the future":               {kind: detailInterruption, age: -time.Hour},
		"too old":                       {kind: detailInterruption, age: time.Hour},
		"interruption of no spot":       {kind: detailInterruption, change: func(m *infrav1.AWSMachine) { m.Spec.Spot = nil }},
		"not of this manager":           {kind: detailInterruption, age: 2 * time.Minute, change: func(m *infrav1.AWSMachine) { m.Labels = map[string]string{clusterv1.WatchLabel: "b"} }},
		"of an object without instance": {kind: detailInterruption, age: 2 * time.Minute, change: func(m *infrav1.AWSMachine) { m.Spec.ProviderID = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			m := awsMachine("m")
			if test.change != nil {
				test.change(m)
			}
			r := newRig(t, m)
			if m.Labels != nil {
				r.WatchFilter = "a"
			}
			if test.kind != "" {
				r.send(test.kind, test.age)
			} else {
				r.sendBody(test.body, test.age)
			}
			r.receiveOnce()
			r.Expect(r.notice("m")).To(BeEmpty())
			r.Expect(r.queue.Left()).To(Equal(test.left))
		})
	}
}

// A queue delivers more than once, and a process may end between the write and the deletion.
func TestAMessageThatComesAgain(t *testing.T) {
	r := newRig(t, awsMachine("m"))
	r.send(detailInterruption, 0)
	r.Expect(r.takeOne(message("aws.ec2", detailInterruption, region, at, instanceA))).To(Equal(resultRecorded))
	written := r.notice("m")
	r.Expect(r.takeOne(message("aws.ec2", detailInterruption, region, at, instanceA))).To(Equal(resultKnown))
	r.Expect(r.takeOne(message("aws.ec2", detailRebalance, region, "2026-11-23T10:00:20Z", instanceA))).To(Equal(resultKnown))
	r.Expect(r.notice("m")).To(Equal(written), "a recommendation says less than a warning")
}

// A notice that the API server refuses is reported and received again until it is too old.
func TestANoticeThatIsRefused(t *testing.T) {
	r := newRig(t, awsMachine("m"))
	r.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "awsmachines"}, "m", errors.New("denied by policy"))
	r.send(detailInterruption, 0)
	r.receiveOnce()
	r.Expect(r.queue.Left()).To(Equal(1))
	r.Expect(<-r.recorder.Events).To(And(ContainSubstring(refusedEvent), ContainSubstring("denied by policy")))
	r.refuse = nil
	r.queue.Redeliver()
	r.receiveOnce()
	r.Expect(r.notice("m")).NotTo(BeEmpty())
	r.Expect(r.queue.Left()).To(BeZero())
}

// Two objects claim the instance; whose it is, the reconciler knows. One that cannot be written is not forgotten because of the other.
func TestTwoObjectsClaimTheInstance(t *testing.T) {
	r := newRig(t, awsMachine("a"), awsMachine("b"))
	r.send(detailInterruption, 0)
	r.receiveOnce()
	r.Expect(r.notice("a")).NotTo(BeEmpty())
	r.Expect(r.notice("b")).To(Equal(r.notice("a")))
	r.Expect(worse(resultRefused, resultRecorded)).To(Equal(resultRefused))
	r.Expect(worse(resultWaiting, resultRefused)).To(Equal(resultRefused))
}

// A queue that is missing, denied or down is asked again after growing pauses, and ends nothing.
// What is written last would replace the notice that counts.
func TestTwoMessagesOfOneAnswerAboutOneInstance(t *testing.T) {
	for _, order := range [][]string{{detailInterruption, detailRebalance}, {detailRebalance, detailInterruption}} {
		r := newRig(t, awsMachine("m"))
		for _, kind := range order {
			r.send(kind, 0)
		}
		r.receiveOnce()
		r.Expect(r.notice("m")).To(ContainSubstring(string(inframachine.NoticeInterruption)), "%v", order)
	}
}

// A message stays in the queue until nothing more is to be done about the Machine, whether the notice can be written or not.
func TestAMessageStaysUntilTheMachineIsDeleted(t *testing.T) {
	r := newRig(t, awsMachine("m"))
	var notified []inframachine.Notice
	settled := false
	r.Interrupted = func(obj client.Object, n inframachine.Notice) bool {
		r.Expect(obj.GetName()).To(Equal("m"))
		notified = append(notified, n)
		return settled
	}
	r.send(detailRebalance, 10*time.Second)
	r.receiveOnce()
	r.Expect(notified).To(BeEmpty(), "a recommendation ends nothing")
	r.Expect(r.queue.Left()).To(BeZero())

	r.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "awsmachines"}, "m", errors.New("denied by policy"))
	r.send(detailInterruption, 0)
	r.receiveOnce()
	r.Expect(notified).To(HaveLen(1))
	r.refuse = nil
	r.queue.Redeliver()
	r.receiveOnce()
	r.Expect(r.notice("m")).NotTo(BeEmpty())
	r.Expect(r.queue.Left()).To(Equal(1), "the Machine is not deleted yet")
	settled = true
	r.queue.Redeliver()
	r.receiveOnce()
	r.Expect(notified).To(HaveLen(3))
	r.Expect(notified[2].Deadline.Sub(notified[2].At)).To(Equal(2 * time.Minute))
	r.Expect(r.queue.Left()).To(BeZero())
}

// When a zone runs out of spot capacity, many are taken back at once. A webhook that hangs must not cost those behind the first their two
// minutes.
func TestNoMessageWaitsForTheNoticeOfAnother(t *testing.T) {
	var objects []client.Object
	for i := range 10 {
		objects = append(
			objects,
			awsMachine(fmt.Sprint(i), func(m *infrav1.AWSMachine) { m.Spec.ProviderID = fmt.Sprintf("aws:///us-east-1a/i-0a00000%d", i) }),
		)
	}
	r := newRig(t, objects...)
	r.hang = make(chan struct{})
	var notified atomic.Int32
	r.Interrupted = func(client.Object, inframachine.Notice) bool { return notified.Add(1) > 0 }
	for i := range 10 {
		r.sendBody(message("aws.ec2", detailInterruption, region, r.clock.Now().Format(time.RFC3339), fmt.Sprintf("i-0a00000%d", i)), 0)
	}
	received := make(chan error, 1)
	go func() { _, err := r.receive(t.Context()); received <- err }()
	r.Eventually(notified.Load).Should(BeEquivalentTo(10), "all are notified before the first notice is written")
	r.Expect(r.queue.Left()).To(Equal(10))
	close(r.hang)
	r.Eventually(received).Should(Receive(BeNil()))
	r.Expect(r.queue.Left()).To(BeZero())
	for i := range 10 {
		r.Expect(r.notice(fmt.Sprint(i))).NotTo(BeEmpty())
	}
}

// Messages that may be received and not deleted come again. The others are received at the same pace.
func TestMessagesThatCannotBeDeleted(t *testing.T) {
	r := newRig(t, awsMachine("m"))
	denied := &undeletable{API: r.Receiver.Queue}
	r.Receiver.Queue = denied
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	for range 8 {
		n := denied.calls.Load() // Before, since the message may be received at once; it comes again much later.
		r.sendBody("{}", 0)
		r.Eventually(func() int32 {
			if r.clock.HasWaiters() {
				r.clock.Step(idle)
			}
			return denied.calls.Load()
		}).Should(BeNumerically(">", n))
	}
	r.Expect(r.clock.Since(time.Date(2026, 11, 23, 10, 0, 30, 0, time.UTC))).To(BeNumerically("<", longestPause), "no growing pauses")
	cancel()
	r.Eventually(ended).Should(Receive(BeNil()))
}

// undeletable is a queue whose policy forgets sqs:DeleteMessage.
type undeletable struct {
	API
	calls atomic.Int32
}

func (u *undeletable) DeleteMessageBatch(
	context.Context,
	*sdk.DeleteMessageBatchInput,
	...func(*sdk.Options),
) (*sdk.DeleteMessageBatchOutput, error) {
	u.calls.Add(1)
	return nil, errors.New("AccessDenied")
}

func TestWorse(t *testing.T) {
	for _, test := range [][3]string{
		{resultWaiting, resultRecorded, resultRecorded}, {resultUnknown, resultPending, resultPending}, {resultPending, resultKnown, resultPending},
		{resultPending, resultRefused, resultRefused}, {resultRefused, resultRecorded, resultRefused}, {resultKnown, resultUnknown, resultUnknown},
	} {
		NewWithT(t).Expect(worse(test[0], test[1])).To(Equal(test[2]), "%v", test)
	}
}
