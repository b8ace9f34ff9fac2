package behaviour

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/inframachine"
)

// suiteGroup is the group of the kinds that the suite's objects refer to where no object is needed.
const suiteGroup = "conformance.millwright.dev"

// cluster creates the Cluster, and the sample's objects for each Cluster. Its infrastructure is not provisioned yet.
func (w *world) cluster(paused bool) {
	spec, err := w.Sample.clusterSpec()
	w.must(err, "to read the Cluster of the sample")
	spec.InfrastructureRef = w.Sample.infrastructure(spec.InfrastructureRef, w.id)
	spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
	if spec.ClusterNetwork.ServiceDomain == "" {
		spec.ClusterNetwork.ServiceDomain = "cluster.local" // An empty spec is refused.
	}
	if paused {
		spec.Paused = ptr.To(true)
	}
	cluster := &clusterv1.Cluster{ObjectMeta: w.meta(), Spec: spec}
	w.create(cluster)
	for _, document := range w.Sample.perCluster {
		w.extra(document, cluster)
	}
}

// extra creates an object of the sample for the Cluster, which owns it.
func (w *world) extra(document string, cluster *clusterv1.Cluster) {
	object, err := decode(filled(document, w.id, w.Namespace, w.marker))
	w.must(err, "to read an object of the sample")
	w.secrets = append(w.secrets, secretValues(object)...)
	object.SetNamespace(w.Namespace)
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel] = w.id
	object.SetLabels(labels)
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}})
	w.create(object)
}

// infrastructureReady writes the status of a Cluster whose infrastructure and control plane are ready, as a core does.
func (w *world) infrastructureReady() {
	w.must(retry(w.ctx, func() error {
		cluster := &clusterv1.Cluster{}
		if err := w.Client.Get(w.ctx, w.key(), cluster); err != nil {
			return err
		}
		cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		now := metav1.Now()
		cluster.Status.Conditions = []metav1.Condition{
			{Type: "InfrastructureReady", Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: now},
			{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue, Reason: "Initialized", LastTransitionTime: now},
		}
		return w.Client.Status().Update(w.ctx, cluster)
	}), "to write the status of the Cluster")
}

func (w *world) key() client.ObjectKey { return client.ObjectKey{Namespace: w.Namespace, Name: w.id} }

// pause pauses or resumes the Cluster.
func (w *world) pause(paused bool) {
	w.must(setPaused(w.ctx, w.Client, w.key(), paused), "to pause the Cluster")
}

func setPaused(ctx context.Context, c client.Client, key client.ObjectKey, paused bool) error {
	return retry(ctx, func() error {
		cluster := &clusterv1.Cluster{}
		if err := c.Get(ctx, key, cluster); err != nil {
			return err
		}
		if ptr.Deref(cluster.Spec.Paused, false) == paused {
			return nil
		}
		cluster.Spec.Paused = nil
		if paused {
			cluster.Spec.Paused = ptr.To(true)
		}
		return c.Update(ctx, cluster)
	})
}

// machine creates the Machine, with the name of its bootstrap data if data is not empty.
func (w *world) machine(infrastructure, bootstrap clusterv1.ContractVersionedObjectReference, data string) *clusterv1.Machine {
	spec, err := w.Sample.machineSpec()
	w.must(err, "to read the Machine of the sample")
	spec.ClusterName, spec.ProviderID = w.id, ""
	spec.InfrastructureRef = infrastructure
	spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: bootstrap}
	if data != "" {
		spec.Bootstrap.DataSecretName = &data
	}
	machine := &clusterv1.Machine{ObjectMeta: w.meta(), Spec: spec}
	w.create(machine)
	w.uids = append(w.uids, string(machine.UID))
	return machine
}

// reference refers to the object of the case.
func (w *world) reference() clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: w.Kind.Group, Kind: w.Kind.Kind, Name: w.id}
}

// dangling refers to an object that does not exist.
func (w *world) dangling(kind string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: suiteGroup, Kind: kind, Name: w.id}
}

// subject creates the provider's object, owned by the Machine unless that is nil.
func (w *world) subject(owner *clusterv1.Machine, annotations map[string]string) {
	document, err := w.Sample.Subject.MarshalJSON()
	w.must(err, "to read the object of the sample")
	object, err := decode(filled(string(document), w.id, w.Namespace, w.marker))
	w.must(err, "to read the object of the sample")
	subject := &unstructured.Unstructured{Object: map[string]any{}}
	if spec, found := object.Object["spec"]; found {
		subject.Object["spec"] = spec
	}
	subject.SetGroupVersionKind(w.Kind)
	subject.SetNamespace(w.Namespace)
	subject.SetName(w.id)
	subject.SetLabels(map[string]string{clusterv1.ClusterNameLabel: w.id})
	subject.SetAnnotations(annotations)
	if owner != nil {
		subject.SetOwnerReferences([]metav1.OwnerReference{ownerOf(owner)})
	}
	w.create(subject)
	w.uids = append(w.uids, string(subject.GetUID()))
}

