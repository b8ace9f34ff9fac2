package interruption

import (
	"context"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/predicates"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
)

const (
	// unknownFor is for how long after it was sent a message waits for an AWSMachine with its instance: caches lag, and an instance may
	// have been launched a moment ago.
	unknownFor = time.Minute
	// staleAfter is when an event is too old to be of use.
	staleAfter = 15 * time.Minute
	// eventRefused: the API server does not take a notice.
	eventRefused = "NoticeRefused"
	// instanceField indexes AWSMachines by the ID of their instance.
	instanceField = "spec.providerID.instance"
)

// IndexInstances adds the index that Receivers find AWSMachines by.
func IndexInstances(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &infrav1.AWSMachine{}, instanceField, func(obj client.Object) []string {
		m, ok := obj.(*infrav1.AWSMachine)
		if !ok || m.Spec.ProviderID == "" {
			return nil
		}
		return []string{m.Spec.ProviderID[strings.LastIndex(m.Spec.ProviderID, "/")+1:]}
	})
	return errors.Wrap(err, "indexing AWSMachines by their instances")
}

// take writes what a message announces to the AWSMachines that name the instance, and returns what became of it. Whose the instance is, the
// reconciler knows: an object that only claims it reports nothing.
func (r *Receiver) take(ctx context.Context, body string, sent time.Time) string {
	log := ctrl.LoggerFrom(ctx)
	e, err := parse(body)
	now := r.Clock.Now()
	switch {
	case errors.Is(err, errIgnored):
		return resultIgnored
	case err != nil:
		log.Info("A message in the interruption queue is not used", "why", err.Error())
		return resultMalformed
	case e.at.After(now.Add(time.Minute)), now.Sub(e.at) > staleAfter:
		return resultStale
	}
	list := &infrav1.AWSMachineList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{instanceField: e.instance}); err != nil {
		log.Error(err, "Finding the machine of an interrupted instance failed", "instance", e.instance)
		return resultRefused
	}
	result := resultUnknown
	if now.Sub(sent) < unknownFor {
		result = resultWaiting
	}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Spec.Region == e.region && predicates.MatchesWatchLabel(r.WatchFilter, m) {
			result = worse(result, r.record(ctx, m, e))
		}
	}
	return result
}

// worse is what becomes of a message that several objects claim: it is received again if one of them could not be written, or still is to
// have its Machine deleted. That no object has the instance is over with the first that has.
func worse(a, b string) string {
	for _, again := range []string{resultRefused, resultPending} {
		if a == again || b == again {
			return again
		}
	}
	return b
}

// record writes the notice of one object.
func (r *Receiver) record(ctx context.Context, m *infrav1.AWSMachine, e event) string {
	if e.kind == inframachine.NoticeInterruption && m.Spec.Spot == nil && !ptr.Deref(m.Status.Interruptible, false) {
		return resultOnDemand
	}
	if !m.DeletionTimestamp.IsZero() {
		return resultKnown
	}
	notice := inframachine.Notice{Kind: e.kind, ProviderID: m.Spec.ProviderID, At: e.at, Deadline: e.deadline}
	// Whether the notice can be written makes no difference to that: there are two minutes.
	pending := e.kind == inframachine.NoticeInterruption && r.Interrupted != nil && !r.Interrupted(m, notice)
	result := r.write(ctx, m, e, notice)
	if pending && result != resultUnknown {
		return worse(resultPending, result)
	}
	return result
}

// write writes the notice into the object.
func (r *Receiver) write(ctx context.Context, m *infrav1.AWSMachine, e event, notice inframachine.Notice) string {
	base := m.DeepCopy()
	if !inframachine.PutNotice(m, notice) {
		return resultKnown
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := r.Client.Patch(ctx, m, client.MergeFrom(base))
	switch {
	case apierrors.IsNotFound(err):
		return resultUnknown
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Writing the notice of an interrupted instance failed",
			"instance", e.instance, "AWSMachine", client.ObjectKeyFromObject(m))
		r.Recorder.Eventf(base, nil, corev1.EventTypeWarning, eventRefused, "RecordNotice", "Instance %s: %s: %v", e.instance, e.kind, err)
		return resultRefused
	}
	return resultRecorded
}
