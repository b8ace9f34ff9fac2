package machineset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scope is what one reconcile has read and done. Steps fill it in; conclude judges it.
type scope struct {
	// set is changed in memory; before is how it was read, or last written.
	set, before *clusterv1.MachineSet
	now         time.Time

	// cluster is nil when there is none of that name.
	cluster *clusterv1.Cluster
	// deployment owns the set; nil when none does, or when it is not there any more.
	deployment *clusterv1.MachineDeployment
	// outdated says why the set's Machines are not what the deployment wants; empty when they are.
	outdated []string
	// paused says why nothing is done; empty when the set is not paused.
	paused []string
	// specErrors says what is wrong with the spec.
	specErrors []string
	selector   labels.Selector
	replicas   int

	// machines are all Machines that the set controls, those included that were created a moment ago.
	// They are shared with the cache: copy before changing one.
	machines []*clusterv1.Machine
	// machinesRead is false until machines can be relied on.
	machinesRead bool
	// candidates are Machines that nobody controls and that the selector matches.
	candidates []*clusterv1.Machine

	// infrastructure and bootstrap are the templates; bootstrap is nil when Machines need none.
	infrastructure, bootstrap *unstructured.Unstructured
	// syncing means that objects of a kind are being read for the first time.
	syncing bool
	// blockers says why no Machine can be created or completed; machineErrors says so of single ones.
	blockers, machineErrors []string
	// refusals are the errors with which the API server has refused what existing Machines need.
	refusals []string
	// mu guards them while Machines are created in parallel.
	mu sync.Mutex
	// elsewhere names the Machines of other sets of the deployment whose remediation is in flight.
	elsewhere []string
	// preflighted means that the preflight checks were made; heldBy says what they have against new Machines.
	preflighted bool
	heldBy      []string
	// gone means that the finalizer was removed.
	gone bool
}

// request asks for the set to be reconciled.
func (s *scope) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.set)}
}
