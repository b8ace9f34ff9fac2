package controlplane

import (
	"context"
	"time"

	"github.com/pkg/errors"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime of ServiceAccount tokens is longer than anything here runs, a kept demo included.
const tokenLifetime = 24 * time.Hour

// kubeconfig renders a kubeconfig for one user of this API server.
func kubeconfig(url string, ca []byte, user *clientcmdapi.AuthInfo) ([]byte, error) {
	const name = "millwright"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	return content, errors.Wrap(err, "writing a kubeconfig")
}

func certificateUser(certPEM, keyPEM []byte) *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
}

// TokenKubeconfig returns a kubeconfig with the given bearer token, such as a bootstrap token.
func (c *ControlPlane) TokenKubeconfig(token string) ([]byte, error) {
	return kubeconfig(c.URL(), c.CAPEM(), &clientcmdapi.AuthInfo{Token: token})
}

// ServiceAccountKubeconfig returns a kubeconfig with a token of the ServiceAccount, valid for a day.
func (c *ControlPlane) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, errors.Wrap(err, "creating a client")
	}
	seconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	response, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, errors.Wrapf(err, "requesting a token of ServiceAccount %s/%s", namespace, name)
	}
	return c.TokenKubeconfig(response.Status.Token)
}

// restConfig turns a kubeconfig into a client configuration.
func restConfig(content []byte) (*rest.Config, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	return config, errors.Wrap(err, "reading a kubeconfig")
}
