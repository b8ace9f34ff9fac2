package conformance

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/core"
)

// refuser interrupts a run when it has created a Cluster, and refuses the deletion of its namespace.
type refuser struct {
	next      http.RoundTripper
	interrupt func()
}

// RoundTrip implements http.RoundTripper.
func (r refuser) RoundTrip(request *http.Request) (*http.Response, error) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case request.Method == http.MethodDelete && len(parts) == 4 && parts[2] == "namespaces":
		return nil, errors.New("the namespace stays")
	case request.Method == http.MethodPost && parts[len(parts)-1] == "clusters":
		defer r.interrupt()
	}
	return r.next.RoundTrip(request)
}

// The error of an interrupted run has both: that it was interrupted, and what was left.
func TestAnInterruptedRunReportsWhatIsLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return refuser{next, cancel} })
	_, err := core.Suite(ctx, config, conformance.RunOptions{
		Selection: conformance.Selection{Profile: conformance.CoreProfile, Level: conformance.Extended},
		Timeouts:  []byte(strings.NewReplacer("%s", (10 * time.Second).String()).Replace(waits)), Log: t.Output(),
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "conformance.millwright.dev/run=") ||
		!strings.Contains(err.Error(), "the namespace stays") {
		t.Errorf("%v does not say what is left", err)
	}
}
