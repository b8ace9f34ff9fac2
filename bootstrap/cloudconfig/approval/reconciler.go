// Package approval approves the requests of kubelets for their client certificates, each only for the
// Machine that it belongs to: see README.md for the rules.
package approval

import (
	"context"
	"time"

	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/bulkhead"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/persist"
)

// cacheTimeout is how long the requests of a target cluster may take to be read for the first time while a worker waits for
// them, which without a limit lasts for as long as that cluster likes, even after its connection.
const cacheTimeout = 5 * time.Second

// pauseRetry is when a request of a Machine that is paused is checked again; that costs reads of caches and one of the Machine.
const pauseRetry = 15 * time.Second

// Targets returns clients of target clusters, see Connections. Errors are *remote.NotConnectedError while there is no connection.
type Targets interface {
	// GetReader reads requests from the cache.
	GetReader(ctx context.Context, cluster client.ObjectKey) (client.Reader, error)
	// GetUncachedClient reads live, and writes.
	GetUncachedClient(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
}

// Request is a certificate signing request in a target cluster.
type Request struct {
	// Cluster is the target cluster's Cluster.
	Cluster client.ObjectKey
	// Name of the request.
	Name string
}

// laterRetry is when a request is checked again that a later one of the same machine has precedence over.
const laterRetry = 15 * time.Second

// Reconciler approves requests. It denies none but those that it was about to approve when their machine made a later one: what it
// does not approve may be for another approver.
type Reconciler struct {
	// Client reads Machines, Clusters and CloudConfigs from the cache.
	Client client.Client
	// APIReader reads the Machine from the API server before anything is decided about it.
	APIReader client.Reader
	// Targets connects to target clusters.
	Targets Targets
	// TargetNamespace holds the Secrets of nodes in target clusters; nodeaccess.DefaultNamespace when empty.
	TargetNamespace string
	// WatchFilter restricts the controller to CloudConfigs with this value of the watch label; "" is all.
	WatchFilter string
	// Recorder records events on CloudConfigs.
	Recorder events.EventRecorder
	// Outcomes keeps what becomes of requests for first certificates; nil to keep nothing.
	Outcomes *Outcomes

	// refusals bounds the events about requests that are not approved; nil for no bound.
	refusals *refusals
	// turns bounds how many workers talk to one target cluster; nil for no bound.
	turns *bulkhead.Bulkhead[client.ObjectKey]
}

// Reconcile finds the Machine that has made the request, decides, and approves it or records why not.
func (r *Reconciler) Reconcile(ctx context.Context, req Request) (reconcile.Result, error) {
	leave, entered := r.turns.Enter(req.Cluster)
	if !entered {
		// A worker must not wait for what others of the Cluster wait for already.
		return reconcile.Result{RequeueAfter: bulkhead.Pause()}, nil
	}
	defer leave()
	return r.reconcile(ctx, req).Result()
}

func (r *Reconciler) reconcile(ctx context.Context, req Request) outcome.Outcome {
	csr, err := r.read(ctx, req)
	if err != nil || csr == nil {
		return outcome.FromError(err)
	}
	if !undecided(csr) {
		return outcome.FromError(r.noteDecided(ctx, req.Cluster, csr))
	}
	s, err := r.subjectOf(ctx, req.Cluster, csr)
	if err != nil || s == nil {
		return outcome.FromError(err)
	}
	defer s.events.Record(r.Recorder, s.config)
	if !s.config.Spec.ProviderApproves() {
		r.note(s.machine, csr, RequestPending, "spec.bootstrap.csrApproval leaves the approval to another approver")
		return outcome.Continue()
	}
	switch paused, err := r.paused(ctx, req.Cluster, s); {
	case err != nil:
		return outcome.FromError(err)
	case paused:
		r.note(s.machine, csr, RequestPending, "the Cluster, the Machine or the CloudConfig is paused")
		// Not every end of a pause is an event.
		return outcome.WaitFor(pauseRetry)
	}
	remote, err := r.Targets.GetUncachedClient(ctx, req.Cluster)
	if err != nil {
		return outcome.FromError(ignoreDisconnected(err))
	}
	if err := r.observe(ctx, remote, s, csr); err != nil {
		return outcome.FromError(err)
	}
	if s.leftover() {
		r.note(s.machine, csr, RequestPending, "the node's Secret is not known to be of this Machine; its CloudConfig has to be reconciled")
		return outcome.WaitFor(laterRetry)
	}
	return r.settle(ctx, req, remote, s, csr)
}

// settle decides about the request of a subject of which everything was read.
func (r *Reconciler) settle(
	ctx context.Context,
	req Request,
	remote client.Client,
	s *subject,
	csr *certificatesv1.CertificateSigningRequest,
) outcome.Outcome {
	log := ctrl.LoggerFrom(ctx).WithValues("request", req.Name, "machine", s.machine.Name)
	approve, reason := decide(csr, s.observed)
	if !approve {
		log.Info("Not approving a certificate signing request", "reason", reason)
		r.note(s.machine, csr, RequestRefused, reason)
		r.refuse(s, csr, reason)
		if retry := nodeRetry(csr, s.observed, time.Now()); retry > 0 {
			return outcome.WaitFor(retry)
		}
		return outcome.Continue()
	}
	if !s.observed.Joined {
		later, err := r.later(ctx, req.Cluster, csr, s.observed)
		if err != nil {
			return outcome.FromError(ignoreDisconnected(err))
		}
		if later != "" {
			log.Info("Leaving a certificate signing request to a later one of the same machine", "later", later)
			return outcome.WaitFor(laterRetry)
		}
	}
	err := r.approve(ctx, remote, s, csr)
	if refusal := persist.Refusal(err); refusal != "" {
		r.note(s.machine, csr, RequestPending, "the approval cannot be written: "+refusal)
	}
	// When another client has changed the Secret or the request meanwhile, it is checked again.
	return outcome.FromError(err)
}

// pending reads the request; nil when there is nothing to decide any more.
func (r *Reconciler) pending(ctx context.Context, req Request) (*certificatesv1.CertificateSigningRequest, error) {
	csr, err := r.read(ctx, req)
	if err != nil || csr == nil || !undecided(csr) {
		return nil, err
	}
	return csr, nil
}

// read reads the request from the cache; nil when there is none.
func (r *Reconciler) read(ctx context.Context, req Request) (*certificatesv1.CertificateSigningRequest, error) {
	reader, err := r.Targets.GetReader(ctx, req.Cluster)
	if err != nil {
		return nil, ignoreDisconnected(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{}
	limited, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if err := reader.Get(limited, client.ObjectKey{Name: req.Name}, csr); err != nil {
		if limited.Err() != nil {
			// With the first read each request is an event.
			return nil, ctx.Err()
		}
		return nil, errors.Wrapf(client.IgnoreNotFound(ignoreDisconnected(err)), "reading CertificateSigningRequest %s", req.Name)
	}
	return csr, nil
}

// undecided reports whether nothing has approved or denied the request.
func undecided(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) == 0 && len(csr.Status.Certificate) == 0 && csr.DeletionTimestamp.IsZero()
}

// approve records the first approval for a Machine and then approves. A crash in between is made up
// for when the request is seen again: the record names it.
func (r *Reconciler) approve(ctx context.Context, remote client.Client, s *subject, csr *certificatesv1.CertificateSigningRequest) error {
	if recorded, _ := parseApproval(s.observed.Approved); !s.observed.Joined && recorded != requestID(csr) {
		if err := r.supersede(ctx, remote, s.observed.Outstanding, csr); err != nil {
			return err
		}
		secret := s.secret.DeepCopy()
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, ApprovedAnnotation, approvalOf(csr))
		// An update fails when the Secret was changed meanwhile, also by a concurrent approval.
		if err := remote.Update(ctx, secret); err != nil {
			return errors.Wrapf(err, "recording the approval in Secret %s", secret.Name)
		}
	}
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: approvedReason, Message: "The request is of Machine " + client.ObjectKeyFromObject(s.machine).String(),
	})
	if err := remote.SubResource("approval").Update(ctx, approved); err != nil {
		return errors.Wrapf(persist.IgnoreGone(err), "approving CertificateSigningRequest %s", csr.Name)
	}
	r.note(s.machine, csr, RequestApproved, "")
	s.events.About(csr, corev1.EventTypeNormal, approvedEvent, "Approve",
		"Approved CertificateSigningRequest %s for Node %s", csr.Name, s.observed.NodeName)
	return nil
}

// supersede denies the request whose approval was recorded and not given, so that an approver that is about to approve it no longer can.
func (r *Reconciler) supersede(ctx context.Context, remote client.Client, outstanding, by *certificatesv1.CertificateSigningRequest) error {
	if outstanding == nil {
		return nil
	}
	outstanding.Status.Conditions = append(outstanding.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue,
		Reason: supersededReason, Message: "Its machine has made a later request: " + by.Name,
	})
	err := remote.SubResource("approval").Update(ctx, outstanding)
	return errors.Wrapf(persist.IgnoreGone(err), "denying CertificateSigningRequest %s", outstanding.Name)
}

// paused reports whether the Cluster, the Machine or its CloudConfig is.
func (r *Reconciler) paused(ctx context.Context, key client.ObjectKey, s *subject) (bool, error) {
	cluster := &clusterv1.Cluster{}
	err := r.Client.Get(ctx, key, cluster)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	by := append(paused.By(s.machine, cluster), paused.By(s.config, cluster)...)
	return len(by) > 0, errors.Wrapf(err, "reading Cluster %s", key.Name)
}
