package machinedeployment

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
	"millwright.dev/core/safety/rewritten"
)

// wantedOn returns the labels and the owner that the deployment needs on a set.
func wantedOn(s *scope, set *clusterv1.MachineSet) *rewritten.Wanted {
	return &rewritten.Wanted{Labels: labelsFor(s.deployment, set), Selector: s.settings.selector, Owner: s.deployment.UID}
}

// noteUnmatched notes a controlled set that spec.selector does not match, and records an event the first time. The set stays: if it lost
// its owner, nothing would scale it down, and another fleet would be created beside it.
func (r *Reconciler) noteUnmatched(s *scope, set *clusterv1.MachineSet) {
	if s.settings.selector.Matches(labels.Set(set.Labels)) || !set.DeletionTimestamp.IsZero() {
		return
	}
	differences := wantedOn(s, set).Differences(set)
	if len(differences) == 0 {
		differences = []string{"spec.selector asks for labels that the template does not have"}
	}
	line := fmt.Sprintf("MachineSet %s is not matched by spec.selector, and stays with the MachineDeployment: %s. "+
		"Restore spec.selector, or the labels of the MachineSet", set.Name, strings.Join(differences, "; "))
	s.mismatches = append(s.mismatches, line)
	found := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineDeploymentRollingOutCondition)
	if found == nil || !strings.Contains(found.Message, line) {
		r.warn(s, set, SelectorMismatchReason, "Claim", "%s", line)
	}
}

// noteCreated compares a set that was created or adopted with what was sent, and reports a difference. It returns whether the deployment
// controls the set. If not, it creates no other one.
func (r *Reconciler) noteCreated(s *scope, sent, stored *clusterv1.MachineSet) bool {
	wanted := &rewritten.Wanted{Labels: sent.Labels, Selector: s.settings.selector, Owner: s.deployment.UID}
	differences := wanted.Differences(stored)
	if len(differences) == 0 {
		return true
	}
	line, fresh := r.rewritten.Note(s.deployment.UID, setKindName, stored, wanted, s.Now)
	if fresh {
		r.warn(s, stored, RewrittenEvent, "CreateMachineSet", "%s", line)
	}
	if !wanted.Controls(stored) {
		s.blockers = append(s.blockers, line)
		return false
	}
	// It is kept, and its labels are restored with the next update, as far as they are not rewritten again.
	r.rewritten.Drop(s.deployment.UID, stored.UID)
	return true
}

const setKindName = "MachineSet"

// reviewRewritten stops the creation of sets while one exists whose owner others remove, and tries again after a while.
func (r *Reconciler) reviewRewritten(ctx context.Context, s *scope) outcome.Outcome {
	wanted := &rewritten.Wanted{Owner: s.deployment.UID}
	entries, err := r.rewritten.Review(s.deployment.UID, wanted, s.Now, func(key client.ObjectKey) (metav1.Object, error) {
		set := &clusterv1.MachineSet{}
		return set, r.Client.Get(ctx, key, set)
	})
	if err != nil {
		return outcome.FromError(errors.Wrap(err, "reading MachineSets that are rewritten"))
	}
	for _, entry := range entries {
		s.blockers = append(s.blockers, entry.Line)
	}
	if len(entries) > 0 {
		return outcome.ContinueAfter(rewritten.Retry)
	}
	return outcome.Continue()
}

// checkTemplates stops the creation of sets if several were created for the present template and have another one: a policy rewrites
// spec.template, and each new set would be outdated as well. The label that distinguishes sets has the hash of the template as it was sent.
func (r *Reconciler) checkTemplates(s *scope) {
	if s.current != nil {
		return
	}
	present := &s.deployment.Spec.Template
	var changed []string
	for _, set := range s.sets {
		because := machines.OutdatedBecause(present, &set.Spec.Template)
		sent := strings.HasPrefix(labelsFor(s.deployment, set)[clusterv1.MachineDeploymentUniqueLabel], templateHash(present)+"-")
		if sent && len(because) > 0 && set.DeletionTimestamp.IsZero() {
			changed = append(changed, set.Name+" ("+strings.Join(because, ", ")+")")
		}
	}
	if len(changed) < machines.Margin {
		return
	}
	text := fmt.Sprintf("%d MachineSets were created for the present template and have another one: %s. An admission policy or webhook changes "+
		"spec.template: exclude MachineSets there, then delete those of them that have no Machines", len(changed), strings.Join(changed, "; "))
	s.blockers = append(s.blockers, text)
	r.warnOnce(s, RewrittenEvent, "CreateMachineSet", text)
}

// storedAsSent reports whether the API server has stored a new set with the template that was sent. If not, it records a warning.
func (r *Reconciler) storedAsSent(s *scope, sent, stored *clusterv1.MachineSet) bool {
	because := machines.OutdatedBecause(&sent.Spec.Template, &stored.Spec.Template)
	if len(because) > 0 {
		r.warn(s, stored, RewrittenEvent, "CreateMachineSet", "MachineSet %s is not stored as it was sent: %s. "+
			"An admission policy or webhook changes spec.template: exclude MachineSets there", stored.Name, strings.Join(because, ", "))
	}
	return len(because) == 0
}
