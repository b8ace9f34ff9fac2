package healthcheck_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/core/healthcheck"
)

// TestExistingHealthChecksAreReported: users of an earlier core learn that their Machines are not watched any more.
func TestExistingHealthChecksAreReported(t *testing.T) {
	for name, test := range map[string]struct {
		annotations, labels map[string]string
		reported            bool
	}{
		"in force":        {nil, map[string]string{clusterv1.WatchLabel: "a"}, true},
		"paused":          {map[string]string{clusterv1.PausedAnnotation: ""}, map[string]string{clusterv1.WatchLabel: "a"}, false},
		"of another core": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
			check := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h", Annotations: test.annotations, Labels: test.labels}}
			recorder := events.NewFakeRecorder(1)
			notice := &healthcheck.Notice{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(check).Build(), Recorder: recorder, WatchFilter: "a"}
			_, err := notice.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(check)})
			g.Expect(err).NotTo(HaveOccurred())
			if !test.reported {
				g.Expect(recorder.Events).NotTo(Receive())
				return
			}
			g.Expect(recorder.Events).To(Receive(And(ContainSubstring("Warning NotSupported"), ContainSubstring("deleting them"))))
		})
	}
}

// TestHealthChecksThatComeIntoForceAreReported: whoever unpauses one, or hands it to this core, learns that nothing watches.
func TestHealthChecksThatComeIntoForceAreReported(t *testing.T) {
	of := func(filter string, annotations map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.WatchLabel: filter}, Annotations: annotations}}
	}
	paused := map[string]string{clusterv1.PausedAnnotation: ""}
	changes := (&healthcheck.Notice{WatchFilter: "a"}).Changes()
	for name, test := range map[string]struct {
		old, check *metav1.PartialObjectMetadata
		passes     bool
	}{
		"unpaused":                {of("a", paused), of("a", nil), true},
		"paused":                  {of("a", nil), of("a", paused), false},
		"taken from another core": {of("b", nil), of("a", nil), true},
		"given to another core":   {of("a", nil), of("b", nil), false},
		"changed otherwise":       {of("a", nil), of("a", map[string]string{"x": "y"}), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(changes.Update(event.UpdateEvent{ObjectOld: test.old, ObjectNew: test.check})).To(Equal(test.passes))
		})
	}
	g := NewWithT(t)
	g.Expect(changes.Create(event.CreateEvent{Object: of("a", nil)})).To(BeTrue())
	g.Expect(changes.Create(event.CreateEvent{Object: of("b", nil)})).To(BeFalse())
}
