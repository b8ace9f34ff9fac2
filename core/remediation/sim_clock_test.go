package remediation_test

import (
	"context"
	"time"
	"unsafe"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/safety/freeze"
	. "millwright.dev/test/coretest/builder"
)

// reading is what time.Now returns when the clock on the wall shows that time, and so much has passed since some start. Nothing in
// package time makes one whose two readings differ, as those of a clock that was set do.
func reading(wall time.Time, passed time.Duration) time.Time {
	const (
		monotonic = 1 << 63
		since1885 = (1969*365 + 1969/4 - 1969/100 + 1969/400 - (1884*365 + 1884/4 - 1884/100 + 1884/400)) * 86400
	)
	t := wall.UTC()
	// The layout of time.Time has not changed since it has two readings, and init checks it.
	inside := (*struct {
		wall uint64
		ext  int64
	})(unsafe.Pointer(&t))
	inside.wall = monotonic | uint64(wall.Unix()+since1885)<<30 | uint64(wall.Nanosecond())
	inside.ext = int64(passed)
	return t
}

func init() {
	before, after := reading(Epoch, time.Hour), reading(Epoch.Add(-time.Minute), 3*time.Hour)
	if after.Sub(before) != 2*time.Hour || !after.Round(0).Equal(Epoch.Add(-time.Minute)) {
		panic("time.Time has another layout")
	}
}

// clock is what the core believes the time to be.
func (s *simulation) clock() time.Time { return reading(s.now.Add(s.skew), s.now.Sub(Epoch)+time.Hour) }

// stamp is a time that the core writes into an object.
func (s *simulation) stamp() time.Time { return s.clock().Round(0).Truncate(time.Second) }

// process is a core: what ends with it.
type process struct {
	*simulation
	freezer *freeze.Freezer
	// began is when it began, in truth.
	began  time.Time
	notify []func(client.ObjectKey)
	// away means that no core was at work for long before.
	away bool
}

// Now and Since are a clock.PassiveClock.
func (p *process) Now() time.Time                  { return p.clock() }
func (p *process) Since(t time.Time) time.Duration { return p.clock().Sub(t) }

// Unanswered says since when the target's API server has not answered; a connection notices that with a probe.
func (p *process) Unanswered(client.ObjectKey) (time.Time, string) {
	if !p.disconnected() {
		return time.Time{}, ""
	}
	since := p.targetDown
	if since.Before(p.began) {
		since = p.began
	}
	return p.clock().Add(since.Sub(p.now)), "connection refused"
}

func (p *process) OnConnectivity(f func(client.ObjectKey)) { p.notify = append(p.notify, f) }

// disconnected reports whether the core knows that the target's API server does not answer.
func (s *simulation) disconnected() bool {
	return !s.targetDown.IsZero() && s.now.Sub(s.targetDown) >= simProbe
}

// Get and List are what the freezer reads: the lease, which was renewed last before this process, and Machines.
func (p *process) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if lease, ok := into.(*coordinationv1.Lease); ok {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: p.renewed}
		return nil
	}
	if cluster, ok := into.(*clusterv1.Cluster); ok {
		p.cluster.DeepCopyInto(cluster)
		return nil
	}
	for _, m := range p.machines {
		if !m.gone && m.Name == key.Name {
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "machines"}, key.Name)
}

func (p *process) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	into := list.(*clusterv1.MachineList)
	for _, m := range p.machines {
		if m.seen != nil {
			into.Items = append(into.Items, *m.seen)
		}
	}
	return nil
}

// start begins a process. The one before has died since rest: its slots and what it has seen are gone.
func (s *simulation) start(rest time.Duration) {
	s.renewed = s.clock().Round(0)
	s.note("the core dies for %s", rest)
	for end := s.now.Add(rest); s.now.Before(end); {
		s.now = s.now.Add(s.step)
		s.cloud()
	}
	p := &process{simulation: s, began: s.now, away: rest > s.freezing.Timeout}
	p.freezer = freeze.New(s.freezing, p, p)
	p.freezer.RecallAtOnce(p)
	if err := p.freezer.ReadLease(context.Background(), p, client.ObjectKey{}); err != nil {
		panic(err)
	}
	s.process, s.slots, s.histories = p, newSlots(), newHistories()
	s.nodesKnown = s.targetDown.IsZero()
	for _, m := range s.machines {
		if !s.nodesKnown {
			m.nodeSeen = nil
		}
	}
	s.examine()
}

// examine looks for signs of a restore, as the real one does when the target cluster is connected.
func (s *simulation) examine() {
	examiner := &freeze.Examiner{
		Freezer: s.process.freezer, Client: s.process, APIReader: s.process,
		Nodes: func(client.ObjectKey) (nodes []*corev1.Node, known bool) {
			for _, m := range s.machines {
				if m.nodeSeen != nil {
					nodes = append(nodes, m.nodeSeen)
				}
			}
			return nodes, s.nodesKnown
		},
	}
	if _, err := examiner.Reconcile(context.Background(), ctrl.Request{NamespacedName: simCluster}); err != nil {
		panic(err)
	}
}

// report writes the condition of the Cluster, as its controller does.
func (s *simulation) report() {
	state := s.process.freezer.Frozen(simCluster)
	condition := conditions.True(clusterv1.MachineHealthCheckRemediationAllowedCondition, "Allowed", "")
	if state.Active() {
		condition = conditions.False(clusterv1.MachineHealthCheckRemediationAllowedCondition, state.Reason, state.Message)
	}
	cluster := s.cluster.DeepCopy()
	conditions.Set(&cluster.Status.Conditions, condition, 1, s.stamp())
	s.cluster = cluster
}

// connected takes in that the connection to the target cluster has changed.
func (s *simulation) connected() {
	for _, notify := range s.process.notify {
		notify(simCluster)
	}
	if s.targetDown.IsZero() {
		s.nodesKnown = true
		for _, m := range s.machines {
			// A connection that can be used has read all Nodes.
			m.nodeSeen = m.node
		}
		s.examine()
	}
}

// forbidden is why nothing may be replaced now, as the simulation knows it and not as the core does; "" when it may.
func (s *simulation) forbidden() string {
	grace := s.freezing.Grace
	switch {
	case !s.targetDown.IsZero() && s.now.Sub(s.targetDown) >= s.freezing.Timeout+simProbe:
		return "the target's API server is away"
	case !s.targetBack.IsZero() && s.now.Before(s.targetBack.Add(grace)):
		return "the target's API server is back a moment ago"
	case s.jumped.After(s.process.began) && s.now.Before(s.jumped.Add(grace)):
		return "the clock has jumped"
	case s.process.away && s.now.Before(s.process.began.Add(grace)):
		return "no core was at work"
	}
	return ""
}
