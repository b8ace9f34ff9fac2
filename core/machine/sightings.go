package machine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// sightings remembers which referenced objects of Machines have been read, for as long as nothing in the status shows
// it: that an object has been read and is not there any more means that it was deleted, however young its Machine is.
// The zero value is ready for use.
type sightings struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]*sighted
}

// sighted are the objects of one Machine.
type sighted struct {
	machine types.UID
	refs    map[clusterv1.ContractVersionedObjectReference]bool
}

// add remembers that an object exists.
func (o *sightings) add(key types.NamespacedName, machine types.UID, ref clusterv1.ContractVersionedObjectReference) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.of == nil {
		o.of = map[types.NamespacedName]*sighted{}
	}
	if have := o.of[key]; have == nil || have.machine != machine {
		o.of[key] = &sighted{machine: machine, refs: map[clusterv1.ContractVersionedObjectReference]bool{}}
	}
	o.of[key].refs[ref] = true
}

// has says whether an object has been read.
func (o *sightings) has(key types.NamespacedName, machine types.UID, ref clusterv1.ContractVersionedObjectReference) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	have := o.of[key]
	return have != nil && have.machine == machine && have.refs[ref]
}

// forget drops what is remembered of a Machine that is gone.
func (o *sightings) forget(key types.NamespacedName) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.of, key)
}
