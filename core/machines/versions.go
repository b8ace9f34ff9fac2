package machines

import (
	"cmp"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxVersions is what the field takes.
const maxVersions = 100

// VersionsOf counts the Machines by the kubelet's version where a Node has told one; others do not count.
func VersionsOf(machines []*clusterv1.Machine) []clusterv1.StatusVersion {
	counts := map[string]int32{}
	for _, machine := range machines {
		if machine.Status.NodeInfo != nil && machine.Status.NodeInfo.KubeletVersion != "" {
			counts[machine.Status.NodeInfo.KubeletVersion]++
		}
	}
	var versions []clusterv1.StatusVersion
	for version, number := range counts {
		versions = append(versions, clusterv1.StatusVersion{Version: version, Replicas: number})
	}
	slices.SortFunc(versions, func(a, b clusterv1.StatusVersion) int { return cmp.Compare(a.Version, b.Version) })
	return versions[:min(len(versions), maxVersions)]
}
