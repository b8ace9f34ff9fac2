package core

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// finalizer is the suite's as a provider: it is removed when the simulated infrastructure of the object is gone.
const finalizer = "standin.conformance.millwright.dev/provider"

// fields are the content of a stand-in.
type fields = map[string]any

// standIn returns an object of a provider, not created yet.
func (w *world) standIn(kind, name string, spec fields) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: fields{"spec": spec}}
	object.SetGroupVersionKind(groupVersion(w.Contract).WithKind(kind))
	object.SetNamespace(w.Namespace)
	object.SetName(name)
	object.SetFinalizers([]string{finalizer})
	return object
}

func (w *world) ref(kind, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: groupVersion(w.Contract).Group, Kind: kind, Name: name}
}

// report writes a status as a provider does; nil removes a field.
func (w *world) report(object *unstructured.Unstructured, status fields) {
	w.must(w.merge(object, fields{"status": status}, true), "to write the status of "+object.GetName())
}

// settle writes a spec as a provider does.
func (w *world) settle(object *unstructured.Unstructured, spec fields) {
	w.must(w.merge(object, fields{"spec": spec}, false), "to write the spec of "+object.GetName())
}

// release removes the suite's finalizer: the simulated infrastructure of the object is gone.
func (w *world) release(object *unstructured.Unstructured) {
	err := w.merge(object, fields{"metadata": fields{"finalizers": nil}}, false)
	w.must(client.IgnoreNotFound(err), "to remove the finalizer of "+object.GetName())
}

func (w *world) merge(object *unstructured.Unstructured, change fields, status bool) error {
	content, err := json.Marshal(change)
	if err != nil {
		return err
	}
	patch, target := client.RawPatch(types.MergePatchType, content), object.DeepCopy()
	if status {
		return w.Client.Status().Patch(w.ctx, target, patch)
	}
	return w.Client.Patch(w.ctx, target, patch)
}

// provisioned is the status with which infrastructure reports whether it is provisioned.
func (w *world) provisioned(value bool) fields {
	if w.Contract == version.V1Beta1 {
		return fields{"ready": value}
	}
	return fields{"initialization": fields{"provisioned": value}}
}

func (w *world) dataCreated(value bool) fields {
	if w.Contract == version.V1Beta1 {
		return fields{"ready": value}
	}
	return fields{"initialization": fields{"dataSecretCreated": value}}
}

// initialized is the status of a working control plane. It reports that it has no Machines: a core may refuse to drain and delete Nodes
// of a cluster that seems to have no control plane.
func (w *world) initialized() fields {
	if w.Contract == version.V1Beta1 {
		return fields{"initialized": true, "ready": true, "externalManagedControlPlane": true}
	}
	return fields{"initialization": fields{"controlPlaneInitialized": true}, "externalManagedControlPlane": true}
}

// condition returns a list with one condition in the format of the contract.
func (w *world) condition(name, status, reason, message string) fields {
	entry := fields{"type": name, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}
	if reason != "" {
		entry["reason"], entry["message"] = reason, message
	}
	if w.Contract == version.V1Beta1 && status == "False" {
		entry["severity"] = "Error"
	}
	return fields{"conditions": []any{entry}}
}

// site is a Cluster with its providers' objects.
type site struct {
	cluster      *clusterv1.Cluster
	infra, plane *unstructured.Unstructured
}

// declare creates a Cluster with infrastructure and control plane without status.
func (w *world) declare(change ...func(*clusterv1.Cluster)) *site {
	s := &site{infra: w.standIn(infraKind, w.id, fields{}), plane: w.standIn(planeKind, w.id, fields{"replicas": int64(1)})}
	s.cluster = &clusterv1.Cluster{ObjectMeta: w.meta(w.id)}
	s.cluster.Spec.InfrastructureRef = w.ref(infraKind, w.id)
	s.cluster.Spec.ControlPlaneRef = w.ref(planeKind, w.id)
	for _, apply := range change {
		apply(s.cluster)
	}
	w.create(s.infra)
	w.create(s.plane)
	w.create(s.cluster)
	return s
}

// open creates a Cluster that is ready for Machines, whose workload cluster the core can reach.
func (w *world) open(change ...func(*clusterv1.Cluster)) *site {
	s := w.declare(change...)
	w.kubeconfig(w.id)
	w.ready(s)
	return s
}

