package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"

	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// PreflightChecks are all checks that can be named, by the flag --machineset-preflight-checks and in the annotation
// machineset.cluster.x-k8s.io/skip-preflight-checks.
func PreflightChecks() []clusterv1.MachineSetPreflightCheck {
	return []clusterv1.MachineSetPreflightCheck{
		clusterv1.MachineSetPreflightCheckAll,
		clusterv1.MachineSetPreflightCheckControlPlaneIsStable,
		clusterv1.MachineSetPreflightCheckKubernetesVersionSkew,
		clusterv1.MachineSetPreflightCheckKubeadmVersionSkew,
		clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew,
	}
}

// preflight returns why Machines must not be created or remediated yet, as far as the control plane is concerned; nothing when
// they may be. It looks once per reconcile. A set that waits is enqueued by the control plane's next change. While
// s.syncing is set the answer is not known yet.
func (r *Reconciler) preflight(ctx context.Context, s *scope) ([]string, error) {
	if s.preflighted || s.syncing {
		return s.heldBy, nil
	}
	due := r.dueChecks(s)
	if len(due) == 0 || !s.cluster.Spec.ControlPlaneRef.IsDefined() {
		s.preflighted = true
		return nil, nil
	}
	ref := s.cluster.Spec.ControlPlaneRef
	key := s.Key()
	r.forControlPlane.await(key, controlPlaneKey(ref.GroupKind(), types.NamespacedName{Namespace: s.Object.Namespace, Name: ref.Name}))
	found, err := r.kinds.Get(ctx, ref, s.Object.Namespace, s.Request())
	if err != nil {
		why, unexpected := s.expected(err, ref, "spec.controlPlaneRef of Cluster "+s.cluster.Name)
		if why != "" {
			s.preflighted, s.heldBy = true, []string{why}
		}
		return s.heldBy, unexpected
	}
	s.preflighted = true
	plane, blocker := planeOf(found)
	if blocker != "" {
		s.heldBy = []string{blocker}
		return s.heldBy, nil
	}
	for _, check := range due {
		if why := checks[check](s, plane); why != "" {
			s.heldBy = append(s.heldBy, fmt.Sprintf("%s (preflight check %s)", why, check))
		}
	}
	if len(s.heldBy) == 0 {
		r.forControlPlane.remove(key)
	}
	return s.heldBy, nil
}

// dueChecks are the checks that are switched on and not skipped, in the order of PreflightChecks.
func (r *Reconciler) dueChecks(s *scope) []clusterv1.MachineSetPreflightCheck {
	if !feature.Gates.Enabled(feature.MachineSetPreflightChecks) {
		return nil
	}
	return due(r.Preflight, skippedChecks(s))
}

func due(on, skipped []clusterv1.MachineSetPreflightCheck) []clusterv1.MachineSetPreflightCheck {
	among := func(list []clusterv1.MachineSetPreflightCheck, check clusterv1.MachineSetPreflightCheck) bool {
		return slices.Contains(list, clusterv1.MachineSetPreflightCheckAll) || slices.Contains(list, check)
	}
	return slices.DeleteFunc(PreflightChecks()[1:], func(check clusterv1.MachineSetPreflightCheck) bool {
		return !among(on, check) || among(skipped, check)
	})
}

// skippedChecks are named in an annotation of the set; if it has none, in that of its bootstrap config template.
func skippedChecks(s *scope) []clusterv1.MachineSetPreflightCheck {
	text := s.Object.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation]
	if text == "" && s.bootstrap != nil {
		text = s.bootstrap.GetAnnotations()[clusterv1.MachineSetSkipPreflightChecksAnnotation]
	}
	var skipped []clusterv1.MachineSetPreflightCheck
	for name := range strings.SplitSeq(text, ",") {
		skipped = append(skipped, clusterv1.MachineSetPreflightCheck(strings.TrimSpace(name)))
	}
	return skipped
}

// planeOf reads what the checks want to know of a control plane. blocker is why that cannot be read.
func planeOf(found external.Object) (plane plane, blocker string) {
	plane.name = fmt.Sprintf("%s %s", found.GetKind(), found.GetName())
	at := controlplane.At(found.Contract)
	wanted, err := at.Version(found.Unstructured)
	if err != nil {
		return plane, err.Error()
	}
	has, err := at.StatusVersions(found.Unstructured)
	if err != nil {
		return plane, err.Error()
	}
	plane.wanted, plane.has = wanted, has
	return plane, ""
}

// controlPlaneKey is what a set waits for that waits for a control plane: first its CRD, then the object.
func controlPlaneKey(kind schema.GroupKind, key types.NamespacedName) string {
	return version.CRDName(kind) + " " + key.String()
}
