package controlplane

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"

	"github.com/pkg/errors"
)

// identity is a user that gets a client certificate and a kubeconfig.
type identity struct {
	file, user string
	groups     []string
}

var identities = []identity{
	{"admin", "millwright-admin", []string{"system:masters"}},
	{"kube-controller-manager", "system:kube-controller-manager", nil},
	{"kube-scheduler", "system:kube-scheduler", nil},
}

func (c *ControlPlane) pki() string { return filepath.Join(c.dir, "pki") }

// issueFiles creates the CA, the API server's certificate and the keys of ServiceAccount tokens.
func (c *ControlPlane) issueFiles() error {
	ca, err := newAuthority("millwright-" + c.options.Name)
	if err != nil {
		return err
	}
	c.ca = ca
	serverCert, serverKey, err := ca.server(serviceIP)
	if err != nil {
		return err
	}
	key, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	publicPEM, err := publicKeyPEM(key)
	if err != nil {
		return err
	}
	return writeFiles(c.pki(), map[string][]byte{
		"ca.crt":        ca.certPEM,
		"ca.key":        ca.keyPEM,
		"apiserver.crt": serverCert,
		"apiserver.key": serverKey,
		"sa.key":        keyPEM,
		"sa.pub":        publicPEM,

		"audit-policy.yaml": []byte(auditPolicy),
	})
}

// writeKubeconfigs writes one for each identity, and keeps the administrator's.
func (c *ControlPlane) writeKubeconfigs() error {
	files := map[string][]byte{}
	for _, id := range identities {
		cert, key, err := c.ca.client(id.user, id.groups...)
		if err != nil {
			return err
		}
		content, err := kubeconfig(c.URL(), c.ca.certPEM, certificateUser(cert, key))
		if err != nil {
			return err
		}
		files[id.file+".kubeconfig"] = content
	}
	c.admin = files["admin.kubeconfig"]
	config, err := restConfig(c.admin)
	if err != nil {
		return err
	}
	// A test or a demo is alone on its API server; client-side throttling would only slow it.
	config.QPS = -1
	c.config = config
	return writeFiles(c.pki(), files)
}

func publicKeyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, errors.Wrap(err, "encoding a public key")
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}
