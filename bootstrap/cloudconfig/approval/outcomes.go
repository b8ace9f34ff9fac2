package approval

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/bootstrap/cloudconfig/ownership"
	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/wake"
)

// RequestState is what has become of a certificate request.
type RequestState string

const (
	// RequestPending is a request without a decision.
	RequestPending RequestState = "Pending"
	// RequestRefused is one that this provider does not approve, that a user has denied, or that could not be signed.
	RequestRefused RequestState = "Refused"
	// RequestApproved is one that is approved and has no certificate yet.
	RequestApproved RequestState = "Approved"
	// RequestIssued is one that has its certificate.
	RequestIssued RequestState = "Issued"
)

// Outcome is what has become of the latest request of a machine for its first certificate.
type Outcome struct {
	// Request is the name of the CertificateSigningRequest.
	Request string
	State   RequestState
	// Reason is why it is in that state; empty if the state is enough. At most 1 KiB.
	Reason string
	// Made is when the request was created.
	Made time.Time
}

// Outcomes keeps the Outcome of each machine that has not joined, for the conditions of its CloudConfig. It is in memory: after a
// restart the requests of the last hour, for which the API server keeps them at least, are seen again. The zero value is ready;
// nil knows nothing.
type Outcomes struct {
	mu     sync.Mutex
	byHash map[string]Outcome
	// refused wakes CloudConfigs.
	refused wake.Waker
}

// Of returns the Outcome of a machine.
func (o *Outcomes) Of(names nodeaccess.Names) (Outcome, bool) {
	if o == nil {
		return Outcome{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	outcome, ok := o.byHash[names.Hash]
	return outcome, ok
}

// Forget drops what is known of a machine that has joined or no longer exists.
func (o *Outcomes) Forget(names nodeaccess.Names) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byHash, names.Hash)
}

// Source enqueues the CloudConfig of a machine whose request is refused. Other states are looked at when it waits for long: a join
// without trouble costs no write.
func (o *Outcomes) Source() source.Source { return o.refused.Source() }

// Record keeps the outcome of a request, unless a later request is known. A machine whose requests are refused one after the
// other is woken once.
func (o *Outcomes) Record(
	names nodeaccess.Names,
	config client.ObjectKey,
	csr *certificatesv1.CertificateSigningRequest,
	state RequestState,
	reason string,
) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before, known := o.byHash[names.Hash]
	if known && before.Request != csr.Name && before.Made.After(csr.CreationTimestamp.Time) {
		return
	}
	if o.byHash == nil {
		o.byHash = map[string]Outcome{}
	}
	o.byHash[names.Hash] = Outcome{Request: csr.Name, State: state, Reason: events.Cut(reason), Made: csr.CreationTimestamp.Time}
	if state == RequestRefused && before.State != RequestRefused {
		o.refused.Enqueue(config)
	}
}

// stateOf returns the state of a request by what others have decided.
func stateOf(csr *certificatesv1.CertificateSigningRequest) (state RequestState, reason string) {
	state = RequestPending
	for _, c := range csr.Status.Conditions {
		switch c.Type {
		case certificatesv1.CertificateDenied:
			return RequestRefused, "it was denied: " + c.Message
		case certificatesv1.CertificateFailed:
			return RequestRefused, "its signer could not sign it: " + c.Message
		case certificatesv1.CertificateApproved:
			state = RequestApproved
		}
	}
	if len(csr.Status.Certificate) > 0 {
		state = RequestIssued
	}
	return state, ""
}

// note records the state of a request for a first certificate in Outcomes.
func (r *Reconciler) note(machine *clusterv1.Machine, csr *certificatesv1.CertificateSigningRequest, state RequestState, reason string) {
	names, ok := nodeaccess.NamesOfJoinGroups(csr.Spec.Groups)
	config, named := ownership.Named(machine)
	if !ok || !named || machine.Status.NodeRef.IsDefined() {
		return
	}
	r.Outcomes.Record(names, client.ObjectKey{Namespace: machine.Namespace, Name: config}, csr, state, reason)
}

// noteDecided finds, in the cache, the Machine that has made a request which is decided.
func (r *Reconciler) noteDecided(ctx context.Context, cluster client.ObjectKey, csr *certificatesv1.CertificateSigningRequest) error {
	names, ok := nodeaccess.NamesOfJoinGroups(csr.Spec.Groups)
	superseded := func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Reason == supersededReason }
	if !ok || r.Outcomes == nil || slices.ContainsFunc(csr.Status.Conditions, superseded) {
		return nil
	}
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(cluster.Namespace), client.MatchingFields{hashIndex: names.Hash}); err != nil {
		return errors.Wrap(err, "listing Machines")
	}
	for i := range machines.Items {
		if machines.Items[i].Spec.ClusterName == cluster.Name {
			state, reason := stateOf(csr)
			r.note(&machines.Items[i], csr, state, reason)
		}
	}
	return nil
}
