package defaults

import (
	"fmt"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Replicas is how many Machines a set or deployment should have that asks for the given number, or sets none (nil).
//
// Where it sets none and has both limits of the cluster autoscaler, the number that it had before is kept
// within those limits, so that handing over to the autoscaler neither adds nor removes Machines needlessly; the lower
// limit is used where it had none. Without limits it is 1, also where it had another number before.
//
// A limit that is no number is an error: nothing can be filled in then. *LimitError names the annotation.
func Replicas(desired, before *int32, annotations map[string]string) (int32, error) {
	if desired != nil {
		return *desired, nil
	}
	lowest, hasLowest := annotations[clusterv1.AutoscalerMinSizeAnnotation]
	highest, hasHighest := annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	if !hasLowest || !hasHighest {
		return 1, nil
	}
	low, err := limit(clusterv1.AutoscalerMinSizeAnnotation, lowest)
	if err != nil {
		return 0, err
	}
	high, err := limit(clusterv1.AutoscalerMaxSizeAnnotation, highest)
	if err != nil {
		return 0, err
	}
	// The order decides where the limits are the wrong way round: the lower one wins.
	switch {
	case before == nil || *before < low:
		return low, nil
	case *before > high:
		return high, nil
	}
	return *before, nil
}

// LimitError means that an annotation with a limit of the cluster autoscaler is not a number of Machines.
type LimitError struct {
	// Annotation is its key, Value what it holds.
	Annotation, Value string
}

// Error names the annotation and the remedy.
func (e *LimitError) Error() string {
	return fmt.Sprintf(
		"annotation %s %q is not a number of Machines: set it to a whole number like 3, or set spec.replicas",
		e.Annotation,
		e.Value,
	)
}

// limit reads one limit. A negative one is none: no set can have less than no Machines.
func limit(annotation, value string) (int32, error) {
	number, err := strconv.ParseInt(value, 10, 32)
	if err != nil || number < 0 {
		return 0, &LimitError{Annotation: annotation, Value: value}
	}
	return int32(number), nil
}
