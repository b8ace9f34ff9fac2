package remote

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	kubeconfigSuffix = "-kubeconfig"
	// bootstrapGroups begin the API groups of bootstrap configs, as is the custom among providers.
	bootstrapGroups = "bootstrap."
)

// SecretKey is the key of the kubeconfig in its Secret.
const SecretKey = "value"

// SecretName returns the name of the Secret that holds the kubeconfig of a Cluster, in the Cluster's
// namespace under the key `value`.
func SecretName(cluster string) string { return cluster + kubeconfigSuffix }

// clusterOf returns the name of the Cluster whose kubeconfig a Secret of that name would hold.
func clusterOf(secret string) (string, bool) {
	cluster, ok := strings.CutSuffix(secret, kubeconfigSuffix)
	return cluster, ok && cluster != ""
}

// kubeconfig is how to reach a cluster, read from a Secret or a file.
type kubeconfig struct {
	config *rest.Config
	// hash identifies the content, so that a Secret that is written again with the same content changes nothing.
	hash string
}

// kubeconfigOf reads the kubeconfig of a Cluster from where it is, within RequestTimeout: who waits for it probes nothing meanwhile.
func (o Options) kubeconfigOf(ctx context.Context, cluster types.NamespacedName) (kubeconfig, error) {
	if o.Kubeconfig == "" {
		ctx, cancel := context.WithTimeout(ctx, o.RequestTimeout)
		defer cancel()
		return readKubeconfig(ctx, o.Secrets, cluster)
	}
	from, err := readSingle(o.Kubeconfig)
	if err != nil {
		return kubeconfig{}, &NotConnectedError{
			Reason:  KubeconfigInvalid,
			Message: "the kubeconfig that the manager was started with cannot be used",
			cause:   err,
		}
	}
	return from, nil
}

// ReadSecret reads the kubeconfig Secret of a Cluster live, since caches have Secrets by metadata only. The error is a
// *NotConnectedError when there is no Secret, or one that is not used; its cause is set when the Secret could not be read.
func ReadSecret(ctx context.Context, reader client.Reader, cluster types.NamespacedName) ([]byte, error) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: SecretName(cluster.Name)}
	if err := reader.Get(ctx, key, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &NotConnectedError{Reason: KubeconfigMissing,
				Message: fmt.Sprintf("Secret %s does not exist: create it with the kubeconfig under the key %q", key.Name, SecretKey)}
		}
		return nil, &NotConnectedError{Reason: KubeconfigMissing, Message: fmt.Sprintf("Secret %s could not be read", key.Name), cause: err}
	}
	if whose := Foreign(secret, cluster.Name); whose != "" {
		return nil, &NotConnectedError{Reason: KubeconfigInvalid, Message: fmt.Sprintf("Secret %s is not used: it is %s", key.Name, whose)}
	}
	data := secret.Data[SecretKey]
	if len(data) == 0 {
		return nil, &NotConnectedError{Reason: KubeconfigInvalid, Message: fmt.Sprintf("Secret %s has no key %q", key.Name, SecretKey)}
	}
	return data, nil
}

// readKubeconfig reads the Secret and checks its content.
func readKubeconfig(ctx context.Context, reader client.Reader, cluster types.NamespacedName) (kubeconfig, error) {
	data, err := ReadSecret(ctx, reader, cluster)
	if err != nil {
		return kubeconfig{}, err
	}
	config, err := parse(data)
	if err != nil {
		return kubeconfig{}, &NotConnectedError{Reason: KubeconfigInvalid, Message: fmt.Sprintf("Secret %s: %s", SecretName(cluster.Name), err)}
	}
	return kubeconfig{config: config, hash: fmt.Sprintf("%x", sha256.Sum256(data))}, nil
}

// Foreign returns whose a Secret is that has the name of one of a Cluster, and is none of it; "" when it can be the
// Cluster's. Bootstrap providers write Secrets, with the same key, under names that users choose who may not write Secrets.
func Foreign(secret *corev1.Secret, cluster string) string {
	if label := secret.Labels[clusterv1.ClusterNameLabel]; label != "" && label != cluster {
		return fmt.Sprintf("labelled as one of Cluster %q", label)
	}
	for _, owner := range secret.OwnerReferences {
		if group, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && strings.HasPrefix(group.Group, bootstrapGroups) {
			return fmt.Sprintf("bootstrap data of %s %s", owner.Kind, owner.Name)
		}
	}
	return ""
}

// parse turns a kubeconfig into a client configuration. The kubeconfig belongs to anyone who may write Secrets in
// the namespace of the Cluster, so it must not make this process run a program or read a file of its own.
// Errors repeat nothing of the content.
func parse(data []byte) (*rest.Config, error) {
	loaded, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("the content is not a kubeconfig")
	}
	for name, user := range loaded.AuthInfos {
		if what := refused(user); what != "" {
			return nil, fmt.Errorf("user %q uses %s, which is refused: put credentials into the kubeconfig itself", name, what)
		}
	}
	for name, cluster := range loaded.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf(
				"cluster %q refers to a file for its certificate authority, which is refused: use certificate-authority-data",
				name,
			)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig has no usable current context")
	}
	return config, nil
}

// refused names what makes the credentials of a user unacceptable, "" when nothing does.
func refused(user *clientcmdapi.AuthInfo) string {
	switch {
	case user.Exec != nil:
		return "an exec plugin"
	case user.AuthProvider != nil:
		return "an auth provider plugin"
	case user.TokenFile != "":
		return "a token file"
	case user.ClientCertificate != "", user.ClientKey != "":
		return "certificate files"
	}
	return ""
}
