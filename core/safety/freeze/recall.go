package freeze

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recallTimeout bounds one attempt at reading a Cluster from the cache, which may not have been filled yet.
const recallTimeout = time.Second

// Recall has the freezer read each Cluster, when it is first asked about it, for what the previous core has reported of it. Otherwise the
// end of a core would end the freeze, and Nodes that could not report would be judged:
//
//   - that the API server of the target cluster does not answer, or answers again since a moment ago: the grace begins with the first
//     answer to this process;
//   - that no core was at work: the grace starts again, and Nodes are compared with Machines if that is not known to be done;
//   - that a restore is suspected: until the time that it named.
//
// Until it has been read, which is tried again and again until ctx ends, the Cluster is frozen. Nothing waits for the reader.
func (f *Freezer) Recall(ctx context.Context, reader client.Reader) {
	f.read = func(key client.ObjectKey, of *target) { go f.readUntilKnown(ctx, reader, key, of) }
}

// RecallAtOnce is Recall for simulations: the caller that asks first reads, so the reader must answer at once.
func (f *Freezer) RecallAtOnce(reader client.Reader) {
	f.read = func(key client.ObjectKey, of *target) { f.attempt(context.Background(), reader, key, of) }
}

// begin starts a read of a Cluster unless one was started, and returns what is known of it. If it turns out at once not to be there, that
// is kept no more.
func (f *Freezer) begin(key client.ObjectKey) *target {
	f.mutex.Lock()
	of := f.cluster(key)
	begin := of.unread && !of.reading
	of.reading = of.reading || begin
	f.mutex.Unlock()
	if begin {
		f.read(key, of)
	}
	return of
}

// readUntilKnown reads a Cluster until that succeeds, it turns out not to be there, or nothing asks for it any more.
func (f *Freezer) readUntilKnown(ctx context.Context, reader client.Reader, key client.ObjectKey, of *target) {
	pauses := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Second}
	for {
		done, read := f.attempt(ctx, reader, key, of)
		if read {
			f.changed(key)
		}
		if done {
			return
		}
		timer := time.NewTimer(pauses.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// attempt reads a Cluster once, without the mutex, and reports whether it was read, and whether that is not to be tried again.
func (f *Freezer) attempt(ctx context.Context, reader client.Reader, key client.ObjectKey, of *target) (done, read bool) {
	ctx, cancel := context.WithTimeout(ctx, recallTimeout)
	defer cancel()
	cluster := &clusterv1.Cluster{}
	err := reader.Get(ctx, key, cluster)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case f.clusters[key] != of:
		return true, false
	case apierrors.IsNotFound(err):
		// It no longer exists, or the cache does not have it yet: then the next caller begins again. Nothing is kept of one that no longer
		// exists.
		of.reading = false
		if !of.counted && !of.examined {
			delete(f.clusters, key)
		}
		return true, false
	case err != nil:
		return false, false
	}
	of.unread = false
	f.take(of, cluster)
	return true, true
}

// take takes in what the previous core has reported of a Cluster. That core may have worked after this process has started, which was on
// standby: what counts is since when a caller asks. The mutex is held.
func (f *Freezer) take(of *target, cluster *clusterv1.Cluster) {
	created := cluster.CreationTimestamp.Time
	of.later = created.After(f.start.at)
	of.young = of.known.Sub(created) < f.options.Timeout
	reported := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	if reported == nil || reported.Status != metav1.ConditionFalse || !reported.LastTransitionTime.Time.Before(of.known) {
		return
	}
	switch reported.Reason {
	case TargetAPIServerUnreachableReason, RecoveringReason:
		of.frozen, of.recovered, of.recalled = reported.LastTransitionTime.Time, of.known, true
		if of.seen {
			of.recovered = f.clock.Now()
		}
	case CoreWasAwayReason:
		of.before = &start{at: of.known, last: lastAtWork(reported.Message), known: true, briefly: true}
		of.later = false
	case RestoreSuspectedReason:
		of.restored = suspicionOf(reported.Message, f.options.RestoreGrace, of.known)
	}
}

// startOf is what is known of the time before this process with regard to a Cluster. Of a longer time without a core, and a core that
// ended soon after it, the lease shows that one alone. The mutex is held.
func (f *Freezer) startOf(of *target) start {
	if of.later {
		// It was not there before, so nothing of it was lost, and none of its Nodes was left alone.
		return start{at: f.start.at, last: f.start.at, known: true}
	}
	if of.before != nil && (f.start.last.IsZero() || !f.start.away(f.options.Timeout)) {
		return *of.before
	}
	return f.start
}
