package approval

import (
	"context"
	"slices"
	"strings"

	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/bootstrap/cloudconfig/ownership"
	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/predicates"
)

// ApprovedAnnotation on a node's Secret names the request that was approved for the Machine before it
// joined, and the id of the token that it was made with: "name/uid/token". It is written before the approval, so that there is
// never a second with one token.
const ApprovedAnnotation = "bootstrap.millwright.dev/approved-request"

// subject is the Machine that has made a request, with what was read about it.
type subject struct {
	machine *clusterv1.Machine
	config  *bootstrapv1.CloudConfig
	target  *nodeaccess.Machine
	// secret is the node's, live; nil when there is none.
	secret   *corev1.Secret
	observed Observation
	// events are recorded on the CloudConfig once the request has been dealt with.
	events events.Pending
}

// subjectOf finds the Machine that has made the request, by the group of its join token or by the name
// of its Node; nil when it is none of ours.
func (r *Reconciler) subjectOf(
	ctx context.Context,
	cluster client.ObjectKey,
	csr *certificatesv1.CertificateSigningRequest,
) (*subject, error) {
	index, value := nodeIndex, ""
	if names, ok := nodeaccess.NamesOfJoinGroups(csr.Spec.Groups); ok {
		index, value = hashIndex, names.Hash
	} else if name, ok := nodeOf(csr.Spec.Username); ok {
		value = name
	}
	if value == "" {
		return nil, nil
	}
	machines := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, machines, client.InNamespace(cluster.Namespace), client.MatchingFields{index: value}); err != nil {
		return nil, errors.Wrap(err, "listing Machines")
	}
	for i := range machines.Items {
		machine := &machines.Items[i]
		if machine.Spec.ClusterName != cluster.Name {
			continue
		}
		return r.configured(ctx, machine)
	}
	return nil, nil
}

// configured returns the subject for a Machine that has a CloudConfig, each of them as the API server has it: a pause or a
// deletion that the cache does not show yet counts. It returns nil for any other Machine.
func (r *Reconciler) configured(ctx context.Context, cached *clusterv1.Machine) (*subject, error) {
	if _, ok := ownership.Named(cached); !ok {
		return nil, nil
	}
	s := &subject{machine: &clusterv1.Machine{}, config: &bootstrapv1.CloudConfig{}}
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(cached), s.machine); err != nil {
		return nil, errors.Wrapf(client.IgnoreNotFound(err), "reading Machine %s", cached.Name)
	}
	name, ok := ownership.Named(s.machine)
	if !ok {
		return nil, nil
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.machine.Namespace, Name: name}, s.config); err != nil {
		return nil, errors.Wrapf(client.IgnoreNotFound(err), "reading CloudConfig %s", name)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, s.config) {
		// Another manager decides. When the label changes, the kubelet's next request is reconciled, within a quarter of an hour.
		return nil, nil
	}
	if ownership.Refuse(s.config, s.machine) != "" {
		// Nothing was created for this Machine through it; its own condition reports that.
		return nil, nil
	}
	return s, nil
}

// observe reads, live, what the decision rests on. The Secret is what the machine got its token from,
// hence it knows the token before any cache does.
func (r *Reconciler) observe(ctx context.Context, remote client.Client, s *subject, csr *certificatesv1.CertificateSigningRequest) error {
	names := nodeaccess.NamesFor(s.machine.Namespace, s.machine.Spec.ClusterName, s.machine.Name)
	s.target = &nodeaccess.Machine{
		Client:    remote,
		Names:     names,
		Config:    client.ObjectKeyFromObject(s.config).String(),
		Namespace: r.TargetNamespace,
	}
	secret, err := s.target.NodeSecret(ctx)
	if err != nil {
		return err
	}
	s.secret = secret
	s.observed = observationOf(s.machine, names, secret)
	if s.observed.Outstanding, err = outstanding(ctx, remote, s.observed.Approved, csr); err != nil {
		return err
	}
	existing := &corev1.Node{}
	err = remote.Get(ctx, client.ObjectKey{Name: s.observed.NodeName}, existing)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrapf(err, "reading Node %s", s.observed.NodeName)
	}
	if err == nil {
		s.observed.Node = observedNode(existing, s.machine)
	}
	return nil
}

