package controller

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/util/kubeconfig"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/target"
)

// retryUnwatched is when something is read again whose change raises no event here: Secrets that a
// person provides. Watching Secrets would need the right to read them all.
const retryUnwatched = time.Minute

// connect takes a client of the target cluster. Every connection and disconnection is an event.
func (r *Reconciler) connect(ctx context.Context, s *scope) error {
	remote, err := r.Targets.GetUncachedClient(ctx, clusterKey(s.machine))
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		s.awaits(bootstrapv1.WaitingForConnectionReason, fmt.Sprintf(
			"there is no connection to Cluster %s; Secret %s-kubeconfig must lead to its API server", s.cluster.Name, s.cluster.Name))
		return nil
	}
	if err != nil {
		return err
	}
	names := target.NamesFor(s.machine.Namespace, s.machine.Spec.ClusterName, s.machine.Name)
	s.target = &target.Machine{Client: remote, Names: names, Config: client.ObjectKeyFromObject(s.config).String(), Namespace: r.TargetNamespace}
	s.config.Status.Target.Name = names.Object()
	return nil
}

// readEndpoint reads from the Cluster's kubeconfig how machines reach the API server.
func (r *Reconciler) readEndpoint(ctx context.Context, s *scope) error {
	raw, err := kubeconfig.FromSecret(ctx, r.Live, clusterKey(s.machine))
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	invalid := "it does not exist"
	if err == nil {
		s.endpoint, invalid = parseEndpoint(raw)
	}
	if invalid != "" {
		s.awaits(bootstrapv1.KubeconfigInvalidReason, fmt.Sprintf("Secret %s-kubeconfig cannot be used: %s", s.cluster.Name, invalid))
		s.wake(s.now.Add(retryUnwatched))
		return nil
	}
	if s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		// What the Cluster declares is meant for its machines; a kubeconfig may be meant for this side.
		s.endpoint.server = "https://" + s.cluster.Spec.ControlPlaneEndpoint.String()
	}
	return nil
}

// parseEndpoint takes the current cluster's server and CA out of a kubeconfig; otherwise it says what
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
