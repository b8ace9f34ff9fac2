package validate

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func aCluster(change ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	for _, c := range change {
		c(cluster)
	}
	return cluster
}

func TestCluster(t *testing.T) {
	infra := func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "XCluster", Name: "x"}
	}
	controlPlane := func(c *clusterv1.Cluster) {
		c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "XControlPlane", Name: "x"}
	}
	topology := func(c *clusterv1.Cluster) {
		c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.36.3"}
	}
	network := func(pods, services string) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) {
			c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.0.0.0/8", pods}
			c.Spec.ClusterNetwork.Services.CIDRBlocks = []string{services}
		}
	}
	tests := map[string]struct {
		cluster, old *clusterv1.Cluster
		want         string
	}{
		"nothing but a kubeconfig":       {cluster: aCluster()},
		"with references":                {cluster: aCluster(infra, controlPlane)},
		"references are set later":       {cluster: aCluster(infra, controlPlane), old: aCluster()},
		"infrastructure is taken away":   {cluster: aCluster(controlPlane), old: aCluster(infra, controlPlane), want: `spec.infrastructureRef: Forbidden: cannot be removed: leave it "XCluster/x"`},
		"control plane is taken away":    {cluster: aCluster(infra), old: aCluster(infra, controlPlane), want: "spec.controlPlaneRef: Forbidden: cannot be removed"},
		"name that is too long":          {cluster: aCluster(func(c *clusterv1.Cluster) { c.Name = strings.Repeat("c", 64) }), want: "metadata.name: Invalid value"},
		"network":                        {cluster: aCluster(network("fd00::/64", "10.96.0.0/12"))},
		"pods' network that is none":     {cluster: aCluster(network("10.0.0.0", "10.96.0.0/12")), want: `spec.clusterNetwork.pods.cidrBlocks[1]: Invalid value: "10.0.0.0": is not a block`},
		"services' network that is none": {cluster: aCluster(network("10.0.0.0/8", "10.96.0.0/33")), want: "spec.clusterNetwork.services.cidrBlocks[0]: Invalid value"},
		"topology":                       {cluster: aCluster(topology), want: "spec.topology: Forbidden: this core has no ClusterClass"},
		"topology that was there":        {cluster: aCluster(topology, infra), old: aCluster(topology)},
		"topology is given up":           {cluster: aCluster(infra), old: aCluster(topology, infra)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { expect(t, Cluster(test.cluster, test.old), test.want) })
	}
}

// TestClusterWarnings: only what cannot be unpaused by removing the field is warned of.
func TestClusterWarnings(t *testing.T) {
	paused := func(value bool) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) { c.Spec.Paused = &value }
	}
	domain := func(c *clusterv1.Cluster) { c.Spec.ClusterNetwork.ServiceDomain = "cluster.local" }
	for name, test := range map[string]struct {
		cluster *clusterv1.Cluster
		warned  bool
	}{
		"nothing but paused":        {aCluster(paused(true)), true},
		"nothing but paused: false": {aCluster(paused(false)), false},
		"another field":             {aCluster(paused(true), domain), false},
		"not paused":                {aCluster(domain), false},
	} {
		found := ClusterWarnings(test.cluster)
		if (len(found) == 1) != test.warned {
			t.Errorf("%s: %v", name, found)
		}
		if test.warned && !strings.Contains(found[0], "clusterNetwork.serviceDomain: cluster.local, or unpause with paused: false") {
			t.Errorf("%s: no remedy in %q", name, found[0])
		}
	}
}
