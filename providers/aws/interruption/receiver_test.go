package interruption

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/clouds/aws/sqs"
)

const (
	instanceA = "i-0a00000000000000a"
	region    = "us-east-1"
)

// rig is a Receiver with a simulated queue and objects in memory.
type rig struct {
	*GomegaWithT
	*Receiver
	t        *testing.T
	queue    *sqs.Queue
	clock    *clocktesting.FakeClock
	recorder *events.FakeRecorder
	// refuse is what the API server answers to patches; hang, if not nil, keeps them without an answer until it is closed.
	refuse error
	hang   chan struct{}
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	r := &rig{GomegaWithT: NewWithT(t), t: t, queue: &sqs.Queue{}, recorder: events.NewFakeRecorder(10),
		clock: clocktesting.NewFakeClock(time.Date(2026, 11, 23, 10, 0, 30, 0, time.UTC))}
	r.Expect(infrav1.AddToScheme(scheme)).To(Succeed())
	var index client.IndexerFunc
	r.Expect(IndexInstances(t.Context(), indexerFunc(func(f client.IndexerFunc) { index = f }))).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&infrav1.AWSMachine{}, instanceField, index).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			if r.hang != nil {
				select {
				case <-r.hang:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if r.refuse != nil {
				return r.refuse
			}
			return c.Patch(ctx, obj, p, opts...)
		}}).Build()
	server := httptest.NewServer(r.queue)
	t.Cleanup(server.Close)
	api := sdk.NewFromConfig(aws.Config{
		Region: region, BaseEndpoint: aws.String(server.URL), HTTPClient: simclient.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", "secret", ""),
	})
	r.Receiver = &Receiver{URL: server.URL + "/000000000000/q", Queue: api, Client: c, Recorder: r.recorder, Clock: r.clock}
	return r
}

type indexerFunc func(client.IndexerFunc)

func (f indexerFunc) IndexField(_ context.Context, _ client.Object, _ string, index client.IndexerFunc) error {
	f(index)
	return nil
}

func awsMachine(name string, change ...func(*infrav1.AWSMachine)) *infrav1.AWSMachine {
	m := &infrav1.AWSMachine{}
	m.Namespace, m.Name = "ns", name
	m.Spec.Region, m.Spec.ProviderID, m.Spec.Spot = region, "aws:///us-east-1a/"+instanceA, &infrav1.Spot{}
	for _, c := range change {
		c(m)
	}
	return m
}

// send sends an event about instanceA that is as old as its message.
func (r *rig) send(kind string, age time.Duration) {
	r.sendBody(message("aws.ec2", kind, region, r.clock.Now().Add(-age).Format(time.RFC3339), instanceA), age)
}

func (r *rig) sendBody(body string, age time.Duration) { r.queue.Send(body, r.clock.Now().Add(-age)) }

// receiveOnce takes what is in the queue.
func (r *rig) receiveOnce() {
	r.t.Helper()
	some, err := r.receive(r.t.Context())
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(some).To(BeTrue())
}

// takeOne takes one message that was just sent.
func (r *rig) takeOne(body string) string {
	t := r.take(r.t.Context(), body, r.clock.Now())
	r.record(r.t.Context(), []*taking{t})
	return t.result
}

func (r *rig) notice(name string) string {
	m := &infrav1.AWSMachine{}
	r.Expect(r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m)).To(Succeed())
	return m.Annotations[inframachine.NoticeAnnotation]
}

func TestInterruptionIsRecorded(t *testing.T) {
	r := newRig(t, awsMachine("m"), awsMachine("other", func(m *infrav1.AWSMachine) { m.Spec.ProviderID = "aws:///us-east-1a/i-0b" }),
		awsMachine("elsewhere", func(m *infrav1.AWSMachine) { m.Spec.Region = "eu-west-1" }))
	r.send(detailRebalance, 20*time.Second)
	r.receiveOnce()
	r.Expect(r.notice("m")).To(MatchJSON(`{"kind":"Rebalance","providerID":"aws:///us-east-1a/` + instanceA + `","at":"2026-11-23T10:00:10Z"}`))
	r.send(detailInterruption, 0)
	r.receiveOnce()
	r.Expect(r.notice("m")).To(MatchJSON(`{"kind":"Interruption","providerID":"aws:///us-east-1a/` + instanceA + `","at":"2026-11-23T10:00:30Z","deadline":"2026-11-23T10:02:30Z"}`))
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
		"of nobody here":                {body: message("aws.ec2", detailInterruption, region, at, "i-0c000000000000000"), age: 2 * time.Minute},
		"of nobody here yet":            {body: message("aws.ec2", detailInterruption, region, at, "i-0c000000000000000"), left: 1},
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
	r.Expect(<-r.recorder.Events).To(And(ContainSubstring(eventRefused), ContainSubstring("denied by policy")))
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

func TestAQueueThatFails(t *testing.T) {
	r := newRig(t, awsMachine("m"))
	r.queue.Fail(&sqs.Failure{Status: http.StatusBadRequest, Code: "QueueDoesNotExist", Message: "The specified queue does not exist."})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	calls := func() int { return r.queue.Calls("ReceiveMessage") }
	for n, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		r.Eventually(r.clock.HasWaiters).Should(BeTrue())
		r.Expect(calls()).To(Equal(n + 1))
		r.clock.Step(pause - time.Millisecond)
		r.Expect(r.clock.HasWaiters()).To(BeTrue(), "it pauses")
		r.clock.Step(time.Millisecond)
		r.Eventually(calls).Should(Equal(n + 2))
	}
	r.queue.Fail(nil)
	r.Eventually(r.clock.HasWaiters).Should(BeTrue())
	r.clock.Step(longestPause)
	r.send(detailInterruption, 0)
	r.Eventually(func() string { return r.notice("m") }).ShouldNot(BeEmpty())
	cancel()
	r.Eventually(ended).Should(Receive(BeNil()))
}

