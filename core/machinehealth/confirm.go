package machinehealth

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/health"
	"millwright.dev/core/remote"
)

const (
	// liveReadTTL is for how long a Machine is judged by what was read of its Node, unless the cache has another version before, and
	// how soon a read is repeated that has failed.
	liveReadTTL = time.Minute
	// unreadAfter is how long a read may take until an event and a condition report it. It is more than the timeout of one request.
	unreadAfter = 15 * time.Second
)

// nodesUnreadable is what the metric has for a Machine that is not marked for remediation because its Node cannot be read.
const nodesUnreadable = "NodesUnreadable"

// nodes is what is asked of a connection.
type nodes interface {
	Node(name string) (*corev1.Node, error)
	NodesWithProviderID(id string) ([]*corev1.Node, error)
	ReadNode(owner remote.Owner, name string) (*corev1.Node, error)
	FindNodes(owner remote.Owner, id string) ([]*corev1.Node, error)
	WithdrawRead(owner types.NamespacedName)
}

// nodeQuery is what is read of the API server of the target cluster before a Machine is marked for remediation: the Node that it is linked
// with, or that with its provider ID. mark is that of the Node in the cache, 0 for none: its version would change with every heartbeat.
type nodeQuery struct {
	name, id string
	mark     uint64
}

func (q nodeQuery) String() string {
	if q.name != "" {
		return "Node " + q.name
	}
	return "Nodes with the provider ID " + q.id
}

// liveRead is such a read.
type liveRead struct {
	nodeQuery
	owner remote.Owner
	// since is when it was asked for, done when there was an answer: node, nil for none, or why it has failed.
	since, done time.Time
	node        *corev1.Node
	err         error
	// failed is why the read before this one has failed.
	failed error
	// recorded means that an event was recorded that the Node cannot be read; used that this round needs the answer.
	recorded, used bool
}

// liveReads are the reads for the Machines of each Cluster. They may be lost at any time: what is needed is read again. The zero value is
// ready for use.
type liveReads struct {
	mu sync.Mutex
	of map[client.ObjectKey]map[types.UID]*liveRead
}

// take returns those of a Cluster, for one round.
func (l *liveReads) take(cluster client.ObjectKey) map[types.UID]*liveRead {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.of[cluster]
	delete(l.of, cluster)
	return taken
}

func (l *liveReads) keep(cluster client.ObjectKey, kept map[types.UID]*liveRead) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[client.ObjectKey]map[types.UID]*liveRead{}
	}
	l.of[cluster] = kept
}

// collect takes what was answered, and asked by MachineSets, since the round before. It waits for nothing.
func (r *Reconciler) collect(s *round) {
	s.liveReads = map[types.UID]*liveRead{}
	if s.cluster == nil {
		r.grants.forget(s.key)
	}
	s.wanted = r.grants.wanted(s.key, s.now)
	for uid, l := range r.liveReads.take(s.key) {
		l.used = false
		s.liveReads[uid] = l
		if l.done.IsZero() && s.connection != nil {
			s.ask(l)
		}
	}
}

// settle keeps what is still of use, and withdraws what nothing waits for any more. In a freeze nothing is judged, but an answer to what is
// under way may be what ends it.
func (r *Reconciler) settle(s *round) {
	for uid, l := range s.liveReads {
		isOf := func(t *target) bool { return t.UID == uid && t.DeletionTimestamp.IsZero() }
		if l.used || l.done.IsZero() && s.frozen.Active() && slices.ContainsFunc(s.targets, isOf) {
			continue
		}
		delete(s.liveReads, uid)
		if l.done.IsZero() && s.connection != nil {
			s.connection.WithdrawRead(l.owner.NamespacedName)
		}
	}
	if len(s.liveReads) > 0 {
		r.liveReads.keep(s.key, s.liveReads)
	}
}

// ask asks for a read, or takes its answer.
func (s *round) ask(l *liveRead) {
	var err error
	var node *corev1.Node
	if l.name != "" {
		node, err = s.connection.ReadNode(l.owner, l.name)
	} else {
		var found []*corev1.Node
		if found, err = s.connection.FindNodes(l.owner, l.id); len(found) > 0 {
			node = found[0]
		}
	}
	var pending *remote.PendingError
	l.node, l.err = node, err
	if !errors.As(err, &pending) {
		l.done = s.now
	}
}

// queryOf is what to read of the Node of a Machine, by what is known of it from the cache. ok is false when the cache cannot be behind:
// nothing is known by which there could be a Node, or the Node is there and the Machine is to be linked with it.
func (s *round) queryOf(f health.Facts) (q nodeQuery, ok bool) {
	if f.Unreadable != "" {
		return nodeQuery{}, false
	}
	if q.name = f.Machine.Status.NodeRef.Name; q.name != "" {
		q.mark = cacheMark(f.Node)
		return q, true
	}
	if q.id = f.Machine.Spec.ProviderID; q.id == "" {
		return nodeQuery{}, false
	}
	cached, err := s.connection.NodesWithProviderID(q.id)
	return q, err == nil && len(cached) == 0
}

func cacheMark(node *corev1.Node) uint64 {
	if node == nil {
		return 0
	}
	return markOf(node)
}

