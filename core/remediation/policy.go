package remediation

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Annotations by which users override the flags.
const (
	// MaxInFlightAnnotation on a Cluster overrides --remediation-max-in-flight-per-cluster; on a MachineSet without a deployment,
	// which has no field for it, --remediation-max-in-flight.
	MaxInFlightAnnotation = "remediation.millwright.dev/max-in-flight"
	// StopAboveAnnotation on a Cluster overrides --remediation-stop-above.
	StopAboveAnnotation = "remediation.millwright.dev/stop-above"
	// MaxRetryAnnotation, RetryPeriodAnnotation and MinHealthyPeriodAnnotation override the flags of those names, on a
	// MachineDeployment or on a MachineSet without one.
	MaxRetryAnnotation         = "remediation.millwright.dev/max-retry"
	RetryPeriodAnnotation      = "remediation.millwright.dev/retry-period"
	MinHealthyPeriodAnnotation = "remediation.millwright.dev/min-healthy-period"
)

// Unlimited is the maximum where there is none.
const Unlimited = math.MaxInt

// Options are the defaults that the flags give.
type Options struct {
	// MaxInFlight is how many Machines of a MachineDeployment may be replaced at once where its spec.remediation.maxInFlight is not
	// set, MaxInFlightPerCluster how many of a Cluster; a number, or a percentage rounded up. "" is without limit.
	MaxInFlight, MaxInFlightPerCluster string
	// StopAbove is how many Machines of a Cluster may be unhealthy until none is replaced any more; a number, or a percentage rounded
	// down. "" and 100% are without limit.
	StopAbove string
	// Retry bounds repeated replacements.
	Retry
}

// Retry bounds repeated replacements of one Machine. The words are those of Cluster API's KubeadmControlPlane.
type Retry struct {
	// Max is how often a replacement that became unhealthy itself is replaced again; negative for no limit.
	Max int
	// Period is the time from one replacement to the next retry.
	Period time.Duration
	// MinHealthy is how long a replacement must have been available for what happens to it then to be no retry.
	MinHealthy time.Duration
}

// DefaultOptions are the defaults of the flags. The reasons are in docs/decisions/0021-replacing-within-limits.md.
func DefaultOptions() Options {
	return Options{
		MaxInFlight: "20%", MaxInFlightPerCluster: "30%", StopAbove: "100%",
		Retry: Retry{Max: 3, Period: 10 * time.Minute, MinHealthy: time.Hour},
	}
}

// NoLimits are Options that bound nothing.
func NoLimits() Options { return Options{Retry: Retry{Max: -1}} }

// Validate returns what is wrong with the options, by the name of the flag.
func (o Options) Validate() error {
	for flag, value := range map[string]string{
		"--remediation-max-in-flight": o.MaxInFlight, "--remediation-max-in-flight-per-cluster": o.MaxInFlightPerCluster,
		"--remediation-stop-above": o.StopAbove,
	} {
		if limit := limitOf(flag, value, 100, true); limit.SpecError != "" {
			return errors.New(limit.SpecError)
		}
	}
	if o.Period < 0 || o.MinHealthy < 0 {
		return errors.New("--remediation-retry-period and --remediation-min-healthy-period must not be negative")
	}
	return nil
}

// Limit is a maximum and where it comes from.
type Limit struct {
	Max int
	// Source names the setting and its value, for messages.
	Source string
	// SpecError is what is wrong with it, with the remedy; nothing is replaced then.
	SpecError string
}

// limitOf reads a number or a percentage of total.
func limitOf(source, value string, total int, up bool) Limit {
	limit := Limit{Max: Unlimited, Source: source}
	if value == "" {
		return limit
	}
	limit.Source = source + " " + value
	parsed := intstr.Parse(value)
	number, err := intstr.GetScaledValueFromIntOrPercent(&parsed, total, up)
	if err != nil || number < 0 {
		return Limit{Source: limit.Source, SpecError: fmt.Sprintf("%s %q is neither a number nor a percentage: correct it", source, value)}
	}
	limit.Max = number
	return limit
}

// LimitOf is the limit of a MachineDeployment, or of a MachineSet without one (deployment is nil then), of that many replicas.
func (o Options) LimitOf(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet, replicas int) Limit {
	const flag = "--remediation-max-in-flight"
	if deployment == nil {
		if value, ok := set.Annotations[MaxInFlightAnnotation]; ok {
			return limitOf("the annotation "+MaxInFlightAnnotation+" of MachineSet "+set.Name, value, replicas, true)
		}
		return limitOf(flag, o.MaxInFlight, replicas, true)
	}
	if value := deployment.Spec.Remediation.MaxInFlight; value != nil {
		return limitOf("spec.remediation.maxInFlight of MachineDeployment "+deployment.Name, value.String(), replicas, true)
	}
	return limitOf(flag, o.MaxInFlight, replicas, true)
}

// LimitOfCluster is the limit of a Cluster with that many Machines.
func (o Options) LimitOfCluster(cluster *clusterv1.Cluster, machines int) Limit {
	if value, ok := cluster.Annotations[MaxInFlightAnnotation]; ok {
		return limitOf("the annotation "+MaxInFlightAnnotation+" of Cluster "+cluster.Name, value, machines, true)
	}
	return limitOf("--remediation-max-in-flight-per-cluster", o.MaxInFlightPerCluster, machines, true)
}

// StopOf is how many of that many Machines of a Cluster may be unhealthy until none is replaced.
func (o Options) StopOf(cluster *clusterv1.Cluster, machines int) Limit {
	if value, ok := cluster.Annotations[StopAboveAnnotation]; ok {
		return limitOf("the annotation "+StopAboveAnnotation+" of Cluster "+cluster.Name, value, machines, false)
	}
	return limitOf("--remediation-stop-above", o.StopAbove, machines, false)
}

// RetryOf is what bounds retries of a MachineDeployment or of a MachineSet without one, by its annotations. specError is what is wrong
// with one of them; nothing is replaced then.
func (o Options) RetryOf(annotations map[string]string) (retry Retry, specError string) {
	retry = o.Retry
	if text, ok := annotations[MaxRetryAnnotation]; ok {
		number, err := strconv.Atoi(text)
		if err != nil {
			return retry, fmt.Sprintf("the annotation %s %q is not a number: correct it", MaxRetryAnnotation, text)
		}
		retry.Max = number
	}
	for key, target := range map[string]*time.Duration{RetryPeriodAnnotation: &retry.Period, MinHealthyPeriodAnnotation: &retry.MinHealthy} {
		if text, ok := annotations[key]; ok {
			duration, err := time.ParseDuration(text)
			if err != nil || duration < 0 {
				return retry, fmt.Sprintf("the annotation %s %q is not a duration such as 10m: correct it", key, text)
			}
			*target = duration
		}
	}
	return retry, ""
}
