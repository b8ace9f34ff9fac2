package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// maxCrashes bounds the writes of the deletions below.
const maxCrashes = 150

// TestDeletionSurvivesCrashes has the core die again and again while Machines are deleted that are in all stages, one of
// which has everything that a deletion can wait for: every other time before a write has its effect, and every other time
// after it. Nothing is left in the end.
func TestDeletionSurvivesCrashes(t *testing.T) {
	core.MortalTarget(t)
	everything := newFixtureWithoutTimeout(t)
	node := everything.run()
	everything.pod("evicted", node.Name)
	everything.annotate(everything.machine, preDrainHook, new(""))
	everything.annotate(everything.machine, preTerminateHook, new(""))
	for _, obj := range []client.Object{everything.infra, everything.config, node} {
		everything.setFinalizers(obj, providerFinalizer)
	}
	all := []*fixture{everything}
	for _, stage := range stages {
		if stage.during == nil {
			f := newFixtureWithoutTimeout(t)
			stage.reach(f)
			all = append(all, f)
		}
	}
	everything.awaitsNothing()
	t.Cleanup(func() { core.Restart(t) })

	died := crash(0)
	for _, f := range all {
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	}
	crashes := 0
	for !allGone(all) {
		select {
		case write := <-died:
			crashes++
			t.Logf("Died with %s", write)
			everything.Expect(crashes).To(BeNumerically("<", maxCrashes), "the deletion should come to an end")
			core.Restart(t)
			died = crash(crashes)
		case <-time.After(pollInterval):
			everything.release()
		}
	}
	t.Logf("The core has died %d times", crashes)
	everything.Expect(crashes).To(BeNumerically(">", 10))
	for _, f := range all {
		f.leavesNothing()
	}
	everything.eventuallyGone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: everything.namespace, Name: "evicted"}})
}

// newFixtureWithoutTimeout is a Machine whose Node is not left behind, however long the core is away.
func newFixtureWithoutTimeout(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(0))
	return f
}

// crash has the core die soon. How many writes there are before that differs, so that those of one Machine are met between
// and among those of the others.
func crash(crashes int) <-chan string {
	n := 1 + crashes/2%3
	if crashes%2 == 0 {
		return core.CrashBefore("", n)
	}
	return core.Crash("", n)
}

const (
	preDrainHook     = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/a"
	preTerminateHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/b"
)

func allGone(fixtures []*fixture) bool {
	for _, f := range fixtures {
		err := core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(f.machine), &clusterv1.Machine{})
		if !apierrors.IsNotFound(err) {
			return false
		}
	}
	return true
}

// release simulates the holders of a deletion: each releases it when the Machine reports that it waits for it.
func (f *fixture) release() {
	f.t.Helper()
	m := &clusterv1.Machine{}
	if err := core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(f.machine), m); err != nil {
		f.Expect(client.IgnoreNotFound(err)).To(Succeed())
		return
	}
	switch condition(m, clusterv1.MachineDeletingCondition) {
	case "True/" + clusterv1.MachineDeletingWaitingForPreDrainHookReason:
		f.annotate(f.machine, preDrainHook, nil)
	case "True/" + clusterv1.MachineDeletingWaitingForPreTerminateHookReason:
		f.annotate(f.machine, preTerminateHook, nil)
	case "True/" + clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason:
		f.releaseIfDeleting(coretest.Object(coretest.Kind(coretest.Machine, f.contract), f.namespace, f.machine.Name))
	case "True/" + clusterv1.MachineDeletingWaitingForBootstrapDeletionReason:
		f.releaseIfDeleting(coretest.Object(coretest.Kind(coretest.Config, f.contract), f.namespace, f.machine.Name))
	case "True/" + clusterv1.MachineDeletingDeletingNodeReason:
		node := &corev1.Node{}
		node.Name = f.machine.Name
		f.releaseIfDeleting(node)
	}
}

// releaseIfDeleting removes the finalizers of an object that is being deleted.
func (f *fixture) releaseIfDeleting(obj client.Object) {
	f.t.Helper()
	err := core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return
	}
	f.Expect(err).NotTo(HaveOccurred())
	if obj.GetDeletionTimestamp() != nil {
		f.setFinalizers(obj)
	}
}