// leftover reports whether the node's Secret was written for another machine than the CloudConfig names the token of: for an earlier one
// of the same name. Nor does anything follow from it while the status of the CloudConfig does not name one. A Machine that is
// linked needs no token.
func (s *subject) leftover() bool {
	if s.secret == nil || s.observed.Joined {
		return false
	}
	of := nodeaccess.WrittenFor(s.secret)
	return of != "" && of != s.config.Status.Target.DownloadTokenID
}

// outstanding returns the request that is recorded as approved when that is not this one and nothing has decided it.
func outstanding(
	ctx context.Context,
	remote client.Reader,
	approved string,
	csr *certificatesv1.CertificateSigningRequest,
) (*certificatesv1.CertificateSigningRequest, error) {
	recorded, _ := parseApproval(approved)
	name, uid, _ := strings.Cut(recorded, "/")
	if name == "" || recorded == requestID(csr) {
		return nil, nil
	}
	other := &certificatesv1.CertificateSigningRequest{}
	if err := remote.Get(ctx, client.ObjectKey{Name: name}, other); err != nil {
		return nil, errors.Wrapf(client.IgnoreNotFound(err), "reading CertificateSigningRequest %s", name)
	}
	if string(other.UID) != uid || !undecided(other) {
		return nil, nil
	}
	return other, nil
}

// later returns the name of a later request of the same machine that could be approved as well; "" when there is none. The kubelet
// has lost the key of this one then.
func (r *Reconciler) later(
	ctx context.Context,
	cluster client.ObjectKey,
	csr *certificatesv1.CertificateSigningRequest,
	observed Observation,
) (string, error) {
	reader, err := r.Targets.GetReader(ctx, cluster)
	if err != nil {
		return "", err
	}
	all := &certificatesv1.CertificateSigningRequestList{}
	// They are only looked at, and there may be thousands.
	limited, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if err := reader.List(limited, all, client.UnsafeDisableDeepCopy); err != nil {
		return "", errors.Wrap(err, "listing CertificateSigningRequests")
	}
	if recorded, _ := parseApproval(observed.Approved); recorded == requestID(csr) {
		observed.Outstanding = csr
	}
	for i := range all.Items {
		other := &all.Items[i]
		if !csr.CreationTimestamp.Before(&other.CreationTimestamp) || !slices.Contains(other.Spec.Groups, observed.JoinGroup) ||
			!undecided(other) {
			continue
		}
		if approve, _ := decide(other, observed); approve {
			return other.Name, nil
		}
	}
	return "", nil
}

// observedNode is what a Node has. Whose it is by its annotations is believed against this Machine only: the core writes
// them, and a kubelet that lies there harms nothing but itself.
func observedNode(node *corev1.Node, machine *clusterv1.Machine) *ObservedNode {
	observed := &ObservedNode{ProviderID: node.Spec.ProviderID, Older: node.CreationTimestamp.Before(&machine.CreationTimestamp)}
	name := node.Annotations[clusterv1.MachineAnnotation]
	namespace := node.Annotations[clusterv1.ClusterNamespaceAnnotation]
	cluster := node.Annotations[clusterv1.ClusterNameAnnotation]
	if name != "" && (name != machine.Name || namespace != machine.Namespace || cluster != machine.Spec.ClusterName) {
		observed.OfAnother = namespace + "/" + name
	}
	return observed
}

// observationOf is what the objects have.
func observationOf(machine *clusterv1.Machine, names nodeaccess.Names, secret *corev1.Secret) Observation {
	observed := Observation{
		NodeName:  machine.Name,
		Joined:    machine.Status.NodeRef.Name == machine.Name,
		Deleting:  !machine.DeletionTimestamp.IsZero(),
		JoinGroup: names.JoinGroup(),
	}
	if ptr.Deref(machine.Status.Initialization.InfrastructureProvisioned, false) {
		observed.ProviderID = machine.Spec.ProviderID
	}
	if secret == nil {
		return observed
	}
	observed.Approved = secret.Annotations[ApprovedAnnotation]
	observed.JoinTokenIDs = nodeaccess.JoinTokens(secret)
	if token, ok := nodeaccess.ParseToken(string(secret.Data[node.JoinTokenKey])); ok {
		observed.JoinTokenIDs = append(observed.JoinTokenIDs, token.ID)
	}
	return observed
}
