package manager

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// discoveryTimeout bounds a request for the resources of an API group.
const discoveryTimeout = 30 * time.Second

// mapperProvider returns controller-runtime's RESTMapper with a bound on its requests, which have none by default. They are sent while all
// others who ask the mapper wait, but for those who ask for a version of a kind that it has been asked for before.
func mapperProvider(timeout time.Duration) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(rc *rest.Config, client *http.Client) (meta.RESTMapper, error) {
		bounded := *client
		bounded.Timeout = timeout
		dynamic, err := apiutil.NewDynamicRESTMapper(rc, &bounded)
		return &mapper{RESTMapper: dynamic}, err
	}
}

// mapper answers again what it has answered, without a look at whether a request is under way: the cache asks it while it holds a lock that
// all its readers need, so that one group without an answer would hold up all reads.
type mapper struct {
	meta.RESTMapper
	known sync.Map // of GroupVersionKind to RESTMapping
}

// RESTMapping finds the resource of a kind.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(gk, versions...)
	}
	gvk := gk.WithVersion(versions[0])
	if known, ok := m.known.Load(gvk); ok {
		mapping := known.(meta.RESTMapping)
		return &mapping, nil
	}
	found, err := m.RESTMapper.RESTMapping(gk, versions...)
	if err == nil {
		m.known.Store(gvk, *found)
	}
	return found, err
}
