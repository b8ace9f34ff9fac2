package approval

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/bulkhead"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

const (
	// servingRetry is when a request is checked again that may become right, if no event has enqueued it: not every end of a pause is one.
	servingRetry = 15 * time.Second
	// servingTimeout is for how long: a kubelet waits for a quarter of an hour and then makes another request.
	servingTimeout = 20 * time.Minute
)

// servingReconciler approves the requests of kubelets for the certificates that they serve with. kube-controller-manager approves
// none of them, whatever approves client certificates. It denies none.
type servingReconciler struct {
	*Reconciler
	awaited awaited
}

// Reconcile finds the Machine of the Node that asks, decides, and approves, or comes again while the Machine may still get there.
func (r *servingReconciler) Reconcile(ctx context.Context, req Request) (reconcile.Result, error) {
	leave, entered := r.turns.Enter(req.Cluster)
	if !entered {
		return reconcile.Result{RequeueAfter: bulkhead.Pause()}, nil
	}
	defer leave()
	return r.reconcile(ctx, req).Result()
}

func (r *servingReconciler) reconcile(ctx context.Context, req Request) outcome.Outcome {
	csr, err := r.pending(ctx, req)
	if err != nil || csr == nil || csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return outcome.FromError(err)
	}
	name, ok := nodeOf(csr.Spec.Username)
	if !ok || name == "" {
		return outcome.Continue()
	}
	machine := client.ObjectKey{Namespace: req.Cluster.Namespace, Name: name}
	r.awaited.add(machine, req)
	end := r.judge(ctx, req, machine, csr)
	if end.Finished() {
		r.awaited.remove(machine, req)
	}
	return end
}

// judge approves the request of a Node, leaves it, or waits.
func (r *servingReconciler) judge(
	ctx context.Context,
	req Request,
	machine client.ObjectKey,
	csr *certificatesv1.CertificateSigningRequest,
) outcome.Outcome {
	s, err := r.machineOf(ctx, req.Cluster, machine)
	if err != nil || s == nil {
		return outcome.FromError(err)
	}
	defer s.events.Record(r.Recorder, s.config)
	switch paused, err := r.paused(ctx, req.Cluster, s); {
	case err != nil:
		return outcome.FromError(err)
	case paused:
		return outcome.WaitFor(servingRetry)
	}
	refused, later := refuseServing(csr, s.machine)
	if refused == "" {
		return outcome.FromError(r.approveServing(ctx, req.Cluster, s, csr))
	}
	if later && time.Since(csr.CreationTimestamp.Time) < servingTimeout {
		return outcome.WaitFor(servingRetry)
	}
	r.refuse(s, csr, refused)
	return outcome.Continue()
}

// machineOf returns the Machine whose name the Node has that asks, as every Node's of ours has; nil for a foreign Node.
func (r *servingReconciler) machineOf(ctx context.Context, cluster, key client.ObjectKey) (*subject, error) {
	machine := &clusterv1.Machine{}
	if err := r.Client.Get(ctx, key, machine); err != nil {
		return nil, errors.Wrapf(client.IgnoreNotFound(err), "reading Machine %s", key.Name)
	}
	if machine.Spec.ClusterName != cluster.Name {
		return nil, nil
	}
	return r.configured(ctx, machine)
}

func (r *servingReconciler) approveServing(
	ctx context.Context,
	cluster client.ObjectKey,
	s *subject,
	csr *certificatesv1.CertificateSigningRequest,
) error {
	remote, err := r.Targets.GetUncachedClient(ctx, cluster)
	if err != nil {
		return ignoreDisconnected(err)
	}
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: approvedReason, Message: "It names addresses of Machine " + client.ObjectKeyFromObject(s.machine).String() + " only",
	})
	if err := remote.SubResource("approval").Update(ctx, approved); err != nil {
		return errors.Wrapf(persist.IgnoreGone(err), "approving CertificateSigningRequest %s", csr.Name)
	}
	s.events.About(csr, corev1.EventTypeNormal, approvedEvent, "Approve",
		"Approved CertificateSigningRequest %s for the serving certificate of Node %s", csr.Name, s.machine.Name)
	return nil
}

