package manager

import (
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// discoveryTimeout bounds a request for the resources of an API group.
const discoveryTimeout = 30 * time.Second

// mapperProvider returns controller-runtime's RESTMapper with a bound on its requests, which have none by default. They are sent while all
// others who ask the mapper wait, also those who ask for groups that it knows.
func mapperProvider(timeout time.Duration) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(rc *rest.Config, client *http.Client) (meta.RESTMapper, error) {
		bounded := *client
		bounded.Timeout = timeout
		return apiutil.NewDynamicRESTMapper(rc, &bounded)
	}
}
