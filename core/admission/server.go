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
	// certificate is the one of the holder that Hold sets.
	CertDir, CertName, KeyName string
	// TLS sets what else there is to set: versions and ciphers.
	TLS func(*tls.Config)
}

// Server is the webhook server of a manager.
type Server struct {
	ctrlwebhook.Server

	holder *certificates.Holder
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
			if s.holder != nil {
				config.GetCertificate = s.holder.GetCertificate
			}
		}},
	})
	return s
}

// Hold has the server show the certificate of a holder, and listen only once there is one. It is called before the
// manager starts.
func (s *Server) Hold(holder *certificates.Holder) { s.holder = holder }

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	if s.holder != nil {
		s.holder.Begin(ctx)
		select {
		case <-s.holder.First():
		case <-ctx.Done():
			return nil
		}
	}
	return s.Server.Start(ctx)
}

// Check is a readiness check: where webhooks are installed, they must be served.
func (s *Server) Check(request *http.Request) error {
	if s.holder != nil {
		if installed, err := s.holder.Installed(); err != nil || !installed {
			return err
		}
	}
	return s.StartedChecker()(request)
}
