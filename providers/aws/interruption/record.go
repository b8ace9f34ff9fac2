package interruption

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
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
	// writers is how many notices are written at a time.
	writers = 10
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

// taking is what becomes of one message.
type taking struct {
	event  event
	result string
	claims []*claim
}

// claim is an AWSMachine that names the instance of a message. Whose the instance is, the reconciler knows: an object that only claims it
// reports nothing.
type claim struct {
	machine *infrav1.AWSMachine
	event   event
	notice  inframachine.Notice
	// pending is true while the Machine is still to be deleted.
	pending bool
	// result is what became of it; empty until the notice was written.
	result string
}

// take reads a message, finds the AWSMachines that name its instance, and notifies the reconciler of those that are interrupted. It waits
// for nothing: behind it may be the messages of a whole zone.
func (r *Receiver) take(ctx context.Context, body string, sent time.Time) *taking {
	log := ctrl.LoggerFrom(ctx)
	e, err := parse(body)
	now := r.Clock.Now()
	switch {
	case errors.Is(err, errIgnored):
		return &taking{result: resultIgnored}
	case err != nil:
		log.Info("A message in the interruption queue is not used", "why", err.Error())
		return &taking{result: resultMalformed}
	case e.at.After(now.Add(time.Minute)), now.Sub(e.at) > staleAfter:
		return &taking{result: resultStale}
	}
	list := &infrav1.AWSMachineList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{instanceField: e.instance}); err != nil {
		log.Error(err, "Finding the machine of an interrupted instance failed", "instance", e.instance)
		return &taking{result: resultRefused}
	}
	t := &taking{event: e, result: resultUnknown}
	if now.Sub(sent) < unknownFor {
		t.result = resultWaiting
	}
	for i := range list.Items {
		m := &list.Items[i]
		if m.Spec.Region == e.region && predicates.MatchesWatchLabel(r.WatchFilter, m) {
			t.claims = append(t.claims, r.notify(m, e))
		}
	}
	return t
}

// notify notifies the reconciler of an interruption. Whether the notice can be written makes no difference to that: there are two minutes.
func (r *Receiver) notify(m *infrav1.AWSMachine, e event) *claim {
	c := &claim{machine: m, event: e, notice: inframachine.Notice{Kind: e.kind, ProviderID: m.Spec.ProviderID, At: e.at, Deadline: e.deadline}}
	switch {
	case e.kind == inframachine.NoticeInterruption && m.Spec.Spot == nil && !ptr.Deref(m.Status.Interruptible, false):
		c.result = resultOnDemand
	case !m.DeletionTimestamp.IsZero():
		c.result = resultKnown
	default:
		c.pending = e.kind == inframachine.NoticeInterruption && r.Interrupted != nil && !r.Interrupted(m, c.notice)
	}
	return c
}

// record writes the notices of all messages of one answer, some at a time, and returns within the time of one call: a webhook that hangs
// holds up neither the other notices nor the next messages. What could not be written is received again.
func (r *Receiver) record(ctx context.Context, taken []*taking) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var writes sync.WaitGroup
	turns := make(chan struct{}, writers)
	for _, notices := range byMachine(taken) {
		writes.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			for n, c := range notices {
				if n > 0 && notices[n-1].result == resultRecorded { // What the object has decides which notice it keeps.
					c.machine = notices[n-1].machine
				}
				c.result = r.write(ctx, c.machine, c.event, c.notice)
			}
		})
	}
	writes.Wait()
	for _, t := range taken {
		for _, c := range t.claims {
			if c.pending && c.result != resultUnknown {
				c.result = worse(resultPending, c.result)
			}
			t.result = worse(t.result, c.result)
		}
	}
}

// byMachine returns what is to be written, by object: several messages of one answer may concern one instance.
func byMachine(taken []*taking) map[client.ObjectKey][]*claim {
	notices := map[client.ObjectKey][]*claim{}
	for _, t := range taken {
		for _, c := range t.claims {
			if key := client.ObjectKeyFromObject(c.machine); c.result == "" {
				notices[key] = append(notices[key], c)
			}
		}
	}
	return notices
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

// write writes the notice into the object.
func (r *Receiver) write(ctx context.Context, m *infrav1.AWSMachine, e event, notice inframachine.Notice) string {
	base := m.DeepCopy()
	if !inframachine.PutNotice(m, notice) {
		return resultKnown
	}
	err := r.Client.Patch(ctx, m, client.MergeFrom(base))
	switch {
	case persist.Gone(err):
		return resultUnknown
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Writing the notice of an interrupted instance failed",
			"instance", e.instance, "AWSMachine", client.ObjectKeyFromObject(m))
		r.Recorder.Eventf(base, nil, corev1.EventTypeWarning, refusedEvent, "RecordNotice", "Instance %s: %s: %v", e.instance, e.kind, err)
		return resultRefused
	}
	return resultRecorded
}
