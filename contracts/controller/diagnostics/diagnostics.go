// Package diagnostics serves metrics, profiles and the log level to those who may have them.
//
// It has the flags of Cluster API's managers. The request filter of controller-runtime would do the same by
// packages of k8s.io/apiserver, which make the core a fifth larger, on disk and in memory; the two questions that it
// asks the API server are asked here directly.
package diagnostics

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// maxLevel is more than any log level is long.
const maxLevel = 64

// Options are the settings of the endpoint.
type Options struct {
	// Address is where it is served; 0 for nowhere.
	Address string
	// Insecure serves metrics alone, by HTTP and to everyone.
	Insecure bool

	tlsMinVersion   string
	tlsCipherSuites []string
	tlsCurves       []int32
}

// AddFlags adds the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Address, "diagnostics-address", ":8443",
		"The address of metrics, profiles and the log level, served by HTTPS to users who may get the path (RBAC nonResourceURLs); 0 for none.")
	flags.BoolVar(&o.Insecure, "insecure-diagnostics", false, "Serve metrics by HTTP to everyone, and nothing else.")
	flags.StringVar(&o.tlsMinVersion, "tls-min-version", "VersionTLS12",
		"The lowest TLS version: "+strings.Join(cliflag.TLSPossibleVersions(), ", ")+".")
	flags.StringSliceVar(&o.tlsCipherSuites, "tls-cipher-suites", nil,
		"TLS 1.2 cipher suites; those of Go when empty. Known are "+strings.Join(cliflag.PreferredTLSCipherNames(), ", ")+".")
	flags.Int32SliceVar(&o.tlsCurves, "tls-curve-preferences", nil, "TLS key exchanges by number; those of Go when empty.")
}

// Server is what a manager needs to serve the endpoint.
func (o *Options) Server() (metricsserver.Options, error) {
	if o.Insecure {
		return metricsserver.Options{BindAddress: o.Address}, nil
	}
	config, err := o.TLS()
	if err != nil {
		return metricsserver.Options{}, err
	}
	return metricsserver.Options{
		BindAddress:    o.Address,
		SecureServing:  true,
		FilterProvider: Filter,
		TLSOpts:        []func(*tls.Config){config},
		ExtraHandlers: map[string]http.Handler{
			"/debug/flags/v":       http.HandlerFunc(setLevel),
			"/debug/pprof/":        http.HandlerFunc(pprof.Index),
			"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
			"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
			"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
			"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		},
	}, nil
}

// TLS is what the TLS flags say, for this and for other servers.
func (o *Options) TLS() (func(*tls.Config), error) {
	version, err := cliflag.TLSVersion(o.tlsMinVersion)
	if err != nil {
		return nil, errors.Wrap(err, "reading --tls-min-version")
	}
	suites, err := cliflag.TLSCipherSuites(o.tlsCipherSuites)
	if err != nil {
		return nil, errors.Wrap(err, "reading --tls-cipher-suites")
	}
	return func(config *tls.Config) {
		config.MinVersion = version
		if len(suites) > 0 {
			config.CipherSuites = suites
		}
		for _, curve := range o.tlsCurves {
			config.CurvePreferences = append(config.CurvePreferences, tls.CurveID(curve)) // TLS refuses what it does not know.
		}
	}, nil
}

// setLevel changes the log level to the number in the body of a PUT.
func setLevel(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodPut {
		http.Error(w, "the log level is changed by PUT", http.StatusMethodNotAllowed)
		return
	}
	level, err := io.ReadAll(io.LimitReader(request.Body, maxLevel))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	if _, err := logs.GlogSetter(strings.TrimSpace(string(level))); err != nil {
		http.Error(w, "the body must be a number", http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
