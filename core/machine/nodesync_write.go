package machine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/external"
	"millwright.dev/core/remote"
)

// NotKeptError means that the target cluster accepted a change of a Node and did not keep all of it, as with a mutating
// webhook that removes labels.
type NotKeptError struct {
	// Lost names what was not kept.
	Lost []string
}

// Error names what was not kept and who may be the cause.
func (e *NotKeptError) Error() string {
	return "the target cluster accepted the change and did not keep " + strings.Join(e.Lost, ", ") +
		": look for a mutating webhook or policy, or a controller that removes it"
}

// nodeSync is how far the Node is synchronized with its Machine.
type nodeSync struct {
	// once is true when the Node has been synchronized at least once.
	once bool
	// awaited is what the first synchronization waits for, "" when for nothing.
	awaited string
	// err is why the last attempt failed, nil when the Node is synchronized.
	err error
}

// syncNode synchronizes labels, annotations and taints of the Node, by one patch at most, which is sent without waiting for
// the answer. What fails is tried again less and less often, and is reported in a condition meanwhile.
func (r *Reconciler) syncNode(ctx context.Context, s *scope) outcome.Outcome {
	s.sync.once = s.syncedOnce()
	node, desired := s.node.DeepCopy(), s.desired()
	if s.sync.awaited = s.unreadForSync(); s.sync.awaited != "" {
		return outcome.Continue()
	}
	result := SyncNode(node, desired)
	if !result.Changed {
		return r.synced(s)
	}
	data, err := client.MergeFrom(s.node).Data(node)
	if err != nil {
		return outcome.FromError(err)
	}
	change := sha256.Sum256(data)
	if attempt := r.syncs.tooEarly(s.Key(), s.Original.UID, change, s.Now); attempt != nil {
		return s.awaitSync(attempt)
	}
	answered, err := s.connection.PatchNode(s.owner(), remote.NodePatch{
		Before: s.node, After: node,
		// Taints are replaced as a list, and others write them too.
		Lock: result.Taints, Verify: kept(desired),
	})
	if err != nil {
		return r.notSynced(ctx, s, change, err)
	}
	s.node = answered
	return r.synced(s)
}

// synced handles that the Node is synchronized.
func (r *Reconciler) synced(s *scope) outcome.Outcome {
	s.sync = nodeSync{once: true}
	r.syncs.forget(s.Key())
	return outcome.Continue()
}

// notSynced handles why a change of the Node was not written, or not yet.
func (r *Reconciler) notSynced(ctx context.Context, s *scope, change [sha256.Size]byte, err error) outcome.Outcome {
	if end, soon := s.soonAnswered(err); soon {
		return end
	}
	var contested *remote.ContestedError
	var replaced *remote.ReplacedError
	switch {
	case unanswered(err) != nil:
		s.sync.err = err
		return outcome.Wait()
	case errors.As(err, &contested):
		s.sync.err = err
		return outcome.WaitFor(contested.RetryAt.Sub(s.Now))
	case persist.Gone(err), errors.As(err, &replaced):
		// The event of its deletion, or of the other Node of its name, is on its way.
		s.node, s.Object.Status.NodeRef = nil, s.Original.Status.NodeRef
		return outcome.Wait()
	}
	attempt := r.syncs.fail(s.Key(), s.Original.UID, change, err, s.Now)
	if !attempt.quiet() {
		ctrl.LoggerFrom(ctx).Error(err, "The Node cannot be synchronized with its Machine", "Node", s.node.Name, "retryAfter", attempt.pause())
	}
	return s.awaitSync(&attempt)
}

// awaitSync leaves the reason why the Node is not synchronized for the conditions, and waits for the next attempt.
func (s *scope) awaitSync(attempt *syncAttempt) outcome.Outcome {
	s.sync.err = attempt.err
	s.quiet = attempt.quiet()
	return outcome.WaitFor(attempt.next.Sub(s.Now))
}

// kept makes sure that what was written is there.
func kept(desired DesiredNode) func(*corev1.Node) error {
	return func(answered *corev1.Node) error {
		want := answered.DeepCopy()
		if SyncNode(want, desired).Changed {
			return &NotKeptError{Lost: differences(want, answered)}
		}
		return nil
	}
}

// syncedOnce reports whether the Node has been synchronized at least once. The evidence is on the Node, where the same
// patch that removes the taint leaves the name of the Machine, and so outlives this process. A first synchronization
// that failed in part, which the condition remembers, has not been.
func (s *scope) syncedOnce() bool {
	tainted := slices.ContainsFunc(
		s.node.Spec.Taints,
		func(taint corev1.Taint) bool { return taint.MatchTaint(&clusterv1.NodeUninitializedTaint) },
	)
	return !tainted && !s.neverSynced() &&
		s.node.Annotations[clusterv1.MachineAnnotation] == s.Object.Name &&
		s.node.Annotations[clusterv1.ClusterNamespaceAnnotation] == s.Object.Namespace
}

// unreadForSync names what the core has yet to read before it knows what the Node should have; "" when nothing. Once the
// Node has been synchronized, what is not known stays as it is on the Node.
func (s *scope) unreadForSync() string {
	if external.BeingRead(s.infrastructure.err) || !s.sync.once && s.infrastructure.ref.IsDefined() && !s.infrastructureRead {
		return external.Name(s.infrastructure.ref)
	}
	return ""
}

// differences names the labels, annotations and taints in which two versions of a Node differ.
func differences(want, have *corev1.Node) []string {
	var names []string
	for _, kind := range []struct {
		name       string
		want, have map[string]string
	}{{"label", want.Labels, have.Labels}, {"annotation", want.Annotations, have.Annotations}} {
		keys := slices.Sorted(maps.Keys(kind.want))
		for _, key := range slices.Sorted(maps.Keys(kind.have)) {
			if _, ok := kind.want[key]; !ok {
				keys = append(keys, key)
			}
		}
		for _, key := range keys {
			a, inWant := kind.want[key]
			b, inHave := kind.have[key]
			if inWant != inHave || a != b {
				names = append(names, kind.name+" "+key)
			}
		}
	}
	if !equality.Semantic.DeepEqual(want.Spec.Taints, have.Spec.Taints) {
		names = append(names, fmt.Sprintf("taints (%s are there)", describeTaints(have.Spec.Taints)))
	}
	return names
}

// describeTaints lists taints for messages.
func describeTaints(taints []corev1.Taint) string {
	if len(taints) == 0 {
		return "none"
	}
	ids := make([]string, 0, len(taints))
	for _, taint := range taints {
		ids = append(ids, taintID(taint.Key, taint.Effect))
	}
	return strings.Join(ids, " ")
}
