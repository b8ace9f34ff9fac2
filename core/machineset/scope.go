package machineset

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/scopes"
	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/overshoot"
)

// scope is what one reconcile has read and done. The steps fill it in; setStatus derives the status from it.
type scope struct {
	scopes.Base[*clusterv1.MachineSet, clusterv1.MachineSetStatus]

	// cluster is nil when there is none of that name.
	cluster *clusterv1.Cluster
	// deployment owns the set; nil when none does, or when it is not there any more.
	deployment *clusterv1.MachineDeployment
	// outdated lists why the set's Machines do not match the deployment; empty when they do.
	outdated []string
	// paused lists what pauses the set; empty when it is not paused.
	paused []string
	// specErrors lists what is wrong with the spec.
	specErrors []string
	selector   labels.Selector
	// keepSelector means that Machines of the former selector, which is in the status, have still to get their labels.
	keepSelector bool
	replicas     int

	// machines are all Machines that the set controls, including those that were created a moment ago.
	// They are shared with the cache: copy before changing one.
	machines []*clusterv1.Machine
	// machinesRead is false until machines can be relied on.
	machinesRead bool
	// candidates are Machines that have no controller and that the selector matches.
	candidates []*clusterv1.Machine

	// infrastructure and bootstrap are the templates; bootstrap is nil when Machines need none.
	infrastructure, bootstrap *unstructured.Unstructured
	// syncing means that objects of a kind are being read for the first time.
	syncing bool
	// blockers lists why no Machine can be created or completed, machineErrors why single ones cannot be completed.
	blockers, machineErrors []string
	// refusals are the errors with which the API server has refused what existing Machines need.
	refusals []string
	// mu guards these lists while Machines are created in parallel.
	mu sync.Mutex
	// elsewhere names what is in flight in other sets of the deployment.
	elsewhere []string
	// held is why unhealthy Machines are not replaced.
	held held
	// owed are the records of which the next Machines get one each.
	owed []remediation.Record
	// preflighted means that the preflight checks were run; heldBy lists the reasons of those that failed.
	preflighted bool
	heldBy      []string
	// holders are what has the instances that are to be adopted; "" for those that are free.
	holders map[adoption]string
	// preserveMax is how many failed Machines are preserved unless the deployment says otherwise.
	preserveMax int
	// guard knows whether the creation of Machines is frozen; nil goes by labels.
	guard *overshoot.Guard
}

// newScope begins a reconcile of a set. Nothing else writes its status.
func (r *Reconciler) newScope(set *clusterv1.MachineSet) *scope {
	base := scopes.NewBase(set, r.Clock.Now(), scopes.Writer[*clusterv1.MachineSet, clusterv1.MachineSetStatus]{
		Client: r.Client, Recorder: r.Recorder, Status: statusOf, Versions: r.Written,
	})
	return &scope{Base: base, guard: r.Overshoot, preserveMax: r.PreserveFailedMax}
}

func statusOf(set *clusterv1.MachineSet) *clusterv1.MachineSetStatus { return &set.Status }
