package remediation

import (
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
	"millwright.dev/core/safety/freeze"
)

// Reasons why a Machine is not replaced now. They are those of the condition RemediationAllowed and of millwright_remediation_blocked.
const (
	// FrozenReason means that nothing may be concluded about Machines now; the message says why and since when.
	FrozenReason = "Frozen"
	// InvalidLimitReason means that a setting cannot be read; the message names it and the remedy.
	InvalidLimitReason = "InvalidLimit"
	// UnreadReason means that the API server has not answered, since the core began, what is in flight in the Cluster.
	UnreadReason = "Unread"
	// TooManyUnhealthyReason means that more Machines of the Cluster are unhealthy than --remediation-stop-above allows.
	TooManyUnhealthyReason = "TooManyUnhealthy"
	// MaxRetryReachedReason means that replacements failed as often as --remediation-max-retry allows: those of one Machine in a row, or
	// those of all Machines of the template since one came up last.
	MaxRetryReachedReason = "MaxRetryReached"
	// RetryInProgressReason means that another replacement is retried. One is at a time until one of them has come up.
	RetryInProgressReason = "RetryInProgress"
	// RetryNotCreatedReason is RetryInProgressReason when that replacement should exist by now, and is not created.
	RetryNotCreatedReason = "RetryNotCreated"
	// RetryPeriodReason means that the replacement before was begun less than --remediation-retry-period ago.
	RetryPeriodReason = "RetryPeriod"
	// MaxInFlightReason means that as many Machines of the MachineDeployment are being replaced as may be.
	MaxInFlightReason = "MaxInFlight"
	// MaxInFlightOfClusterReason means that of the Cluster.
	MaxInFlightOfClusterReason = "MaxInFlightOfCluster"
)

// Candidate is a Machine that a health check has handed to its owner.
type Candidate struct {
	Name string
	// Begun means that its replacement has been recorded or announced: it is counted, and not decided again.
	Begun bool
	// Demanded means that a person asks for its replacement: retries neither count nor wait.
	Demanded bool
	// Elsewhere means that another MachineSet makes up for it: the template is another one, and retries do not count.
	Elsewhere bool
	// Replaces is the record of the Machine; nil when it replaces none.
	Replaces *Record
	// FailedAt is since when it has been unhealthy; Reason and Message are those of HealthCheckSucceeded.
	FailedAt        time.Time
	Reason, Message string
}

// Input is all that a decision depends on.
type Input struct {
	Now    time.Time
	Frozen freeze.State
	// Held has the names of what is in flight in the MachineDeployment; InCluster is their number in the Cluster, these included.
	Held      map[string]bool
	InCluster int
	// Unread is why the API server could not be asked what is in flight, in words that stay the same; "" when it was, or need not be.
	// UnreadAtAll means that it has not been since the start. Overdue counts the places that are taken until it is.
	Unread      string
	UnreadAtAll bool
	Overdue     int
	// Deployment, Cluster and Stop are limits: of what is in flight in both, and of unhealthy Machines in the Cluster.
	Deployment, Cluster, Stop Limit
	// Unhealthy of Machines in the Cluster have failed their health check.
	Unhealthy, Machines int
	Retry               Retry
	// Retries are those of the template of the candidates.
	Retries Retries
	// RetrySpecError is what is wrong with the settings of Retry.
	RetrySpecError string
	// Candidates are in the order in which they shall have their turn.
	Candidates []Candidate
}

// Blocker is why a Machine is not replaced now.
type Blocker struct {
	// Reason is one of the constants.
	Reason string
	// Message is the same for all Machines for which it can be, so that the text of a hundred that wait does not change with each that
	// is done.
	Message string
	// Until is when it ends by itself; zero when that depends on something else.
	Until time.Time
}

