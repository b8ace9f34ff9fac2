package main

import (
	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/version"
	"millwright.dev/core/admission"
	"millwright.dev/core/admission/certificates"
)

// Names in config/core/webhook.
const (
	webhookService       = "millwright-core-webhook"
	webhookSecret        = "millwright-core-webhook-certificate"
	webhookConfiguration = "millwright-core"
	// ownNamespace is where the core is installed, used where it does not run in a cluster.
	ownNamespace = "millwright-system"
)

// The rights of the webhooks that are installed are in config/core/webhook/rbac.yaml.

// webhookOptions are the settings of the webhook server.
type webhookOptions struct {
	port                       int
	certDir, certName, keyName string
}

func (o *webhookOptions) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(
		&o.port,
		"webhook-port",
		9443,
		"The port of the webhooks; 0 for none. Nothing listens while no webhook configuration and no CRD has the annotation "+
			certificates.Annotation+".",
	)
	flags.StringVar(&o.certDir, "webhook-cert-dir", "",
		"A directory with the certificate of the webhook server; the core then neither creates a certificate nor publishes a CA bundle.")
	flags.StringVar(&o.certName, "webhook-cert-name", "tls.crt", "The file with the certificate in that directory.")
	flags.StringVar(&o.keyName, "webhook-key-name", "tls.key", "The file with the private key in that directory.")
}

// newWebhookServer makes the server of the webhooks, nil if there shall be none.
func newWebhookServer(o *options) (*admission.Server, error) {
	if o.webhooks.port == 0 {
		return nil, nil
	}
	tls, err := o.Diagnostics.TLS()
	if err != nil {
		return nil, err
	}
	return admission.NewServer(admission.ServerOptions{
		Port: o.webhooks.port, CertDir: o.webhooks.certDir, CertName: o.webhooks.certName, KeyName: o.webhooks.keyName, TLS: tls,
	}), nil
}

// addWebhooks adds the webhooks to the manager, and what keeps their certificate.
func addWebhooks(mgr ctrl.Manager, server *admission.Server, o *options) error {
	if server == nil {
		return nil
	}
	if o.webhooks.certDir == "" {
		certificate, err := certificates.Add(mgr, certificateSettings(o.OwnNamespace()))
		if err != nil {
			return err
		}
		server.UseCertificate(certificate)
	}
	if err := admission.Register(mgr, admission.Resolve(&version.Resolver{Reader: mgr.GetClient()})); err != nil {
		return err
	}
	return errors.Wrap(mgr.AddReadyzCheck("webhooks", server.Check), "adding the readiness check of the webhooks")
}

// certificateSettings are those of a core in the namespace.
func certificateSettings(namespace string) certificates.Settings {
	return certificates.Settings{
		Secret: types.NamespacedName{Namespace: namespace, Name: webhookSecret},
		// The second is for a core outside the cluster, to which API servers go by URL.
		Names:         []string{webhookService + "." + namespace + ".svc", "localhost"},
		Configuration: webhookConfiguration,
		CRDs:          admission.CRDs(),
	}
}