// ready reports a working Cluster as providers do.
func (w *world) ready(s *site) {
	w.settle(s.infra, fields{"controlPlaneEndpoint": fields{"host": "192.0.2.1", "port": int64(6443)}})
	w.report(s.infra, w.provisioned(true))
	w.report(s.plane, w.initialized())
}

// place is a Machine with its providers' objects.
type place struct {
	machine       *clusterv1.Machine
	infra, config *unstructured.Unstructured
	node          *corev1.Node
}

func (w *world) providerID(name string) string { return "standin://" + name }

// machine creates a Machine and its providers' objects.
func (w *world) machine(name string, change ...func(*clusterv1.Machine)) *place {
	p := &place{infra: w.standIn(machineKind, name, fields{"size": "small"}), config: w.standIn(configKind, name, fields{"size": "small"})}
	p.machine = &clusterv1.Machine{ObjectMeta: w.meta(name)}
	p.machine.Spec.ClusterName = w.id
	p.machine.Spec.InfrastructureRef = w.ref(machineKind, name)
	p.machine.Spec.Bootstrap.ConfigRef = w.ref(configKind, name)
	for _, apply := range change {
		apply(p.machine)
	}
	w.create(p.infra)
	w.create(p.config)
	w.create(p.machine)
	return p
}

// boot reports a provisioned machine as providers do, and creates its Node.
func (w *world) boot(p *place) {
	w.provide(p)
	p.node = w.node(p.machine.Name, w.providerID(p.machine.Name))
}

func (w *world) provide(p *place) {
	w.report(p.config, fields{"dataSecretName": p.machine.Name + "-data"})
	w.report(p.config, w.dataCreated(true))
	w.settle(p.infra, fields{"providerID": w.providerID(p.machine.Name)})
	w.report(p.infra, w.provisioned(true))
}

// node creates a Node as a kubelet does.
func (w *world) node(name, providerID string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Spec.ProviderID = providerID
	node.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint}
	w.create(node)
	before := node.DeepCopy()
	now := metav1.Now()
	node.Status.NodeInfo.KubeletVersion = "v1.34.0"
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now},
	}
	w.must(w.Client.Status().Patch(w.ctx, node, client.MergeFrom(before)), "to write the status of a Node")
	return node
}

// read reads the Machine; an empty one if it is gone.
func (w *world) read(p *place) *clusterv1.Machine {
	machine := &clusterv1.Machine{}
	machine.Namespace, machine.Name = p.machine.Namespace, p.machine.Name
	w.get(machine)
	return machine
}

func (w *world) readCluster() *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{}
	key := w.key(w.id)
	cluster.Namespace, cluster.Name = key.Namespace, key.Name
	w.get(cluster)
	return cluster
}

// current reads a stand-in; an empty one if it is gone.
func (w *world) current(object *unstructured.Unstructured) *unstructured.Unstructured {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	now.SetNamespace(object.GetNamespace())
	now.SetName(object.GetName())
	w.get(now)
	return now
}

// belongs returns a deviation if a Cluster is not among the owners of an object. Its controller may be another owner.
func (w *world) belongs(object *unstructured.Unstructured, cluster *clusterv1.Cluster) string {
	owners := w.current(object).GetOwnerReferences()
	is := func(o metav1.OwnerReference) bool { return o.Kind == "Cluster" && o.UID == cluster.UID }
	return when(!slices.ContainsFunc(owners, is), fmt.Sprintf("its owners are %v", owners))
}

// owned returns a deviation if a Machine is not the controller owner of an object.
func (w *world) owned(object *unstructured.Unstructured, machine *clusterv1.Machine) string {
	controller := metav1.GetControllerOf(w.current(object))
	if controller == nil || controller.Kind != "Machine" || controller.UID != machine.UID {
		return fmt.Sprintf("its controller owner is %v", controller)
	}
	return ""
}

func (w *world) labelled(object *unstructured.Unstructured) string {
	if got := w.current(object).GetLabels()[clusterv1.ClusterNameLabel]; got != w.id {
		return fmt.Sprintf("its label %s is %q", clusterv1.ClusterNameLabel, got)
	}
	return ""
}

// running returns a deviation if the Machine does not have its Node.
func (w *world) running(p *place) string {
	if got := w.read(p).Status.NodeRef.Name; got != p.node.Name {
		return fmt.Sprintf("Machine %s has Node %q, not %q", p.machine.Name, got, p.node.Name)
	}
	return ""
}