// Decide reports which candidates may be replaced now.
func Decide(in Input) Decision {
	d := Decision{InFlight: len(in.Held), InCluster: in.InCluster}
	everything := in.blocksAll()
	for _, candidate := range in.Candidates {
		result := Result{Candidate: candidate, Record: in.record(candidate), Blocker: everything}
		if result.Allowed() {
			result.Blocker, result.Fresh = in.decideOne(&d, result)
		}
		if result.Fresh {
			d.InFlight++
			d.InCluster++
		}
		if in.retries(result) && result.Allowed() && !result.Begun {
			in.Retries.Pending = result.Name
		}
		if until := result.Blocker.Until; !until.IsZero() && (d.Next.IsZero() || until.Before(d.Next)) {
			d.Next = until
		}
		d.Results = append(d.Results, result)
	}
	return d
}

// blocksAll is what keeps every Machine from being replaced.
func (in *Input) blocksAll() Blocker {
	if in.Frozen.Active() {
		return Blocker{Reason: FrozenReason, Until: in.Frozen.Until, Message: fmt.Sprintf("Replacements have been frozen since %s (%s): %s",
			in.Frozen.Since.UTC().Format(time.RFC3339), in.Frozen.Reason, in.Frozen.Message)}
	}
	if in.UnreadAtAll {
		return Blocker{Reason: UnreadReason, Message: "Not replaced: cannot read which replacements are in flight in the Cluster: " + in.Unread}
	}
	for _, specError := range []string{in.Deployment.SpecError, in.Cluster.SpecError, in.Stop.SpecError, in.RetrySpecError} {
		if specError != "" {
			return Blocker{Reason: InvalidLimitReason, Message: "Not replaced: " + specError}
		}
	}
	if in.Unhealthy > in.Stop.Max {
		return Blocker{Reason: TooManyUnhealthyReason, Message: fmt.Sprintf(
			"Not replaced: %d of %d Machines of the Cluster are unhealthy; the limit is %d (%s)", in.Unhealthy, in.Machines, in.Stop.Max, in.Stop.Source)}
	}
	return Blocker{}
}

// decideOne decides about one candidate where nothing blocks all of them.
func (in *Input) decideOne(d *Decision, v Result) (blocker Blocker, fresh bool) {
	if !v.Begun {
		if blocker := in.blocksRetry(v); blocker.Reason != "" {
			return blocker, false
		}
	}
	held := v.Begun || in.Held[v.Name]
	switch {
	case in.Deployment.Max <= 0:
		return Blocker{Reason: MaxInFlightReason, Message: "Not replaced: " + in.Deployment.Source + " allows none"}, false
	case in.Cluster.Max <= 0:
		return Blocker{Reason: MaxInFlightOfClusterReason, Message: "Not replaced: " + in.Cluster.Source + " allows none"}, false
	case held:
		// It has a place, or had one when it came to replace another.
		return Blocker{}, !in.Held[v.Name]
	case d.InFlight >= in.Deployment.Max:
		return Blocker{Reason: MaxInFlightReason, Message: in.waits(in.Deployment)}, false
	case d.InCluster >= in.Cluster.Max:
		return Blocker{Reason: MaxInFlightOfClusterReason, Message: in.waits(in.Cluster)}, false
	}
	return Blocker{}, true
}

func (in *Input) waits(limit Limit) string {
	text := fmt.Sprintf("Waiting until others are available: %s allows %s at once", limit.Source, machines.Plural(limit.Max, "replacement"))
	if in.Unread != "" && in.Overdue > 0 {
		text += fmt.Sprintf(". It cannot be read whether %d of the Cluster are still in flight, so they still count: %s", in.Overdue, in.Unread)
	}
	return text
}

