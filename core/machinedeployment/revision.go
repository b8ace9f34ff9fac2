package machinedeployment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// chooseCurrent finds the set whose template is the deployment's. Of several it is the one with the most
// replicas, then the highest revision, then the oldest. Once spec.rollout.after has come, only sets that are
// younger count.
func chooseCurrent(s *scope) *clusterv1.MachineSet {
	var current *clusterv1.MachineSet
	for _, set := range s.sets {
		switch {
		case !set.DeletionTimestamp.IsZero():
		case len(whyOutdated(s, set)) > 0:
		case current == nil || cmp.Or(desired(set)-desired(current), int(machines.Revision(set)-machines.Revision(current))) > 0:
			current = set
		}
	}
	return current
}

// whyOutdated lists why the Machines of a set are not what the deployment wants.
func whyOutdated(s *scope, set *clusterv1.MachineSet) []string {
	return machines.Outdated(s.deployment, set, rolloutTime(s))
}

// rolloutTime is the time that spec.rollout.after is compared with. Once a set was created for it, that time has come:
// a process whose clock is behind must not go back to the set before.
func rolloutTime(s *scope) time.Time {
	after := s.deployment.Spec.Rollout.After
	if after.IsZero() || !s.Now.Before(after.Time) {
		return s.Now
	}
	for _, set := range s.sets {
		if machines.CreatedFor(set, after.Time) {
			return after.Time
		}
	}
	return s.Now
}

// desired is the number of replicas in the spec of a set.
func desired(set *clusterv1.MachineSet) int { return int(ptr.Deref(set.Spec.Replicas, 0)) }

// currentRevision is the revision of the current set: its own as long as no other set has one as high, else the
// next one after all others and after what the deployment has counted so far. So a deployment that goes back to
// an earlier template continues in its revisions, and so does one that has lost its sets.
func currentRevision(deployment *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet, current *clusterv1.MachineSet) int64 {
	highest, own := int64(0), int64(0)
	for _, set := range sets {
		if current != nil && set.UID == current.UID {
			own = machines.Revision(set)
		} else {
			highest = max(highest, machines.Revision(set))
		}
	}
	if own > highest {
		return own
	}
	return max(highest, machines.Revision(deployment)) + 1
}

// setRevision sets the revision annotation, which is written with the rest of the metadata.
func setRevision(s *scope) {
	if s.current == nil {
		return
	}
	revision := currentRevision(s.deployment, s.sets, s.current)
	s.Object.Annotations = with(s.Object.Annotations, clusterv1.RevisionAnnotation, strconv.FormatInt(revision, 10))
}

// bySeniority sorts sets by creation, then by name.
func bySeniority(sets []*clusterv1.MachineSet) {
	slices.SortFunc(sets, func(a, b *clusterv1.MachineSet) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// templateHash is a short text for what of a template makes a rollout. It only helps people to see which
// Machines belong together: sets are distinguished by nameEnd, and compared by their templates.
func templateHash(template *clusterv1.MachineTemplateSpec) string {
	fields, err := json.Marshal([]any{
		template.Spec.Version, template.Spec.Bootstrap, template.Spec.InfrastructureRef, template.Spec.FailureDomain,
	})
	if err != nil {
		// Strings in structs can always be marshalled.
		return "0"
	}
	hash := fnv.New32a()
	_, _ = hash.Write(fields)
	return rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
}
