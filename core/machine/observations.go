package machine

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// observations remembers which referenced objects of Machines have been read, for as long as nothing in the status shows
// it: that an object has been read and is not there any more means that it was deleted, however young its Machine is.
// The zero value is ready for use.
type observations struct {
	mutex sync.Mutex
	of    map[types.NamespacedName]*observed
}

// observed are the objects of one Machine.
type observed struct {
	machine types.UID
	refs    map[clusterv1.ContractVersionedObjectReference]bool
}

// add remembers that an object exists.
func (o *observations) add(key types.NamespacedName, machine types.UID, ref clusterv1.ContractVersionedObjectReference) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.of == nil {
		o.of = map[types.NamespacedName]*observed{}
	}
	if have := o.of[key]; have == nil || have.machine != machine {
		o.of[key] = &observed{machine: machine, refs: map[clusterv1.ContractVersionedObjectReference]bool{}}
	}
	o.of[key].refs[ref] = true
}

// has reports whether an object has been read.
func (o *observations) has(key types.NamespacedName, machine types.UID, ref clusterv1.ContractVersionedObjectReference) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	have := o.of[key]
	return have != nil && have.machine == machine && have.refs[ref]
}

// forget drops what is remembered of a Machine that no longer exists.
func (o *observations) forget(key types.NamespacedName) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.of, key)
}
