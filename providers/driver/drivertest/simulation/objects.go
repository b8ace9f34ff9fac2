package simulation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/inframachine"
)

// Names of what every world has.
const (
	Namespace     = "ns"
	ClusterName   = "c"
	BootstrapName = "boot"
)

// IDs of what every world has.
var (
	ClusterID = ID{"Cluster", ClusterName}
	SecretID  = ID{"Secret", BootstrapName}
)

// MachineID is that of a Machine.
func MachineID(name string) ID { return ID{"Machine", name} }

// ObjectID is that of an object of the kind under test.
func (w *World[M]) ObjectID(name string) ID { return ID{w.Kind.Name, name} }

// AddCluster creates the Cluster and a Secret with bootstrap data.
func (w *World[M]) AddCluster() {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: ClusterName}}
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	s := w.Server()
	s.Create(cluster)
	s.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: BootstrapName}, Data: map[string][]byte{"value": []byte("#cloud-config\n")},
	})
}

// AddMachine creates a Machine of the object's name, and the object, which it owns.
func (w *World[M]) AddMachine(obj M) {
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: Namespace, Name: obj.GetName(), Finalizers: []string{"machine.cluster.x-k8s.io"},
		Labels: map[string]string{clusterv1.ClusterNameLabel: ClusterName},
	}}
	machine.Spec.ClusterName, machine.Spec.Bootstrap.DataSecretName = ClusterName, ptr.To(BootstrapName)
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: w.Kind.Name, Name: obj.GetName(), APIGroup: w.Kind.Group}
	s := w.Server()
	s.Create(machine)
	obj.SetNamespace(Namespace)
	obj.SetLabels(map[string]string{clusterv1.ClusterNameLabel: ClusterName})
	s.Own(obj)
	s.Create(obj)
}

// Own makes the Machine of its name the controller of the object.
func (s *Server[M]) Own(obj M) {
	machine := s.Get(MachineID(obj.GetName()))
	obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))})
}

// Pause sets whether the Cluster is paused.
func (s *Server[M]) Pause(paused bool) {
	s.Change(ClusterID, func(c client.Object) { c.(*clusterv1.Cluster).Spec.Paused = ptr.To(paused) })
}

// committed has the caches learn of a version, and the core act on it. The lock is held.
func (w *World[M]) committed(s *Server[M], id ID, before, after client.Object) {
	for _, p := range w.processes {
		if p.server == s && !p.Dead() {
			p.deliver(id, after)
		}
	}
	w.After(w.Random.Between("core", time.Millisecond, 2*time.Second), func() { w.core(s, id.Name) })
	if w.Committed != nil {
		w.Committed(s, id, before, after)
	}
}

// core does what the controllers of Machines do after a change of a Machine or its object: it copies provider ID and addresses of an
// object that has been provisioned, or is being deleted, deletes the object with its Machine, reports that its Node is drained, and
// releases the Machine when the object is gone.
func (w *World[M]) core(s *Server[M], name string) {
	id := MachineID(name)
	machine, _ := s.Get(id).(*clusterv1.Machine)
	if machine == nil {
		return
	}
	leaving := !machine.DeletionTimestamp.IsZero()
	found := s.Get(w.ObjectID(name))
	if found == nil {
		if leaving {
			s.Change(id, func(m client.Object) { m.SetFinalizers(nil) })
		}
		return
	}
	obj, _ := found.(M)
	providerID, addresses := obj.CommonSpec().ProviderID, obj.CommonStatus().Addresses
	known := obj.CommonStatus().IsProvisioned() || !obj.GetDeletionTimestamp().IsZero()
	if machine.Spec.ProviderID == "" && providerID != "" && known {
		s.Change(id, func(m client.Object) { m.(*clusterv1.Machine).Spec.ProviderID = providerID })
	}
	if len(machine.Status.Addresses) == 0 && len(addresses) > 0 && known {
		s.Change(id, func(m client.Object) { m.(*clusterv1.Machine).Status.Addresses = addresses })
	}
	if !leaving || w.Draining != nil && w.Draining(name) {
		return
	}
	if obj.GetDeletionTimestamp().IsZero() {
		s.Delete(w.ObjectID(name))
	}
	if !inframachine.MayTerminate(machine) {
		s.Change(id, drained)
	}
}

// drained reports in a Machine that is being deleted that its Node has been drained.
func drained(m client.Object) {
	m.(*clusterv1.Machine).Status.Conditions = []metav1.Condition{{
		Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
		Reason: clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, LastTransitionTime: metav1.Now(),
	}}
}
