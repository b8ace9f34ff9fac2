package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remediation"
	"millwright.dev/test/clouds/aws/simapi"
)

// TestNodesLost has most of seven Nodes lost at once, then a zone, whose launches are refused, and then Nodes that flap; the core is
// killed in the middle of each. There are never more replacements in flight than places, all are replaced, and no more are launched than
// were lost.
func TestNodesLost(t *testing.T) {
	w := manyWorld(t, &failing, "nodes-lost")
	l := w.startLosses(7, 2)

	lost := l.loseNodes(func(m *clusterv1.Machine) bool { return len(l.lost) < 6 })
	w.Expect(lost).To(HaveLen(6))
	l.healWithRestart()

	l.begin()
	one := w.live()[filepath.Base(w.machines()[0].Spec.ProviderID)]
	fault, err := w.sandbox.EC2.AddFault(w.ctx, simapi.Fault{
		Action: "RunInstances", Parameters: map[string]string{"NetworkInterface.1.SubnetId": one.SubnetID},
		Error: &simapi.APIError{Code: "InsufficientInstanceCapacity"},
	})
	w.Expect(err).NotTo(HaveOccurred())
	inZone := func(m *clusterv1.Machine) bool { return strings.Contains(m.Spec.ProviderID, one.AvailabilityZone+"/") }
	w.Expect(l.loseNodes(inZone)).NotTo(BeEmpty())
	l.healWithRestart()
	for _, m := range w.machines() {
		w.Expect(inZone(&m)).To(BeFalse(), "replacements are placed where there is capacity")
	}
	w.Expect(w.sandbox.EC2.RemoveFault(w.ctx, fault)).To(Succeed())

	l.begin()
	l.flap()
	l.expect()
}

// flap has Nodes fall silent and report again repeatedly, for longer than any of them may be silent at a time. Nothing is replaced.
func (l *losses) flap() {
	l.t.Helper()
	const timeout = 20 * time.Second
	change := client.MergeFrom(l.check.DeepCopy())
	l.check.Spec.Checks.UnhealthyNodeConditions[0].TimeoutSeconds = ptr.To(int32(timeout.Seconds()))
	l.Expect(l.control.Patch(l.ctx, l.check, change)).To(Succeed())
	before := l.scenario.Watch.UIDs()
	nodes := l.machines()[:3]
	for i, begun := 0, time.Now(); i < 5 || time.Since(begun) < timeout+stillness; i++ {
		for _, m := range nodes {
			l.fallSilent(m.Status.NodeRef.Name)
		}
		l.Eventually(l.notReady).Should(Equal(len(nodes)), "the core has seen it")
		if i == 2 {
			l.sandbox.Core.Kill()
		}
		for _, m := range nodes {
			l.setReady(m.Status.NodeRef.Name, corev1.ConditionTrue, "KubeletReady")
		}
		if i == 2 {
			l.Expect(l.sandbox.Core.Start(l.ctx)).To(Succeed())
		}
		l.Eventually(l.notReady).Should(BeZero())
	}
	l.Expect(l.scenario.AwaitRunning(l.ctx, l.replicas)).To(Succeed())
	l.Expect(l.scenario.Watch.UIDs()).To(Equal(before), "Machines whose Nodes report in time are not replaced")
}

// losses are Machines under a health check, of which some are lost.
type losses struct {
	*world
	replicas, places int
	check            *clusterv1.MachineHealthCheck
	// lost are those whose Nodes have fallen silent since begin, by UID.
	lost map[string]bool
	// since is when begin was called, instances are all that had existed by then.
	since     time.Time
	instances map[string]bool
}

// startLosses creates Machines under a health check that finds those unhealthy whose Nodes are silent for some seconds.
func (w *world) startLosses(replicas, places int) *losses {
	w.t.Helper()
	w.start(replicas)
	w.change(func(md *clusterv1.MachineDeployment) {
		md.Spec.Remediation.MaxInFlight = ptr.To(intstr.FromInt(places))
		// A replacement that is lost counts as one more unhealthy Machine, not as a failed replacement, which would be retried only after a
		// while.
		metav1.SetMetaDataAnnotation(&md.ObjectMeta, remediation.MinHealthyPeriodAnnotation, "1s")
	})
	l := &losses{world: w, replicas: replicas, places: places, check: w.silenceCheck(10)}
	w.Expect(w.control.Create(w.ctx, l.check)).To(Succeed())
	w.awaitHealthy(l.check, int32(replicas))
	l.begin()
	return l
}

