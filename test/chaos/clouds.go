package chaos

import (
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/faults"
)

// cloud is a simulated cloud, and the provider that calls it.
type cloud struct {
	// name of the provider, kind of its machines; templates have the kind with the suffix Template.
	name, kind  string
	version     schema.GroupVersion
	addToScheme func(*runtime.Scheme) error
	newList     func() client.ObjectList
	// types are those of machines that the templates differ in.
	types    [3]string
	machine  func(meta metav1.ObjectMeta, machineType string) client.Object
	template func(meta metav1.ObjectMeta, machineType string) client.Object
	// open creates an empty account.
	open func(seed uint64) account
	// api is how faults are injected into its calls.
	api faults.CloudAPI
	// provider are arguments and environment of the provider, by the URLs of the cloud and of tokens.
	provider func(cloud, tokens string) (args, environment []string)
}

// cloudNames are all clouds, in the order in which seeds have them.
var cloudNames = []string{"aws", "azure", "gcp"}

var clouds = map[string]*cloud{"aws": newAWS(), "azure": newAzure(), "gcp": newGCP()}

// account is what one run has in a cloud.
type account interface {
	http.Handler
	Close()
	// machines are those that have not ended.
	machines() []machine
	// launched is how many machines there have ever been, by who they were launched for.
	launched() map[string]int
	// parts are what machines were created with.
	parts() []part
	// vanish removes a machine, as if another user had terminated it.
	vanish(m machine) error
}

// machine is one machine of a cloud.
type machine struct {
	id, providerID string
	// owner is the UID of the object that it was launched for.
	owner types.UID
	// name is that of its Machine, host that which a kubelet takes for its Node by default.
	name, host string
	running    bool
}

// part is something that belongs to the machine of an ID; empty if it belongs to none.
type part struct{ kind, id, machine string }

// seen counts the machines of a cloud that does not list them once they are gone: it is called several times for each while they exist.
type seen struct {
	mu  sync.Mutex
	ids map[string]sets.Set[string]
}

func (s *seen) note(owner types.UID, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]sets.Set[string]{}
	}
	if s.ids[string(owner)] == nil {
		s.ids[string(owner)] = sets.New[string]()
	}
	s.ids[string(owner)].Insert(id)
}

func (s *seen) launched() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	for owner, ids := range s.ids {
		counts[owner] = len(ids)
	}
	return counts
}
