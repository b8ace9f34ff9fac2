// Package index names the indexes of the management cache, so that controllers find what an event concerns
// without listing.
package index

import (
	"context"

	"github.com/pkg/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

const (
	// Cluster indexes Machines, MachineSets and MachineDeployments by spec.clusterName.
	Cluster = "spec.clusterName"
	// NodeName indexes Machines by status.nodeRef.name.
	NodeName = "status.nodeRef.name"
	// ProviderID indexes Machines by spec.providerID.
	ProviderID = "spec.providerID"
	// Reference indexes Machines and Clusters by the objects that they refer to; see ReferenceValue.
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
		{&clusterv1.Machine{}, NodeName, of(func(m *clusterv1.Machine) string { return m.Status.NodeRef.Name })},
		{&clusterv1.Machine{}, ProviderID, of(func(m *clusterv1.Machine) string { return m.Spec.ProviderID })},
		{&clusterv1.Machine{}, Reference, ofReferences(machineReferences, ReferenceValue)},
		{&clusterv1.Machine{}, ReferenceCRD, ofReferences(machineReferences, crdName)},
		{&clusterv1.Cluster{}, Reference, ofReferences(clusterReferences, ReferenceValue)},
		{&clusterv1.Cluster{}, ReferenceCRD, ofReferences(clusterReferences, crdName)},
	} {
		if err := indexer.IndexField(ctx, i.object, i.field, i.values); err != nil {
			return errors.Wrapf(err, "adding index %s of %T", i.field, i.object)
		}
	}
	return nil
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

// ofReferences makes an index over the references of an object that are set.
func ofReferences[O client.Object](references func(O) []clusterv1.ContractVersionedObjectReference,
	value func(clusterv1.ContractVersionedObjectReference) string) client.IndexerFunc {
	return func(obj client.Object) []string {
		typed, ok := obj.(O)
		if !ok {
			return nil
		}
		var values []string
		for _, ref := range references(typed) {
			if ref.IsDefined() {
				values = append(values, value(ref))
			}
		}
		return values
	}
}

func machineReferences(m *clusterv1.Machine) []clusterv1.ContractVersionedObjectReference {
	return []clusterv1.ContractVersionedObjectReference{m.Spec.Bootstrap.ConfigRef, m.Spec.InfrastructureRef}
}

func clusterReferences(c *clusterv1.Cluster) []clusterv1.ContractVersionedObjectReference {
	return []clusterv1.ContractVersionedObjectReference{c.Spec.InfrastructureRef, c.Spec.ControlPlaneRef}
}

func crdName(ref clusterv1.ContractVersionedObjectReference) string {
	return version.CRDName(ref.GroupKind())
}
