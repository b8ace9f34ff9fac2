package interruption

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/sqs"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/clouds/aws/sqs"
)

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
	r.Expect(api.left).To(And(BeNumerically(">", longPoll), BeNumerically("<=", longPoll+callTimeout)))
}

// deadlines is a queue that notes how long a call may take.
type deadlines struct {
	API
	left time.Duration
}

func (d *deadlines) ReceiveMessage(
	ctx context.Context,
	_ *sdk.ReceiveMessageInput,
	_ ...func(*sdk.Options),
) (*sdk.ReceiveMessageOutput, error) {
	if at, ok := ctx.Deadline(); ok {
		d.left = time.Until(at)
	}
	return nil, context.DeadlineExceeded
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
