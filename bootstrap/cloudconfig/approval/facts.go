package approval

import (
	"context"

	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/target"
)

// ApprovedAnnotation on a node's Secret names the request that was approved for the Machine before it
// joined, "name/uid". It is written before the approval, so that there is never a second.
const ApprovedAnnotation = "bootstrap.millwright.dev/approved-request"

// subject is the Machine that has made a request, with what was read about it.
type subject struct {
	machine *clusterv1.Machine
	config  *bootstrapv1.CloudConfig
	target  *target.Machine
	// secret is the node's, live; nil when there is none.
	secret *corev1.Secret
	facts  Facts
}

// subjectOf finds the Machine that has made the request, by the group of its join token or by the name
// of its Node; nil when it is none of ours.
func (r *Reconciler) subjectOf(ctx context.Context, cluster client.ObjectKey, csr *certificatesv1.CertificateSigningRequest) (*subject, error) {
	index, value := nodeIndex, ""
	if names, ok := target.NamesOfJoinGroups(csr.Spec.Groups); ok {
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

// configured returns the subject for a Machine that has a CloudConfig; nil for any other.
func (r *Reconciler) configured(ctx context.Context, machine *clusterv1.Machine) (*subject, error) {
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.Kind != "CloudConfig" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return nil, nil
	}
	config := &bootstrapv1.CloudConfig{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}, config); err != nil {
		return nil, errors.Wrapf(client.IgnoreNotFound(err), "reading CloudConfig %s", ref.Name)
	}
	return &subject{machine: machine, config: config}, nil
}

// observe reads, live, what the decision rests on. The Secret is what the machine got its token from,
// hence it knows the token before any cache does.
func (r *Reconciler) observe(ctx context.Context, remote client.Client, s *subject) error {
	names := target.NamesFor(s.machine.Namespace, s.machine.Spec.ClusterName, s.machine.Name)
	s.target = &target.Machine{Client: remote, Names: names, Config: client.ObjectKeyFromObject(s.config).String()}
	secret, err := s.target.NodeSecret(ctx)
	if err != nil {
		return err
	}
	s.secret = secret
	s.facts = factsOf(s.machine, names, secret)
	existing := &corev1.Node{}
	err = remote.Get(ctx, client.ObjectKey{Name: s.facts.NodeName}, existing)
	if client.IgnoreNotFound(err) != nil {
		return errors.Wrapf(err, "reading Node %s", s.facts.NodeName)
	}
	s.facts.NodeExists = err == nil
	s.facts.NodeProviderID = existing.Spec.ProviderID
	return nil
}

// factsOf collects what the objects say.
func factsOf(machine *clusterv1.Machine, names target.Names, secret *corev1.Secret) Facts {
	facts := Facts{
		NodeName:   machine.Name,
		ProviderID: machine.Spec.ProviderID,
		Joined:     machine.Status.NodeRef.IsDefined(),
		Deleting:   !machine.DeletionTimestamp.IsZero(),
		JoinGroup:  names.JoinGroup(),
	}
	if facts.Joined {
		facts.NodeName = machine.Status.NodeRef.Name
	}
	if secret == nil {
		return facts
	}
	facts.Approved = secret.Annotations[ApprovedAnnotation]
	if token, ok := target.ParseToken(string(secret.Data[node.JoinTokenKey])); ok {
		facts.JoinTokenID = token.ID
	}
	return facts
}