// A queue that does not answer holds the Receiver for its time at most, and no longer than the process runs.
func TestAQueueThatHangs(t *testing.T) {
	r := newRig(t)
	release := r.queue.Hang()
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Start(ctx) }()
	r.Eventually(func() int { return r.queue.Calls("ReceiveMessage") }).Should(Equal(1))
	cancel()
	r.Eventually(ended).Should(Receive(BeNil()))

	api := &deadlines{}
	r.Receiver.Queue = api
	_, err := r.receive(t.Context())
	r.Expect(err).To(HaveOccurred())
	r.Expect(api.left).To(BeNumerically("~", longPoll+callTimeout, time.Second))
}

// deadlines is a queue that notes how long a call may take.
type deadlines struct {
	API
	left time.Duration
}

func (d *deadlines) ReceiveMessage(ctx context.Context, _ *sdk.ReceiveMessageInput, _ ...func(*sdk.Options)) (*sdk.ReceiveMessageOutput, error) {
	if at, ok := ctx.Deadline(); ok {
		d.left = time.Until(at)
	}
	return nil, context.DeadlineExceeded
}

// A message stays in the queue until nothing more is to be done about the Machine, whether the notice can be written or not.
func TestAMessageStaysUntilTheMachineIsDeleted(t *testing.T) {
	r := newRig(t, awsMachine("m"))
	var told []inframachine.Notice
	settled := false
	r.Interrupted = func(obj client.Object, n inframachine.Notice) bool {
		r.Expect(obj.GetName()).To(Equal("m"))
		told = append(told, n)
		return settled
	}
	r.send(detailRebalance, 10*time.Second)
	r.receiveOnce()
	r.Expect(told).To(BeEmpty(), "a recommendation ends nothing")
	r.Expect(r.queue.Left()).To(BeZero())

	r.refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "awsmachines"}, "m", errors.New("denied by policy"))
	r.send(detailInterruption, 0)
	r.receiveOnce()
	r.Expect(told).To(HaveLen(1))
	r.refuse = nil
	r.queue.Redeliver()
	r.receiveOnce()
	r.Expect(r.notice("m")).NotTo(BeEmpty())
	r.Expect(r.queue.Left()).To(Equal(1), "the Machine is not deleted yet")
	settled = true
	r.queue.Redeliver()
	r.receiveOnce()
	r.Expect(told).To(HaveLen(3))
	r.Expect(told[2].Deadline.Sub(told[2].At)).To(Equal(2 * time.Minute))
	r.Expect(r.queue.Left()).To(BeZero())
}

// When a zone runs out of spot capacity, many are taken back at once. A webhook that hangs must not cost those behind the first their two
// minutes.
func TestNoMessageWaitsForTheNoticeOfAnother(t *testing.T) {
	var objects []client.Object
	for i := range 10 {
		objects = append(objects, awsMachine(fmt.Sprint(i), func(m *infrav1.AWSMachine) { m.Spec.ProviderID = fmt.Sprintf("aws:///us-east-1a/i-0a00000%d", i) }))
	}
	r := newRig(t, objects...)
	r.hang = make(chan struct{})
	var told atomic.Int32
	r.Interrupted = func(client.Object, inframachine.Notice) bool { return told.Add(1) > 0 }
	for i := range 10 {
		r.sendBody(message("aws.ec2", detailInterruption, region, r.clock.Now().Format(time.RFC3339), fmt.Sprintf("i-0a00000%d", i)), 0)
	}
	received := make(chan error, 1)
	go func() { _, err := r.receive(t.Context()); received <- err }()
	r.Eventually(told.Load).Should(BeEquivalentTo(10), "all are told before the first notice is written")
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
		r.sendBody("{}", 0)
		n := denied.calls.Load()
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

func (u *undeletable) DeleteMessageBatch(context.Context, *sdk.DeleteMessageBatchInput, ...func(*sdk.Options)) (*sdk.DeleteMessageBatchOutput, error) {
	u.calls.Add(1)
	return nil, errors.New("AccessDenied")
}

// An answer that ends in the middle, or is none of SQS, is a failure like any other, and nothing of it is used.
func TestAQueueThatAnswersHalf(t *testing.T) {
	for name, answer := range map[string]string{"half": `{"Messages":[{"MessageId":"1","Body":"`, "another protocol": `<html>proxy</html>`} {
		r := newRig(t, awsMachine("m"))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(answer)+10))
			_, _ = w.Write([]byte(answer))
		}))
		r.Receiver.Queue = sdk.NewFromConfig(aws.Config{Region: region, BaseEndpoint: aws.String(server.URL), HTTPClient: simclient.HTTPClient(),
			Credentials: credentials.NewStaticCredentialsProvider("AKIATEST", "secret", "")})
		_, err := r.receive(t.Context())
		r.Expect(err).To(HaveOccurred(), name)
		r.Expect(r.notice("m")).To(BeEmpty())
		server.Close()
	}
}

func TestWorse(t *testing.T) {
	for _, test := range [][3]string{
		{resultWaiting, resultRecorded, resultRecorded}, {resultUnknown, resultPending, resultPending}, {resultPending, resultKnown, resultPending},
		{resultPending, resultRefused, resultRefused}, {resultRefused, resultRecorded, resultRefused}, {resultKnown, resultUnknown, resultUnknown},
	} {
		NewWithT(t).Expect(worse(test[0], test[1])).To(Equal(test[2]), "%v", test)
	}
}
