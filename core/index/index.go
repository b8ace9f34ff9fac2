// Package index names the indexes of the management cache, so that controllers find what an event concerns
// without listing.
package index

import (
	"context"
	"slices"
	"strings"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

const (
	// Cluster indexes Machines, MachineSets and MachineDeployments by spec.clusterName.
	Cluster = "spec.clusterName"
	// Standalone indexes those Machines by spec.clusterName that no MachineSet controls.
	Standalone = "standalone"
	// Controller indexes Machines by the UID of their controller, those without one by NoController.
	Controller = "controllerUID"
	// NodeName indexes Machines by status.nodeRef.name.
	NodeName = "status.nodeRef.name"
	// ProviderID indexes Machines by spec.providerID.
	ProviderID = "spec.providerID"
	// HostName indexes Machines by the names that their Nodes may have by all appearances: their own, and the addresses in
	// status.addresses that are names.
	HostName = "hostName"
	// Reference indexes Machines and Clusters by the objects that they refer to; see ReferenceValue. Objects of the
	// referrer's own name are not in it: a caller that looks for referrers tries that name first, see Refers.
	Reference = "reference"
	// ReferenceCRD indexes Machines and Clusters by the names of the CRDs of those objects.
	ReferenceCRD = "referenceCRD"
)

// ReferenceValue is the value of the index Reference for an object in the namespace of the referrer.
func ReferenceValue(ref clusterv1.ContractVersionedObjectReference) string {
	return ref.APIGroup + "/" + ref.Kind + "/" + ref.Name
}

// Register adds all indexes to the cache.
func Register(ctx context.Context, indexer client.FieldIndexer) error {
	for _, i := range []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&clusterv1.Machine{}, Cluster, of(func(m *clusterv1.Machine) string { return m.Spec.ClusterName })},
		{&clusterv1.MachineSet{}, Cluster, of(func(s *clusterv1.MachineSet) string { return s.Spec.ClusterName })},
		{&clusterv1.MachineDeployment{}, Cluster, of(func(d *clusterv1.MachineDeployment) string { return d.Spec.ClusterName })},
		{&clusterv1.Machine{}, Standalone, of(standaloneIn)},
		{&clusterv1.Machine{}, Controller, ControllerOf},
		{&clusterv1.Machine{}, NodeName, of(func(m *clusterv1.Machine) string { return m.Status.NodeRef.Name })},
		{&clusterv1.Machine{}, ProviderID, of(func(m *clusterv1.Machine) string { return m.Spec.ProviderID })},
		{&clusterv1.Machine{}, HostName, hostNames},
		{&clusterv1.Machine{}, Reference, otherNames},
		{&clusterv1.Machine{}, ReferenceCRD, crdNames},
		{&clusterv1.Cluster{}, Reference, otherNames},
		{&clusterv1.Cluster{}, ReferenceCRD, crdNames},
	} {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return errors.Wrapf(err, "adding index %s of %T", i.field, i.object)
		}
	}
	return nil
}

// standaloneIn is the Cluster of a Machine that no MachineSet controls.
func standaloneIn(m *clusterv1.Machine) string {
	if owner := metav1.GetControllerOf(m); owner != nil && owner.Kind == "MachineSet" {
		return ""
	}
	return m.Spec.ClusterName
}

// HostNames are the addresses that a Node of that machine may have as its name, as its infrastructure reports them.
func HostNames(m *clusterv1.Machine) []string {
	var names []string
	for _, address := range m.Status.Addresses {
		switch address.Type {
		case clusterv1.MachineHostName, clusterv1.MachineInternalDNS, clusterv1.MachineExternalDNS:
			if name := strings.ToLower(address.Address); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// hostNames are the values of the index HostName.
func hostNames(obj client.Object) []string {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	names := HostNames(m)
	if !slices.Contains(names, m.Name) {
		names = append(names, m.Name)
	}
	return names
}

// of makes an index over one text, which objects without it are not in.
func of[O client.Object](value func(O) string) client.IndexerFunc {
	return func(obj client.Object) []string {
		typed, ok := obj.(O)
		if !ok {
			return nil
		}
		if v := value(typed); v != "" {
			return []string{v}
		}
		return nil
	}
}

// Refers reports whether a Machine or a Cluster refers to an object in its namespace.
func Refers(referrer client.Object, ref clusterv1.ContractVersionedObjectReference) bool {
	return slices.Contains(references(referrer), ref)
}

// references are the references of a Machine or a Cluster that are set.
func references(referrer client.Object) []clusterv1.ContractVersionedObjectReference {
	var all []clusterv1.ContractVersionedObjectReference
	switch typed := referrer.(type) {
	case *clusterv1.Machine:
		all = []clusterv1.ContractVersionedObjectReference{typed.Spec.Bootstrap.ConfigRef, typed.Spec.InfrastructureRef}
	case *clusterv1.Cluster:
		all = []clusterv1.ContractVersionedObjectReference{typed.Spec.InfrastructureRef, typed.Spec.ControlPlaneRef}
	}
	return slices.DeleteFunc(all, func(ref clusterv1.ContractVersionedObjectReference) bool { return !ref.IsDefined() })
}

// otherNames are the values of the index Reference. Nearly all Machines refer to objects of their own name, which
// need no entry to be found: four fewer for each Machine.
func otherNames(referrer client.Object) []string {
	var values []string
	for _, ref := range references(referrer) {
		if ref.Name != referrer.GetName() {
			values = append(values, ReferenceValue(ref))
		}
	}
	return values
}

// crdNames are the values of the index ReferenceCRD.
func crdNames(referrer client.Object) []string {
	var values []string
	for _, ref := range references(referrer) {
		values = append(values, version.CRDName(ref.GroupKind()))
	}
	return values
}

// NoController is the value of the index Controller for Machines without a controller.
const NoController = "none"

// ControllerOf are the values of the index Controller.
func ControllerOf(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return []string{NoController}
}
