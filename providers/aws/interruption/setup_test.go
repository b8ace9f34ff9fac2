package interruption

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// TestSetupCutsEvents: the words of a webhook that refuses a notice may be longer than an event; the API server would drop that.
func TestSetupCutsEvents(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	added := &adder{recorder: &notes{}}
	o := &Options{Queues: []string{"https://sqs.eu-central-1.amazonaws.com/000000000000/q"}, Action: ActionReport}
	g.Expect(o.SetupWithManager(t.Context(), added, "aws", "", nil)).To(Succeed())
	g.Expect(added.receiver).NotTo(BeNil())
	added.receiver.Recorder.Eventf(nil, nil, "Warning", refusedEvent, "RecordNotice", "%s", strings.Repeat("x", 5000))
	g.Expect(added.recorder.last).To(And(HavePrefix("xxx"), WithTransform(func(s string) int { return len(s) }, BeNumerically("<=", 1024))))
}

// adder is a manager that keeps the Receiver that is added to it.
type adder struct {
	ctrl.Manager
	recorder *notes
	receiver *Receiver
}

func (a *adder) GetClient() client.Client { return nil }

func (a *adder) GetFieldIndexer() client.FieldIndexer { return a }

func (a *adder) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func (a *adder) GetEventRecorder(string) events.EventRecorder { return a.recorder }

func (a *adder) Add(runnable manager.Runnable) error {
	a.receiver, _ = runnable.(*Receiver)
	return nil
}

// notes is a recorder that keeps the last note.
type notes struct{ last string }

func (n *notes) Eventf(_, _ runtime.Object, _, _, _, note string, args ...any) {
	n.last = fmt.Sprintf(note, args...)
}