// correct has a Machine be judged by what was read of its Node, if that is newer than what the cache has, and reports whether it is.
func (s *round) correct(f *health.Facts) bool {
	l := s.liveReads[f.Machine.UID]
	if l == nil || l.err != nil || !s.now.Before(l.done.Add(liveReadTTL)) {
		return false
	}
	if l.name == "" && l.node != nil && f.Machine.Status.NodeRef.Name == "" {
		// Also once the cache has the Node: then it is a race with the Machine controller, which links it.
		l.used = true
		f.Contested = fmt.Sprintf("Node %s is there, and the Machine is not linked with it yet", l.node.Name)
		f.Unconfirmed = f.Contested
		s.wakeAt(l.done.Add(liveReadTTL))
		return true
	}
	if q, ok := s.queryOf(*f); !ok || q != l.nodeQuery {
		return false
	}
	l.used = true
	switch cached := f.Node; {
	case cached != nil && l.node != nil && markOf(cached) == markOf(l.node), cached == nil && l.node == nil:
	default:
		f.Unconfirmed = fmt.Sprintf("Node %s differs from the cached one", l.name)
		s.wakeAt(l.done.Add(liveReadTTL))
	}
	f.Node = l.node
	f.Contested = s.contested(*f)
	return true
}

// confirm has the Nodes read of the Machines that are to be marked for remediation, or whose turn it is to be replaced, because of what
// the cache has of their Nodes. Until there is an answer they are not; the round that comes with it judges by it.
func (r *Reconciler) confirm(s *round) {
	for _, t := range s.targets {
		if t.State != health.Unhealthy || t.byLiveRead || !s.wanted[t.UID] && !s.isNew(t) || !s.byNode(t) {
			continue
		}
		if q, ok := s.queryOf(t.facts); ok {
			r.readNode(s, t, q)
		}
	}
}

// readNode starts a read of the Node of a Machine, and holds the Machine meanwhile.
func (r *Reconciler) readNode(s *round, t *target, q nodeQuery) {
	l := s.liveReads[t.UID]
	if l == nil || l.nodeQuery != q || !l.done.IsZero() && !s.now.Before(l.done.Add(liveReadTTL)) {
		l = l.next(q, s.now, remote.Owner{NamespacedName: client.ObjectKeyFromObject(t.Machine), UID: t.UID})
		s.liveReads[t.UID] = l
		s.ask(l)
	}
	l.used, t.held = true, true
	why := l.err
	switch {
	case l.done.IsZero() && l.failed != nil:
		why = l.failed
	case l.done.IsZero() && s.now.Before(l.since.Add(unreadAfter)):
		s.wakeAt(l.since.Add(unreadAfter))
		return
	case l.err == nil: // By a connection that answers at once, as in tests.
		s.wakeAt(s.now.Add(time.Millisecond))
		return
	case !l.done.IsZero():
		s.wakeAt(l.done.Add(liveReadTTL))
	}
	t.unread = fmt.Sprintf("%s cannot be read: %v", l.nodeQuery, why)
	s.countUnread(t)
	if len(t.by) == 0 && !l.recorded {
		l.recorded = true
		r.Recorder.Eventf(t.Machine, nil, corev1.EventTypeWarning, MachineNotJudgedEvent, "Judge",
			"%s. The Machine is not marked unhealthy because of what was read earlier", t.unread)
	}
}

// next is the read after this one, if there was one. Until it is answered the reason stays with which that failed, so that conditions do
// not change with each attempt.
func (l *liveRead) next(q nodeQuery, now time.Time, owner remote.Owner) *liveRead {
	created := &liveRead{nodeQuery: q, since: now, owner: owner}
	if l == nil {
		return created
	}
	created.recorded, created.failed = l.recorded, l.failed
	switch {
	case l.done.IsZero() && l.name == q.name && l.id == q.id:
		created.since = l.since
	case !l.done.IsZero():
		created.failed = l.err
	}
	return created
}

// countUnread counts a Machine for the MachineHealthChecks by which it would be marked for remediation.
func (s *round) countUnread(t *target) {
	for i, c := range t.by {
		if c.allowed && t.judgements[i].State == health.Unhealthy {
			c.result.UnreadMachines++
			if c.result.Unread == "" || t.unread < c.result.Unread {
				c.result.Unread = t.unread
			}
		}
	}
}

// isNew reports whether an unhealthy Machine would be marked for remediation now that was not before, or whose request of external
// remediation no longer exists.
func (s *round) isNew(t *target) bool {
	toOwner, external := s.handOver(t)
	asked := meta.FindStatusCondition(t.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	if toOwner && (asked == nil || asked.Status == metav1.ConditionTrue) {
		return true
	}
	known := meta.FindStatusCondition(t.Status.Conditions, clusterv1.MachineExternallyRemediatedCondition)
	return external != nil && (t.requestGone || !requested(known))
}

// byNode reports whether a Machine is marked for remediation only because of what is known of its Node.
func (s *round) byNode(t *target) bool {
	blind := *t
	blind.judgements = nil
	for _, policy := range t.policies {
		blind.judgements = append(blind.judgements,
			health.Judgement{Policy: policy.Name, Assessment: health.Judge(policy, t.facts.WithoutNode("not looked at"))})
	}
	blind.Assessment = health.Combine(blind.judgements)
	if blind.State != health.Unhealthy {
		return true
	}
	owner, external := s.handOver(t)
	blindOwner, blindExternal := s.handOver(&blind)
	return owner != blindOwner || external != blindExternal
}
