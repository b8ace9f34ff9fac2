package events_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clientevents "k8s.io/client-go/tools/events"

	"millwright.dev/contracts/controller/events"
)

func TestPending(t *testing.T) {
	g := NewWithT(t)
	recorder := clientevents.NewFakeRecorder(10)
	var pending events.Pending
	g.Expect(pending.Empty()).To(BeTrue())
	pending.Normal("Launched", "Launch", "instance %s", "i-1")
	pending.Warning("Failed", "Launch", "%s", "100% of it")
	pending.About(&corev1.Node{}, corev1.EventTypeNormal, "Linked", "Link", "%s", strings.Repeat("ü", events.MaxNote))
	g.Expect(recorder.Events).To(BeEmpty(), "nothing is recorded before the write")
	g.Expect(pending.Empty()).To(BeFalse())

	pending.Record(recorder, &corev1.Pod{})
	g.Expect(<-recorder.Events).To(Equal("Normal Launched instance i-1"))
	g.Expect(<-recorder.Events).To(HavePrefix("Warning Failed 100%"))
	g.Expect(len(<-recorder.Events)).To(BeNumerically("<=", len("Normal Linked ")+events.MaxNote))

	pending.Record(recorder, &corev1.Pod{})
	g.Expect(recorder.Events).To(BeEmpty(), "each event is recorded once")
}

func TestPendingAboutAnother(t *testing.T) {
	g := NewWithT(t)
	recorder, node := &kept{}, &corev1.Node{}
	var pending events.Pending
	pending.About(node, corev1.EventTypeNormal, "Linked", "Link", "%s", "node-1")
	pending.Record(recorder, &corev1.Pod{})
	g.Expect(recorder.related).To(BeIdenticalTo(node))
	g.Expect(recorder.note).To(Equal("node-1"))
}
