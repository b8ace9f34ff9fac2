package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// State is what is concluded of a Machine.
type State string

const (
	// Exempt is a Machine that is not to be judged: it, or its Cluster, is paused, or it says cluster.x-k8s.io/skip-remediation.
	Exempt State = "Exempt"
	// Undetermined means that nothing can be concluded now; what was concluded before stays.
	Undetermined State = "Undetermined"
	// Pending means that the Machine is not healthy, and not unhealthy either: it has no Node yet, has a bad condition for less than
	// its timeout, or is being deleted.
	Pending State = "Pending"
	// Healthy means that it has a Node, and nothing speaks against it.
	Healthy State = "Healthy"
	// Unhealthy means that it is to be replaced.
	Unhealthy State = "Unhealthy"
)

// Reasons are those with which a Machine is found unhealthy. By them, among others, a condition is known to be the core's.
var Reasons = []string{
	clusterv1.MachineHealthCheckHasRemediateAnnotationReason, clusterv1.MachineHealthCheckUnhealthyMachineReason,
	clusterv1.MachineHealthCheckUnhealthyNodeReason, clusterv1.MachineHealthCheckNodeDeletedReason,
	clusterv1.MachineHealthCheckNodeStartupTimeoutReason,
}

// Assessment is what a Policy makes of Facts.
type Assessment struct {
	// State is the conclusion.
	State State
	// Reason is that of the condition HealthCheckSucceeded, for an unhealthy Machine.
	Reason string
	// Message reports why; it does not change while the reasons stay.
	Message string
	// Since is when the first of what makes the Machine unhealthy began; zero for others.
	Since time.Time
	// Next is when time alone changes the assessment; zero if it does not.
	Next time.Time
}

// Judgement is what one policy makes of a Machine.
type Judgement struct {
	// Policy is the name of the policy.
	Policy string
	Assessment
}

// Combine makes one assessment of those of several policies: unhealthy by any is unhealthy, and the message names which.
func Combine(judgements []Judgement) Assessment {
	all := slices.SortedFunc(slices.Values(judgements), func(a, b Judgement) int {
		return cmp.Or(rank(b.State)-rank(a.State), strings.Compare(a.Policy, b.Policy))
	})
	if len(all) == 0 {
		return Assessment{State: Exempt}
	}
	combined := all[0].Assessment
	var lines []string
	for _, j := range all {
		combined.Next = earlier(combined.Next, j.Next)
		if j.State != combined.State || j.Message == "" {
			continue
		}
		combined.Since = earlier(combined.Since, j.Since)
		lines = append(lines, j.Policy+": "+j.Message)
	}
	combined.Message = strings.Join(lines, "\n")
	return combined
}

// rank orders states: of those of several policies the highest counts.
func rank(v State) int {
	return slices.Index([]State{Exempt, Healthy, Pending, Undetermined, Unhealthy}, v)
}

// earlier is the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
