package machinedeployment

import (
	"fmt"
	"strconv"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Annotations of a MachineDeployment that are this project's own. Cluster API has no fields for them.
const (
	// RollbackToAnnotation asks once for an earlier template: the value is the revision of a MachineSet that is
	// still kept, or 0 for the one before the current. It is removed in the write that brings the template back.
	RollbackToAnnotation = "machinedeployment.millwright.dev/rollback-to"
	// RevisionHistoryLimitAnnotation is how many MachineSets of earlier revisions are kept, without Machines,
	// once a rollout is complete: a whole number, DefaultRevisionHistoryLimit without it.
	RevisionHistoryLimitAnnotation = "machinedeployment.millwright.dev/revision-history-limit"
	// ProgressDeadlineAnnotation is how long a rollout may make no progress before RollingOut reports why: a
	// duration like 15m, DefaultProgressDeadline without it; 0 is for no deadline.
	ProgressDeadlineAnnotation = "machinedeployment.millwright.dev/progress-deadline"
	// ProgressAnnotation records how far a deployment has come and since when, where its objects do not show it. It is
	// written and removed by the controller.
	ProgressAnnotation = "machinedeployment.millwright.dev/progress"
	// PassedOverNamesAnnotation counts the names that were meant for a new set and that something else had. It is part of
	// what the next name is created from, and written by the controller.
	PassedOverNamesAnnotation = "machinedeployment.millwright.dev/passed-over-names"
	// RecreateAnnotation, with the value "true", has a rolling update remove all outdated Machines before it
	// creates new ones, whatever maxSurge and maxUnavailable are.
	RecreateAnnotation = "machinedeployment.millwright.dev/recreate"
	// AutoscalerAnnotation records which annotations of the cluster autoscaler the controller has written, and what they are
	// about. It is written and removed by the controller.
	AutoscalerAnnotation = "machinedeployment.millwright.dev/autoscaler"
)

// Defaults of the annotations.
const (
	// DefaultRevisionHistoryLimit is enough to go back once.
	DefaultRevisionHistoryLimit = 1
	// DefaultProgressDeadline is that of Kubernetes' Deployments.
	DefaultProgressDeadline = 10 * time.Minute
)

// historyLimit is the number of earlier revisions to keep, and what is wrong with the annotation, if anything.
func historyLimit(deployment *clusterv1.MachineDeployment) (int, string) {
	value, ok := deployment.Annotations[RevisionHistoryLimitAnnotation]
	if !ok {
		return DefaultRevisionHistoryLimit, ""
	}
	limit, err := strconv.Atoi(value)
	if err != nil || limit < 0 {
		return DefaultRevisionHistoryLimit, fmt.Sprintf(
			"annotation %s %q is not a whole number, %d is assumed: use one like 2", RevisionHistoryLimitAnnotation, value, DefaultRevisionHistoryLimit)
	}
	return limit, ""
}

// progressDeadline is the deadline, zero for none, and what is wrong with the annotation, if anything.
func progressDeadline(deployment *clusterv1.MachineDeployment) (time.Duration, string) {
	value, ok := deployment.Annotations[ProgressDeadlineAnnotation]
	if !ok {
		return DefaultProgressDeadline, ""
	}
	deadline, err := time.ParseDuration(value)
	if err != nil || deadline < 0 {
		return DefaultProgressDeadline, fmt.Sprintf(
			"annotation %s %q is not a duration, %s is assumed: use one like 15m", ProgressDeadlineAnnotation, value, DefaultProgressDeadline)
	}
	return deadline, ""
}

// recreates reports whether a rolling update deletes all outdated Machines first.
func recreates(deployment *clusterv1.MachineDeployment) bool {
	return deployment.Annotations[RecreateAnnotation] == "true"
}

// annotationErrors are what is wrong with annotations. They stop nothing, since a default can be assumed for each.
func annotationErrors(deployment *clusterv1.MachineDeployment) []string {
	var found []string
	if _, wrong := historyLimit(deployment); wrong != "" {
		found = append(found, wrong)
	}
	if _, wrong := progressDeadline(deployment); wrong != "" {
		found = append(found, wrong)
	}
	if value, ok := deployment.Annotations[RecreateAnnotation]; ok && value != "true" && value != "false" {
		found = append(found, fmt.Sprintf("annotation %s %q is not known, false is assumed: use true or false", RecreateAnnotation, value))
	}
	return found
}
