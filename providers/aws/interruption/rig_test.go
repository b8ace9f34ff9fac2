package interruption

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/clouds/aws/sqs"
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
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch,
			opts ...client.PatchOption) error {
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