// refuseServing returns why a request for a serving certificate is not approved, "" when it is, and whether that may change. What
// is served under an address is believed by any client that connects to it, hence only the Machine's own count: those that its
// infrastructure provider reports, not those that the Node claims. All rules have to be met:
//
//	1 the signer is kubernetes.io/kubelet-serving
//	2 the request is well-formed and signed with its own key
//	3 the user is the Machine's Node, in group system:nodes, and the subject is that user in O=system:nodes, and nothing else
//	4 its usages are those of a server: digital signature, server auth and perhaps key encipherment
//	5 it names a host or an address, and no e-mail addresses or URIs
//	6 the Machine is linked with that Node and is not being deleted
//	7 every DNS name is the Node's or one of the Machine's, every IP address is one of the Machine's
func refuseServing(csr *certificatesv1.CertificateSigningRequest, machine *clusterv1.Machine) (why string, later bool) {
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName {
		return "it is for another signer", false
	}
	request, ok := parse(csr.Spec.Request)
	if !ok {
		return unreadable, false
	}
	user := nodeUserPrefix + machine.Name
	subject := request.Subject
	switch {
	case csr.Spec.Username != user || !slices.Contains(csr.Spec.Groups, nodesGroup):
		return "it was not made by Node " + machine.Name, false
	case subject.CommonName != user || !slices.Equal(subject.Organization, []string{nodesGroup}) || len(subject.Names) != 2:
		return fmt.Sprintf("its subject must be O=%s and CN=%s, and nothing else", nodesGroup, user), false
	case !usagesOf(csr.Spec.Usages, certificatesv1.UsageServerAuth):
		return "its usages must be those of a server: digital signature, server auth and perhaps key encipherment", false
	case len(request.EmailAddresses)+len(request.URIs) > 0:
		return "it names e-mail addresses or URIs", false
	case len(request.DNSNames)+len(request.IPAddresses) == 0:
		return "it names no host and no address", false
	case !machine.DeletionTimestamp.IsZero():
		return "the Machine is being deleted", false
	case machine.Status.NodeRef.Name != machine.Name:
		return "the Machine is not linked with the Node", true
	}
	if foreign := foreignNames(request, machine); len(foreign) > 0 {
		return fmt.Sprintf("%s is not among status.addresses of Machine %s", strings.Join(foreign, ", "), machine.Name), true
	}
	return "", false
}

// foreignNames returns the hosts and addresses of a request that are not the Machine's.
func foreignNames(request *x509.CertificateRequest, machine *clusterv1.Machine) []string {
	hosts, addresses := map[string]bool{strings.ToLower(machine.Name): true}, map[netip.Addr]bool{}
	for _, a := range machine.Status.Addresses {
		switch a.Type {
		case clusterv1.MachineInternalIP, clusterv1.MachineExternalIP:
			// One address is written in many ways. What is not an address belongs to no Machine.
			if address, err := netip.ParseAddr(a.Address); err == nil {
				addresses[address.Unmap()] = true
			}
		case clusterv1.MachineHostName, clusterv1.MachineInternalDNS, clusterv1.MachineExternalDNS:
			hosts[strings.ToLower(a.Address)] = true
		}
	}
	var foreign []string
	for _, host := range request.DNSNames {
		if !hosts[strings.ToLower(host)] {
			foreign = append(foreign, host)
		}
	}
	for _, address := range request.IPAddresses {
		if parsed, ok := netip.AddrFromSlice(address); !ok || !addresses[parsed.Unmap()] {
			foreign = append(foreign, address.String())
		}
	}
	return foreign
}

// usagesOf reports whether the usages are a digital signature, the one given, perhaps key encipherment, and nothing else.
func usagesOf(usages []certificatesv1.KeyUsage, needed certificatesv1.KeyUsage) bool {
	for _, usage := range usages {
		if usage != certificatesv1.UsageDigitalSignature && usage != needed && usage != certificatesv1.UsageKeyEncipherment {
			return false
		}
	}
	return slices.Contains(usages, certificatesv1.UsageDigitalSignature) && slices.Contains(usages, needed)
}
