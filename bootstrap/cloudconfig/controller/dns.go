package controller

import (
	"net/netip"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// dnsIndex is which address of the services' network the cluster's DNS has, by the convention that kubeadm and others keep.
const dnsIndex = 10

// clusterDNS returns the address that the DNS of the target cluster has by convention: the tenth of the first services' network
// that the Cluster declares; "" when it declares none, or none that is large enough.
func clusterDNS(cluster *clusterv1.Cluster) string {
	blocks := cluster.Spec.ClusterNetwork.Services.CIDRBlocks
	if len(blocks) == 0 {
		return ""
	}
	network, err := netip.ParsePrefix(blocks[0])
	if err != nil {
		return ""
	}
	address := network.Masked().Addr()
	for range dnsIndex {
		address = address.Next()
	}
	if !network.Contains(address) {
		return ""
	}
	return address.String()
}
