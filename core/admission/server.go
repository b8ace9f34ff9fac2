package admission

import (
	"context"
	"crypto/tls"
	"net/http"

	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"millwright.dev/core/admission/certificates"
)

// ServerOptions are where the webhooks are served.
type ServerOptions struct {
	// Port is the TCP port on all addresses.
	Port int
	// CertDir, CertName and KeyName name files with the certificate, which are read again when they change. Empty, the
	// certificate comes from where UseCertificate says.
	CertDir, CertName, KeyName string
	// TLS sets what else there is to set: versions and ciphers.
	TLS func(*tls.Config)
}

// Server is the webhook server of a manager.
type Server struct {
	ctrlwebhook.Server

	certificate *certificates.Reconciler
}

// NewServer returns a server for the options of a manager.
func NewServer(o ServerOptions) *Server {
	s := &Server{}
	s.Server = ctrlwebhook.NewServer(ctrlwebhook.Options{
		Port: o.Port, CertDir: o.CertDir, CertName: o.CertName, KeyName: o.KeyName,
		TLSOpts: []func(*tls.Config){func(config *tls.Config) {
			if o.TLS != nil {
				o.TLS(config)
			}
			if s.certificate != nil {
				config.GetCertificate = s.certificate.GetCertificate
			}
		}},
	})
	return s
}

// UseCertificate has the server show the certificate that the core keeps itself, and listen only once there is one. It is called
// before the manager starts.
func (s *Server) UseCertificate(r *certificates.Reconciler) { s.certificate = r }

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	if s.certificate != nil {
		s.certificate.Begin(ctx)
		select {
		case <-s.certificate.First():
		case <-ctx.Done():
			return nil
		}
	}
	return s.Server.Start(ctx)
}

// Check is a readiness check: where webhooks are installed, they must be served.
func (s *Server) Check(request *http.Request) error {
	if s.certificate != nil {
		if installed, err := s.certificate.Installed(); err != nil || !installed {
			return err
		}
	}
	return s.StartedChecker()(request)
}
