package machinehealth

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/health"
)

var (
	epoch   = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	cluster = client.ObjectKey{Namespace: "ns", Name: "c"}
)

// TestWhatOfANodeWakes: heartbeats, labels, taints and volumes do not.
func TestWhatOfANodeWakes(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: "Ready", Status: "True", LastTransitionTime: metav1.NewTime(epoch)}, {Type: "KernelDeadlock", Status: "False"}}}}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		wakes  bool
	}{
		"nothing":         {func(*corev1.Node) {}, false},
		"a heartbeat":     {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(epoch) }, false},
		"a label":         {func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }, false},
		"a taint":         {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a"}} }, false},
		"a volume":        {func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}} }, false},
		"another message": {func(n *corev1.Node) { n.Status.Conditions[0].Message = "m" }, false},
		"another status":  {func(n *corev1.Node) { n.Status.Conditions[0].Status = "False" }, true},
		"a transition": {func(n *corev1.Node) {
			n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(epoch.Add(time.Second))
		}, true},
		"one beyond Ready":          {func(n *corev1.Node) { n.Status.Conditions[1].Status = "True" }, true},
		"another Node of that name": {func(n *corev1.Node) { n.UID = "2" }, true},
		"its provider ID":           {func(n *corev1.Node) { n.Spec.ProviderID = "p" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), marks{}
			g.Expect(m.changed(cluster, node, false)).To(BeTrue(), "it is new")
			after := node.DeepCopy()
			test.change(after)
			g.Expect(m.changed(cluster, after, false)).To(Equal(test.wakes))
			g.Expect(m.changed(cluster, after, true)).To(BeTrue(), "it is gone")
			g.Expect(m.changed(cluster, after, false)).To(BeTrue(), "it is back")
		})
	}
}

// TestWhichUpdatesOfAMachineWake: our own do not, nor what is derived from other conditions.
func TestWhichUpdatesOfAMachineWake(t *testing.T) {
	withCondition := func(kind string) func(*clusterv1.Machine) {
		return func(m *clusterv1.Machine) {
			conditions.Set(&m.Status.Conditions, conditions.False(kind, "R", ""), 1, epoch)
		}
	}
	for name, test := range map[string]struct {
		change func(*clusterv1.Machine)
		wakes  bool
	}{
		"our condition":        {withCondition(clusterv1.MachineHealthCheckSucceededCondition), false},
		"Ready":                {withCondition(clusterv1.MachineReadyCondition), false},
		"Available":            {withCondition(clusterv1.MachineAvailableCondition), false},
		"addresses":            {func(m *clusterv1.Machine) { m.Status.Addresses = clusterv1.MachineAddresses{{Address: "a"}} }, false},
		"a phase":              {func(m *clusterv1.Machine) { m.Status.Phase = "Running" }, false},
		"infrastructure":       {withCondition(clusterv1.MachineInfrastructureReadyCondition), true},
		"any other condition":  {withCondition("Strange"), true},
		"what the owner says":  {withCondition(clusterv1.MachineOwnerRemediatedCondition), true},
		"a link":               {func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }, true},
		"a label":              {func(m *clusterv1.Machine) { m.Labels = map[string]string{"a": "b"} }, true},
		"an annotation":        {func(m *clusterv1.Machine) { m.Annotations = map[string]string{"a": "b"} }, true},
		"its deletion":         {func(m *clusterv1.Machine) { m.DeletionTimestamp = ptr.To(metav1.Now()) }, true},
		"our condition, taken": {func(m *clusterv1.Machine) { m.Status.Conditions = m.Status.Conditions[:1] }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before := &clusterv1.Machine{}
			withCondition("Other")(before)
			conditions.Set(&before.Status.Conditions, conditions.True(clusterv1.MachineHealthCheckSucceededCondition, "R", ""), 1, epoch)
			after := before.DeepCopy()
			test.change(after)
			NewWithT(t).Expect(machineChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.wakes))
		})
	}
}

