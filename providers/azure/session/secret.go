package session

import (
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	corev1 "k8s.io/api/core/v1"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// The keys of a Secret that credentials are read from: those of the environment, that of Cluster API's own provider, and those of a Secret
// of type kubernetes.io/tls.
var (
	secretKeys      = []string{"AZURE_CLIENT_SECRET", "clientSecret"}
	certificateKeys = []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}
)

// dangerous are keys that are refused with what they would do, if the SDK were given them as its environment. Others are refused too.
var dangerous = map[string]string{
	"AZURE_AUTHORITY_HOST":               "it sends the credentials to another address than that of Microsoft Entra ID",
	"AZURE_FEDERATED_TOKEN_FILE":         "it reads a file of the provider's process; tokens are given in spec.workloadIdentity",
	"AZURE_CLIENT_CERTIFICATE_PATH":      "it reads a file of the provider's process; give the certificate in tls.crt and tls.key",
	"AZURE_ADDITIONALLY_ALLOWED_TENANTS": "it lets tokens be of another tenant",
	"IDENTITY_ENDPOINT":                  "it takes tokens from another address than that of Azure",
	"MSI_ENDPOINT":                       "it takes tokens from another address than that of Azure",
}

// fromSecret returns the credentials that a Secret has. Errors have nothing of its values.
func (o opener) fromSecret(p *infrav1.ServicePrincipal, secret *corev1.Secret) (azcore.TokenCredential, error) {
	if err := checkKeys(p, secret); err != nil {
		return nil, err
	}
	value, values := "", 0
	for _, key := range secretKeys {
		if v := strings.TrimSpace(string(secret.Data[key])); v != "" {
			value, values = v, values+1
		}
	}
	certificate := slices.Concat(secret.Data[corev1.TLSPrivateKeyKey], []byte("\n"), secret.Data[corev1.TLSCertKey])
	for _, key := range certificateKeys {
		if len(secret.Data[key]) > 0 {
			values += 10
		}
	}
	switch values {
	case 1:
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, invalid("the client secret in Secret %s contains an unprintable character: check that it is whole and not encoded twice", secret.Name)
		}
		c, err := azidentity.NewClientSecretCredential(strings.ToLower(p.TenantID), strings.ToLower(p.ClientID), value,
			&azidentity.ClientSecretCredentialOptions{ClientOptions: o.client(), DisableInstanceDiscovery: true})
		return unlessInvalid(c, err, "Secret "+secret.Name)
	case 20:
		return o.fromCertificate(p, secret.Name, certificate)
	}
	return nil, invalid("Secret %s must have either AZURE_CLIENT_SECRET, or tls.crt and tls.key", secret.Name)
}

func (o opener) fromCertificate(p *infrav1.ServicePrincipal, name string, pem []byte) (azcore.TokenCredential, error) {
	certificates, key, err := azidentity.ParseCertificates(pem, nil)
	if err != nil || len(certificates) == 0 {
		return nil, invalid("tls.crt and tls.key in Secret %s are not a certificate and an RSA key in PEM, or the key has a password", name)
	}
	if certificates[0].PublicKeyAlgorithm != x509.RSA {
		return nil, invalid("the certificate in Secret %s has no RSA key, which Microsoft Entra ID requires", name)
	}
	c, err := azidentity.NewClientCertificateCredential(strings.ToLower(p.TenantID), strings.ToLower(p.ClientID), certificates, key,
		&azidentity.ClientCertificateCredentialOptions{ClientOptions: o.client(), DisableInstanceDiscovery: true})
	return unlessInvalid(c, err, "Secret "+name)
}

// checkKeys refuses keys that are not allowed, and a tenant or client ID other than the one of the identity.
func checkKeys(p *infrav1.ServicePrincipal, secret *corev1.Secret) error {
	who := map[string]string{"AZURE_TENANT_ID": p.TenantID, "AZURE_CLIENT_ID": p.ClientID}
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		own, known := who[key]
		switch {
		case dangerous[key] != "":
			return notAllowed("Secret %s has the key %s, which is not allowed (%s): remove it", secret.Name, key, dangerous[key])
		case known && !strings.EqualFold(strings.TrimSpace(string(secret.Data[key])), own):
			return invalid("%s in Secret %s is another one than spec.servicePrincipal has: remove it, or correct one of them", key, secret.Name)
		case !known && !slices.Contains(secretKeys, key) && !slices.Contains(certificateKeys, key):
			return notAllowed("Secret %s has the key %q, which is not allowed beside credentials: remove it", secret.Name, key)
		}
	}
	return nil
}

func invalid(format string, args ...any) error {
	return identity.NewInvalid(driverv1.CredentialsInvalidReason, fmt.Sprintf(format, args...))
}

func notAllowed(format string, args ...any) error {
	return identity.NewInvalid(driverv1.CredentialsNotAllowedReason, fmt.Sprintf(format, args...))
}