// blocksRetry is what the history of a Machine has against its replacement.
func (in *Input) blocksRetry(v Result) Blocker {
	if v.Record.Retry == 0 {
		return Blocker{}
	}
	if in.Retry.Max >= 0 && v.Record.Retry > in.Retry.Max {
		return Blocker{Reason: MaxRetryReachedReason, Message: in.exhausted(v)}
	}
	if blocker := in.blocksTemplate(v); blocker.Reason != "" {
		return blocker
	}
	until := v.Replaces.Since.Add(in.Retry.Period)
	if v.Replaces.Since.After(in.Now) || !in.Now.Before(until) {
		// A time to come is of a clock that was wrong; the number of retries bounds what that costs.
		return Blocker{}
	}
	return Blocker{Reason: RetryPeriodReason, Until: until, Message: fmt.Sprintf(
		"Waiting until %s: the last replacement became unhealthy, too; retries are %s apart", until.UTC().Format(time.RFC3339), in.Retry.Period)}
}

// retries reports whether a replacement is a retry of one that never came up: those of a template are bounded together.
func (in *Input) retries(v Result) bool {
	return v.Record.Retry > 0 && v.Replaces.Available == nil && in.Retry.Max >= 0
}

// blocksTemplate is what the history of its template has against a retry. Without it, a template that never comes up would be retried in
// each place that there is.
func (in *Input) blocksTemplate(v Result) Blocker {
	switch {
	case !in.retries(v):
	case in.Retries.Pending != "":
		return in.blocksPending()
	case in.Retries.Made >= in.Retry.Max:
		r := in.Retries
		return Blocker{Reason: MaxRetryReachedReason, Message: failed(r.Failed, r.SameWay, in.Retry.Max, r.Reason, r.Message)}
	}
	return Blocker{}
}

// RetryOverdue is how long after its decision the others report of a retry that it is not created.
const RetryOverdue = 10 * time.Minute

// blocksPending is what a retry that has neither come up nor failed has against another one. Nothing but its creation, or that none is
// wanted any more, ends that of one that cannot be created: it may be bought at any moment, and the next would be one too many.
func (in *Input) blocksPending() Blocker {
	r := in.Retries
	since := r.PendingSince
	if !since.IsZero() && in.Now.Sub(since) >= RetryOverdue {
		return Blocker{Reason: RetryNotCreatedReason, Message: fmt.Sprintf(
			"Waiting for the replacement of %s, which was decided at %s and is not created yet: see condition ScalingUp of the MachineSet; "+
				"one is retried at a time", r.Pending, since.UTC().Format(time.RFC3339))}
	}
	blocker := Blocker{Reason: RetryInProgressReason, Message: fmt.Sprintf(
		"Waiting until the replacement %s is available or fails: none of this template has become available lately, so one is retried at a time", r.Pending)}
	if !since.IsZero() {
		blocker.Until = since.Add(RetryOverdue)
	}
	return blocker
}

// exhausted describes a Machine whose predecessors failed too often.
func (in *Input) exhausted(v Result) string {
	return failed(v.Record.Retry, v.Reason == v.Replaces.Reason, in.Retry.Max, v.Reason, v.Message)
}

// failed reports that n replacements failed, how the last one did, and what makes another one.
func failed(n int, sameWay bool, limit int, reason, message string) string {
	how := "The last failure"
	if n > 1 && sameWay {
		how = "All failed the same way"
	}
	if message != "" {
		reason += ": " + message
	}
	return fmt.Sprintf("Gave up after %s (max-retry is %d): correct the template, or annotate the Machine with %s to retry. %s: %s",
		machines.Plural(n, "failed replacement"), limit, clusterv1.RemediateMachineAnnotation, how, reason)
}

// record is that of the replacement of a candidate. What has been well for long enough, or has another template now, is no retry.
func (in *Input) record(c Candidate) Record {
	record := Record{Machine: c.Name, Since: in.Now.UTC().Truncate(time.Second), Reason: c.Reason[:min(len(c.Reason), maxReason)]}
	if c.Replaces == nil || c.Demanded || c.Elsewhere {
		return record
	}
	if since := c.Replaces.Available; since != nil && c.FailedAt.Sub(*since) >= in.Retry.MinHealthy {
		return record
	}
	record.Retry = c.Replaces.Retry + 1
	return record
}
