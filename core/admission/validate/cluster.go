package validate

import (
	"net"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Cluster validates a Cluster, and its change from the old one. A Cluster that refers to
// nothing is fine: it is the kubeconfig of a cluster that exists already (design decision 5, docs/design.md).
func Cluster(cluster, old *clusterv1.Cluster) field.ErrorList {
	found := clusterAlone(cluster)
	if old == nil {
		return found
	}
	found = ratchet(found, clusterAlone(old))
	path := field.NewPath("spec")
	found = append(found, keptReference(path.Child("infrastructureRef"), cluster.Spec.InfrastructureRef, old.Spec.InfrastructureRef)...)
	return append(found, keptReference(path.Child("controlPlaneRef"), cluster.Spec.ControlPlaneRef, old.Spec.ControlPlaneRef)...)
}

// ClusterWarnings are about a Cluster that is let through and will be in the way: one whose spec is nothing but paused: true cannot be
// unpaused by taking that out, as clusterctl move does at its end, since a spec must have a field.
func ClusterWarnings(cluster *clusterv1.Cluster) []string {
	alone := clusterv1.ClusterSpec{Paused: cluster.Spec.Paused}
	if !ptr.Deref(cluster.Spec.Paused, false) || !equality.Semantic.DeepEqual(cluster.Spec, alone) {
		return nil
	}
	return []string{"spec has nothing but paused, and the API server refuses an empty spec: clusterctl move and others that remove paused will fail. " +
		"Set another field beside it, such as clusterNetwork.serviceDomain: cluster.local, or unpause with paused: false"}
}

func clusterAlone(cluster *clusterv1.Cluster) field.ErrorList {
	path := field.NewPath("spec")
	found := labelName(cluster.Name)
	network := path.Child("clusterNetwork")
	found = append(found, blocks(network.Child("pods", "cidrBlocks"), cluster.Spec.ClusterNetwork.Pods.CIDRBlocks)...)
	found = append(found, blocks(network.Child("services", "cidrBlocks"), cluster.Spec.ClusterNetwork.Services.CIDRBlocks)...)
	if cluster.Spec.Topology.IsDefined() {
		found = append(found, field.Forbidden(
			path.Child("topology"),
			"this core has no ClusterClass: create the objects of "+quote(
				cluster.Spec.Topology.ClassRef.Name,
			)+" themselves and remove the topology",
		))
	}
	return found
}

// keptReference refuses that a reference is removed: what it named would be left behind when the Cluster is deleted.
func keptReference(path *field.Path, now, before clusterv1.ContractVersionedObjectReference) field.ErrorList {
	if now.IsDefined() || !before.IsDefined() {
		return nil
	}
	return field.ErrorList{
		field.Forbidden(path, "cannot be removed: leave it "+quote(before.Kind+"/"+before.Name)+", or name what replaces it"),
	}
}

func blocks(path *field.Path, list []string) field.ErrorList {
	var found field.ErrorList
	for i, block := range list {
		if _, _, err := net.ParseCIDR(block); err != nil {
			found = append(found, field.Invalid(path.Index(i), block, "is not a block of addresses: write it like 10.0.0.0/16 or fd00::/64"))
		}
	}
	return found
}
