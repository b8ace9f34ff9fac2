package machineset

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

// plane is what the preflight checks know of a control plane.
type plane struct {
	// name is kind and name.
	name string
	// wanted is the version that it shall have; "" for a control plane that has none, which no check is about.
	wanted string
	// has are the versions that it has; none before the first is known.
	has []string
}

// oldestKubelet is by how many minor versions a kubelet may be older than its API server
// (https://kubernetes.io/releases/version-skew-policy/#kubelet).
const oldestKubelet = 3

// checks are the preflight checks. Each returns what has to come first, or nothing.
var checks = map[clusterv1.MachineSetPreflightCheck]func(*scope, plane) string{
	clusterv1.MachineSetPreflightCheckControlPlaneIsStable:    controlPlaneIsStable,
	clusterv1.MachineSetPreflightCheckKubernetesVersionSkew:   kubernetesVersionSkew,
	clusterv1.MachineSetPreflightCheckKubeadmVersionSkew:      kubeadmVersionSkew,
	clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew: controlPlaneVersionSkew,
}

// controlPlaneIsStable waits for a control plane that is created or upgraded, or that a topology is about to upgrade.
func controlPlaneIsStable(s *scope, plane plane) string {
	if plane.wanted == "" {
		return ""
	}
	if pending := pendingVersion(s.cluster, plane.wanted); pending != "" {
		return fmt.Sprintf("%s is about to be upgraded from %s to %s", plane.name, plane.wanted, pending)
	}
	if len(plane.has) == 0 {
		return plane.name + " is being created: it reports no version yet"
	}
	wanted, err := version.ParseGeneric(plane.wanted)
	if err != nil {
		return unreadable(plane.name, plane.wanted)
	}
	for _, text := range plane.has {
		has, err := version.ParseGeneric(text)
		switch {
		case err != nil:
			return unreadable(plane.name, text)
		case upgrades(has, wanted, text, plane.wanted):
			return fmt.Sprintf("%s is being upgraded from %s to %s", plane.name, text, plane.wanted)
		}
	}
	return ""
}

// kubernetesVersionSkew waits until kubelets of the set's version may join.
func kubernetesVersionSkew(s *scope, plane plane) string {
	kubelet, server, blocker := versionsOf(s, plane)
	switch {
	case kubelet == nil || server == nil:
		return blocker
	case newer(kubelet, server):
		return fmt.Sprintf("the Machines' version %s is newer than %s of %s", s.Object.Spec.Template.Spec.Version, plane.wanted, plane.name)
	case kubelet.Major() != server.Major() || kubelet.Minor()+oldestKubelet < server.Minor():
		return fmt.Sprintf("the Machines' version %s is more than %d minor versions older than %s of %s",
			s.Object.Spec.Template.Spec.Version, oldestKubelet, plane.wanted, plane.name)
	}
	return ""
}

// kubeadmVersionSkew waits until kubeadm of the set's version can join, which takes the same minor version.
func kubeadmVersionSkew(s *scope, plane plane) string {
	ref := s.Object.Spec.Template.Spec.Bootstrap.ConfigRef
	if ref.APIGroup != "bootstrap.cluster.x-k8s.io" || ref.Kind != "KubeadmConfigTemplate" {
		return ""
	}
	kubelet, server, blocker := versionsOf(s, plane)
	if kubelet == nil || server == nil {
		return blocker
	}
	if kubelet.Major() != server.Major() || kubelet.Minor() != server.Minor() {
		return fmt.Sprintf("kubeadm %s can only join a control plane of the same minor version, and the desired version of %s is %s",
			s.Object.Spec.Template.Spec.Version, plane.name, plane.wanted)
	}
	return ""
}

// controlPlaneVersionSkew waits, in a Cluster with a topology, until the set has been given the control plane's version.
func controlPlaneVersionSkew(s *scope, plane plane) string {
	own := s.Object.Spec.Template.Spec.Version
	if own == "" || plane.wanted == "" || !hasTopology(s.cluster) || own == plane.wanted {
		return ""
	}
	return fmt.Sprintf("the Machines' version %s must first become %s, the version of %s", own, plane.wanted, plane.name)
}

// versionsOf parses both versions; nil for one that is not set or cannot be read. blocker is about the latter.
func versionsOf(s *scope, plane plane) (kubelet, server *version.Version, blocker string) {
	own := s.Object.Spec.Template.Spec.Version
	if own == "" || plane.wanted == "" {
		return nil, nil, ""
	}
	kubelet, err := version.ParseGeneric(own)
	if err != nil {
		return nil, nil, unreadable("spec.template.spec", own)
	}
	server, err = version.ParseGeneric(plane.wanted)
	if err != nil {
		return nil, nil, unreadable(plane.name, plane.wanted)
	}
	return kubelet, server, ""
}

func unreadable(whose, text string) string {
	return fmt.Sprintf("the version %q of %s is not a Kubernetes version: correct it", text, whose)
}

// newer compares minor versions.
func newer(a, b *version.Version) bool {
	return a.Major() > b.Major() || a.Major() == b.Major() && a.Minor() > b.Minor()
}

// upgrades reports whether a control plane has to go from one version to the other. Builds of one version differ in
// what follows the plus sign.
func upgrades(from, to *version.Version, fromText, toText string) bool {
	a, _, _ := strings.Cut(strings.TrimPrefix(fromText, "v"), "+")
	b, _, _ := strings.Cut(strings.TrimPrefix(toText, "v"), "+")
	if a != b {
		semanticFrom, errFrom := version.ParseSemantic(a)
		semanticTo, errTo := version.ParseSemantic(b)
		if errFrom == nil && errTo == nil {
			return semanticFrom.LessThan(semanticTo)
		}
		return from.LessThan(to)
	}
	return laterBuild(build(fromText), build(toText))
}

func build(text string) string {
	_, after, _ := strings.Cut(text, "+")
	return after
}

// laterBuild reports whether the second build differs from the first and is not known to come before it: numbers are
// compared, other texts have no order.
func laterBuild(from, to string) bool {
	a, b := strings.Split(from, "."), strings.Split(to, ".")
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		numberA, errA := strconv.Atoi(a[i])
		numberB, errB := strconv.Atoi(b[i])
		return errA != nil || errB != nil || numberA < numberB
	}
	return len(a) < len(b)
}

func hasTopology(cluster *clusterv1.Cluster) bool {
	return feature.Gates.Enabled(feature.ClusterTopology) && cluster.Spec.Topology.IsDefined()
}

// pendingVersion is the version that a topology will give its control plane next; "" when it has it, or without one.
func pendingVersion(cluster *clusterv1.Cluster, wanted string) string {
	step := upgradeStep(cluster)
	if !hasTopology(cluster) || cluster.Spec.Topology.Version == wanted || step == wanted {
		return ""
	}
	return cmp.Or(step, cluster.Spec.Topology.Version)
}

// upgradeStep is the version on the way to the topology's that a Cluster is brought to first.
func upgradeStep(cluster *clusterv1.Cluster) string {
	return cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
}