// adopt sets the Machine as owner of the object, as a core does.
func (w *world) adopt(machine *clusterv1.Machine) {
	w.edit(func(object *unstructured.Unstructured) {
		object.SetOwnerReferences([]metav1.OwnerReference{ownerOf(machine)})
	})
}

func ownerOf(machine *clusterv1.Machine) metav1.OwnerReference {
	return *metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))
}

// annotate sets an annotation of the object, or removes it.
func (w *world) annotate(name string, value *string) {
	w.edit(func(object *unstructured.Unstructured) {
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		delete(annotations, name)
		if value != nil {
			annotations[name] = *value
		}
		object.SetAnnotations(annotations)
	})
}

// deleteSubject deletes the object.
func (w *world) deleteSubject() {
	w.must(deleteSeen(w.ctx, w.Client, w.Kind, w.key()), "to delete the provider's object")
}

// announce does what a core does before it deletes an infrastructure machine: it deletes the Machine, whose finalizer keeps it, takes over
// provider ID and addresses, and reports that its Node is drained. A provider may keep the instance until then (IM-042).
func announce(ctx context.Context, c client.Client, kind schema.GroupVersionKind, key client.ObjectKey) error {
	return client.IgnoreNotFound(retry(ctx, func() error {
		machine := &clusterv1.Machine{}
		err := c.Get(ctx, key, machine)
		ref := machine.Spec.InfrastructureRef
		if err != nil || ref.Kind != kind.Kind || ref.APIGroup != kind.Group || inframachine.MayTerminate(machine) {
			return err
		}
		providerID, addresses, err := reported(ctx, c, kind, key)
		if err != nil {
			return err
		}
		if machine.DeletionTimestamp.IsZero() {
			controllerutil.AddFinalizer(machine, clusterv1.MachineFinalizer)
			machine.Spec.ProviderID = cmp.Or(machine.Spec.ProviderID, providerID)
			if err := c.Update(ctx, machine); err != nil {
				return err
			}
			if err := c.Delete(ctx, machine); err != nil {
				return err
			}
			if err := c.Get(ctx, key, machine); err != nil {
				return err
			}
		}
		machine.Status.Addresses = addresses
		meta.SetStatusCondition(&machine.Status.Conditions, metav1.Condition{
			Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue,
			Reason: clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason,
		})
		err = c.Status().Update(ctx, machine)
		if apierrors.IsInvalid(err) {
			machine.Status.Addresses = nil // What the API of Machines refuses is reported by IM-014.
			err = c.Status().Update(ctx, machine)
		}
		return err
	}))
}

// reported returns what a core takes over from an infrastructure machine. Fields of wrong types are reported by other rules.
func reported(
	ctx context.Context, c client.Client, kind schema.GroupVersionKind, key client.ObjectKey,
) (string, clusterv1.MachineAddresses, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.Get(ctx, key, object); err != nil {
		return "", nil, err
	}
	providerID, _ := inframachine.Accessor{}.ProviderID(object)
	addresses, err := inframachine.Accessor{}.Addresses(object)
	if err != nil {
		addresses = nil
	}
	return providerID, addresses, nil
}

// deleteSeen deletes an object if it has not changed since it was read. The API server checks finalizers before it deletes, so that one
// which a provider adds in between is lost, and the machine that it launches next is never terminated.
func deleteSeen(ctx context.Context, c client.Client, kind schema.GroupVersionKind, key client.ObjectKey) error {
	if err := announce(ctx, c, kind, key); err != nil {
		return err
	}
	return client.IgnoreNotFound(retry(ctx, func() error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		if err := c.Get(ctx, key, object); err != nil || object.GetDeletionTimestamp() != nil {
			return err
		}
		uid, version := object.GetUID(), object.GetResourceVersion()
		return c.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	}))
}

// resume ends all pauses of what a case has created.
func resume(ctx context.Context, c client.Client, kind schema.GroupVersionKind, namespace, name string) error {
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := client.IgnoreNotFound(setPaused(ctx, c, key, false)); err != nil {
		return err
	}
	return client.IgnoreNotFound(retry(ctx, func() error {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		if err := c.Get(ctx, key, object); err != nil {
			return err
		}
		annotations := object.GetAnnotations()
		if _, paused := annotations[clusterv1.PausedAnnotation]; !paused {
			return nil
		}
		delete(annotations, clusterv1.PausedAnnotation)
		object.SetAnnotations(annotations)
		return c.Update(ctx, object)
	}))
}
