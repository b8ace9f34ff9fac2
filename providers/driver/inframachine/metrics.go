package inframachine

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// What becomes of the Machine of an instance that the cloud takes back.
const (
	resultDeleted = "deleted"
	resultGone    = "gone"
	resultKept    = "kept"
	resultLate    = "late"
	resultRefused = "refused"
)

var (
	timeToProvisioned = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "millwright_machine_provisioned_seconds",
		Help:    "Time from the creation of a provider's machine object to when its instance was first seen running.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 12),
	}, []string{"kind"})

	timeToState = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "millwright_machine_state_seconds",
		Help:    "Time to when an instance was seen to enter a state, until it first runs and once its object is deleted: from the creation of the provider's machine object or, once that is deleted, from its deletion. State Released is when nothing is left and the object goes.",
		Buckets: prometheus.ExponentialBuckets(1, 2, 12),
	}, []string{"kind", "state"})

	failures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_machine_failures_total",
		Help: "Number of provider's machines with a terminal failure, by its reason.",
	}, []string{"kind", "reason"})

	adoptions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_machine_adoptions_total",
		Help: "Number of instances that provider's machines have taken back that were recreated with the provider ID of one that was launched under their name.",
	}, []string{"kind"})

	interrupted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_machine_interruptions_total",
		Help: "Number of announced interruptions that were to have a Machine deleted, by what became of it: deleted, gone (or being deleted already), kept (not one to be replaced), late (not deleted in time); and of refused deletions, which are tried again.",
	}, []string{"kind", "result"})
)

func init() {
	metrics.Registry.MustRegister(timeToProvisioned, timeToState, failures, adoptions, interrupted)
}

// measure counts what has changed with the status that has just been written.
func (r *Reconciler[M]) measure(s *scope[M], before, after *driverv1.MachineStatus) {
	if !before.IsProvisioned() && after.IsProvisioned() {
		timeToProvisioned.WithLabelValues(r.Kind).Observe(s.Now.Sub(s.Object.GetCreationTimestamp().Time).Seconds())
	}
	if before.InstanceState != after.InstanceState && after.InstanceState != "" && (!before.IsProvisioned() || s.Deleting()) {
		r.reached(s, string(after.InstanceState))
	}
	if !before.HasFailed() && after.HasFailed() {
		failures.WithLabelValues(r.Kind, *after.FailureReason).Inc()
	}
}

// stateReleased is the state of an object that waits for nothing of its instance any more.
const stateReleased = "Released"

// reached measures how long it took to a state.
func (r *Reconciler[M]) reached(s *scope[M], state string) {
	since := s.Object.GetCreationTimestamp().Time
	if deleted := s.Object.GetDeletionTimestamp(); deleted != nil {
		since = deleted.Time
	}
	timeToState.WithLabelValues(r.Kind, state).Observe(max(0, s.Now.Sub(since).Seconds())) // Clocks differ.
}
