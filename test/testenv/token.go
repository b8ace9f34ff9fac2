package testenv

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The administrator of the tests has a token: the API server verifies a client certificate again with each request, which took 7 to 8 % of
// its time.

// writeToken writes the file of tokens that the API server reads at its start, and returns its path and the token.
func writeToken() (path, token string, err error) {
	directory, err := os.MkdirTemp("", "testenv-")
	if err != nil {
		return "", "", errors.Wrap(err, "creating the directory of the administrator's token")
	}
	path, token = filepath.Join(directory, "tokens.csv"), rand.Text()
	err = os.WriteFile(path, fmt.Appendf(nil, "%s,admin,admin,system:masters\n", token), 0o600)
	return path, token, errors.Wrap(err, "writing the administrator's token")
}

// useToken has a configuration authenticate only by the token, and returns it as the content of a file too.
func useToken(config *rest.Config, token string) ([]byte, error) {
	config.BearerToken, config.CertData, config.KeyData = token, nil, nil
	file := clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["admin"] = &clientcmdapi.AuthInfo{Token: token}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "admin"}
	file.CurrentContext = "test"
	content, err := clientcmd.Write(*file)
	return content, errors.Wrap(err, "writing the kubeconfig of the test API server")
}