// crowd is a round over many Machines that all say already what is to be said of them, and of which nothing reads a Node.
func crowd(number int) (*Reconciler, *round) {
	r := &Reconciler{Written: &persist.Versions{}}
	object := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "workers"}}
	object.Spec.Checks.UnhealthyMachineConditions = []clusterv1.UnhealthyMachineCondition{
		{Type: "Strange", Status: "True", TimeoutSeconds: ptr.To[int32](0)},
	}
	selector := labels.SelectorFromSet(labels.Set{"pool": "a"})
	s := &round{
		key:        cluster,
		now:        epoch,
		linked:     map[string]int{},
		unreadable: "no connection",
		cluster:    &clusterv1.Cluster{},
		checks:     []*check{{MachineHealthCheck: object, own: true, selector: selector, policy: health.OfCheck(object)}},
	}
	for _, kind := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition} {
		conditions.Set(&s.cluster.Status.Conditions, conditions.True(kind, "R", ""), 1, epoch)
	}
	for i := range number {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: fmt.Sprint("m", i), UID: types.UID(fmt.Sprint(i)), Labels: map[string]string{"pool": "a"}}}
		m.Status.NodeRef.Name = m.Name
		for _, kind := range []string{"InfrastructureReady", "BootstrapConfigReady", "NodeReady", "NodeHealthy", "Ready", "Available",
			"Deleting"} {
			conditions.Set(&m.Status.Conditions, conditions.True(kind, "R", ""), 1, epoch)
		}
		conditions.Set(&m.Status.Conditions, conditions.True(clusterv1.MachineHealthCheckSucceededCondition,
			clusterv1.MachineHealthCheckSucceededReason, healthyMessage), 1, epoch)
		s.machines = append(s.machines, m)
	}
	return r, s
}

func (s *round) again(r *Reconciler) []*write {
	s.targets, s.abandoned = nil, nil
	for _, c := range s.checks {
		c.result = Result{}
	}
	s.judge(r)
	s.count()
	writes, _ := r.changed(s)
	return writes
}

// TestAChangeOfOneOfManyIsOneWrite, however many there are.
func TestAChangeOfOneOfManyIsOneWrite(t *testing.T) {
	g := NewWithT(t)
	r, s := crowd(5000)
	g.Expect(s.again(r)).To(BeEmpty())
	changed := s.machines[4321].DeepCopy()
	conditions.Set(&changed.Status.Conditions, conditions.True("Strange", "R", ""), 1, epoch)
	s.machines[4321] = changed
	writes := s.again(r)
	g.Expect(writes).To(HaveLen(1))
	g.Expect(writes[0].after.Name).To(Equal("m4321"))
	g.Expect(s.checks[0].result.Targets).To(HaveLen(5000))
	g.Expect(s.checks[0].result.Healthy).To(Equal(4999))
}

// BenchmarkRoundOf5000 is what a change of one Machine costs beside 4,999 others.
func BenchmarkRoundOf5000(b *testing.B) {
	r, s := crowd(5000)
	s.again(r)
	b.ReportAllocs()
	for b.Loop() {
		s.again(r)
	}
}

// TestHistories: a Machine that was not there in the round before has come before the eyes of the process, and what no longer exists is
// forgotten.
func TestHistories(t *testing.T) {
	g, m := NewWithT(t), memory{}
	g.Expect(m.isActive(cluster)).To(BeFalse())
	m.setActive(cluster, true)
	h := m.begin(cluster)
	first := h.of("a")
	g.Expect(first).To(Equal(health.NewHistory(false)), "who knows since when it is there")
	m.end(cluster, h)
	h = m.begin(cluster)
	g.Expect(h.of("a")).To(BeIdenticalTo(first))
	g.Expect(h.of("b")).To(Equal(health.NewHistory(true)))
	m.end(cluster, h)
	m.end(cluster, m.begin(cluster))
	g.Expect(m.begin(cluster).of("a")).NotTo(BeIdenticalTo(first))
	m.setActive(cluster, false)
	g.Expect(m.begin(cluster).of("c")).To(Equal(health.NewHistory(false)))
}
