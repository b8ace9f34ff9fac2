package controller

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/remote"
)

// retryUnwatched is when something is read again whose change raises no event here: Secrets that a
// person provides. Watching Secrets would need the right to read them all.
const retryUnwatched = time.Minute

// connect takes a client of the target cluster. Every connection and disconnection is an event.
func (r *Reconciler) connect(ctx context.Context, s *scope) outcome.Outcome {
	r.unconnected.add(s.Key())
	live, err := r.Targets.GetUncachedClient(ctx, clusterKey(s.machine))
	var disconnected *remote.NotConnectedError
	if errors.As(err, &disconnected) {
		return s.awaits(
			bootstrapv1.WaitingForConnectionReason,
			fmt.Sprintf("No connection to Cluster %s: %s", s.cluster.Name, r.remedy(disconnected, s.cluster.Name)),
		)
	}
	r.unconnected.remove(s.Key())
	if err != nil {
		return outcome.FromError(err)
	}
	names := nodeaccess.NamesFor(s.machine.Namespace, s.machine.Spec.ClusterName, s.machine.Name)
	s.target = &nodeaccess.Machine{
		Client: live, Names: names, Config: client.ObjectKeyFromObject(s.Object).String(), Namespace: r.TargetNamespace,
	}
	s.Object.Status.Target.Name = names.Object()
	return outcome.Continue()
}

// remedy is why there is no connection to the API server of a Cluster, and what to do.
func (r *Reconciler) remedy(e *remote.NotConnectedError, cluster string) string {
	if e.Reason != remote.Unreachable && e.Reason != remote.Unauthorized {
		return e.Message
	}
	if r.TargetKubeconfig != "" {
		return fmt.Sprintf("%s: check server and credentials in the manager's --target-kubeconfig", e.Message)
	}
	return fmt.Sprintf("%s: check server and credentials in Secret %s", e.Message, remote.SecretName(cluster))
}

// readEndpoint reads from the Cluster's kubeconfig how machines reach the API server. A Secret that is not used for the connection is
// not used for machines either.
func (r *Reconciler) readEndpoint(ctx context.Context, s *scope) outcome.Outcome {
	if r.TargetKubeconfig != "" {
		return r.readSharedEndpoint(s)
	}
	raw, err := remote.ReadSecret(ctx, r.APIReader, clusterKey(s.machine))
	var unusable *remote.NotConnectedError
	if err != nil && (!errors.As(err, &unusable) || unusable.Unwrap() != nil) {
		return outcome.FromError(err)
	}
	message := ""
	if unusable != nil {
		message = unusable.Message
	} else if endpoint, invalid := parseEndpoint(raw); invalid != "" {
		message = fmt.Sprintf("Secret %s cannot be used: %s", remote.SecretName(s.cluster.Name), invalid)
	} else {
		s.endpoint = endpoint
	}
	if message != "" {
		return s.awaitsFor(retryUnwatched, bootstrapv1.KubeconfigInvalidReason, message)
	}
	s.preferDeclaredEndpoint()
	return outcome.Continue()
}

// readSharedEndpoint reads it from the kubeconfig that the manager was started with.
func (r *Reconciler) readSharedEndpoint(s *scope) outcome.Outcome {
	const what = "the kubeconfig that the manager was started with cannot be used"
	server, authority, err := remote.Endpoint(r.TargetKubeconfig)
	switch {
	case err != nil:
		// What it says may quote the kubeconfig; it is in the log of the connection.
		return s.awaitsFor(retryUnwatched, bootstrapv1.KubeconfigInvalidReason, what)
	case len(authority) == 0:
		return s.awaitsFor(retryUnwatched, bootstrapv1.KubeconfigInvalidReason,
			what+": it has no certificate authority, without which machines cannot trust the API server")
	}
	s.endpoint = endpoint{server: trimSlash(server), authority: authority}
	s.preferDeclaredEndpoint()
	return outcome.Continue()
}

// preferDeclaredEndpoint: what the Cluster declares is meant for its machines; a kubeconfig may be meant for this side.
func (s *scope) preferDeclaredEndpoint() {
	if s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		s.endpoint.server = "https://" + s.cluster.Spec.ControlPlaneEndpoint.String()
	}
}

// parseEndpoint takes the current cluster's server and CA out of a kubeconfig; otherwise it returns what
// is wrong, without repeating anything of it.
func parseEndpoint(raw []byte) (endpoint, string) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return endpoint{}, "it is not a kubeconfig"
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return endpoint{}, "its current context does not exist"
	}
	cluster, ok := config.Clusters[current.Cluster]
	if !ok {
		return endpoint{}, "the cluster of its current context does not exist"
	}
	if server, err := url.Parse(cluster.Server); err != nil || server.Scheme != "https" || server.Host == "" {
		return endpoint{}, "the server must be an https URL"
	}
	if len(cluster.CertificateAuthorityData) == 0 {
		return endpoint{}, "certificate-authority-data is missing, without which machines cannot trust the API server"
	}
	return endpoint{server: trimSlash(cluster.Server), authority: cluster.CertificateAuthorityData}, ""
}

func trimSlash(server string) string {
	for len(server) > 0 && server[len(server)-1] == '/' {
		server = server[:len(server)-1]
	}
	return server
}