// begin resets the counts.
func (l *losses) begin() {
	l.t.Helper()
	l.lost, l.since, l.instances = map[string]bool{}, time.Now(), l.everLaunched()
	l.scenario.Watch.ResetExtremes()
}

// everLaunched are the IDs of all instances, those that are gone included.
func (l *losses) everLaunched() map[string]bool {
	l.t.Helper()
	instances, err := l.sandbox.EC2.Instances(l.ctx)
	l.Expect(err).NotTo(HaveOccurred())
	ids := map[string]bool{}
	for _, instance := range instances {
		ids[instance.ID] = true
	}
	return ids
}

// loseNodes has the Nodes of Machines fall silent.
func (l *losses) loseNodes(which func(*clusterv1.Machine) bool) map[string]bool {
	l.t.Helper()
	for _, m := range l.machines() {
		if which(&m) {
			l.lost[string(m.UID)] = true
			l.fallSilent(m.Status.NodeRef.Name)
		}
	}
	return l.lost
}

// notReady is how many Machines report that their Nodes are not ready.
func (l *losses) notReady() int {
	count := 0
	for _, m := range l.machines() {
		if !nodeReady(&m) {
			count++
		}
	}
	return count
}

func nodeReady(m *clusterv1.Machine) bool {
	for _, c := range m.Status.Conditions {
		if c.Type == clusterv1.MachineNodeReadyCondition {
			return c.Status == "True"
		}
	}
	return false
}

// healWithRestart kills the core when the first replacements are under way, and waits until all have healed.
func (l *losses) healWithRestart() {
	l.t.Helper()
	l.Eventually(func() int { return len(l.goneOrGoing(l.since)) }).Should(BeNumerically(">", 0))
	l.sandbox.Core.Kill()
	l.Expect(l.sandbox.Core.Start(l.ctx)).To(Succeed())
	l.awaitHealed()
}

// awaitHealed waits until all lost ones are replaced, and checks the bounds.
func (l *losses) awaitHealed() {
	l.t.Helper()
	l.Expect(l.scenario.AwaitRolled(l.ctx, l.lost, l.replicas)).To(Succeed())
	l.awaitHealthy(l.check, int32(l.replicas))
	// A replacement that is lost before its set has seen it available is a failed one, which is tried again only after ten minutes.
	l.Eventually(l.unseen).Should(BeEmpty())
	l.expectInstances(l.replicas)
	l.expect()
}

// unseen are the replacements of which it is not recorded that they were available.
func (l *losses) unseen() (names []string) {
	for _, m := range l.machines() {
		if record := remediation.RecordOf(&m); record != nil && record.Available == nil {
			names = append(names, m.Name)
		}
	}
	return names
}

// goneOrGoing are the Machines whose deletion was seen to have begun after that time.
func (l *losses) goneOrGoing(after time.Time) map[string]bool {
	found := map[string]bool{}
	for _, life := range l.scenario.Watch.Timeline().Lives() {
		if at, deleting := life.At[string(clusterv1.MachinePhaseDeleting)]; deleting && at.After(after) {
			found[life.Machine.UID] = true
		}
	}
	return found
}

// expect checks the limit, that only the lost ones were replaced, and docs/guides/safety.md: one instance is launched for each lost one.
func (l *losses) expect() {
	l.t.Helper()
	extremes := l.scenario.Watch.Extremes()
	l.Expect(l.replicas-extremes.FewestStaying).To(BeNumerically("<=", l.places), "never more in flight than there are places")
	l.Expect(extremes.Most).To(BeNumerically("<=", l.replicas), "an unhealthy Machine is deleted before another is created")
	l.Expect(l.goneOrGoing(l.since)).To(Equal(l.lost), "only the lost ones are replaced")
	bought := 0
	for id := range l.everLaunched() {
		if !l.instances[id] {
			bought++
		}
	}
	l.Expect(bought).To(Equal(len(l.lost)), "one is launched for each lost one")
}
