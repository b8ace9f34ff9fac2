package validate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
)

// Annotations that this project gives a meaning. They are repeated here, so that this package depends on no
// controller; a test of core/admission holds them against those of the controllers.
const (
	forceDeletion        = "machine.millwright.dev/force-deletion"
	priority             = "machinepriority.machine.sapcloud.io"
	rollbackTo           = "machinedeployment.millwright.dev/rollback-to"
	revisionHistoryLimit = "machinedeployment.millwright.dev/revision-history-limit"
	progressDeadline     = "machinedeployment.millwright.dev/progress-deadline"
	recreate             = "machinedeployment.millwright.dev/recreate"
	preserve             = "machine.millwright.dev/preserve"
	preserveUntil        = "machine.millwright.dev/preserve-until"
	preserveMax          = "machine.millwright.dev/preserve-failed-max"
	creationTimeout      = "machine.millwright.dev/creation-timeout"
	healthTimeout        = "machine.millwright.dev/health-timeout"
)

// rule describes what is wrong with the value of an annotation, empty where it is fine.
type rule func(value string) string

// The rules for annotations per kind.
var (
	machineAnnotations = map[string]rule{
		forceDeletion:   trueOrFalse,
		priority:        wholeNumber,
		preserve:        preservation,
		preserveUntil:   momentInTime,
		creationTimeout: durationAtLeastZero,
		healthTimeout:   durationAtLeastZero,
	}
	setAnnotations        = map[string]rule{}
	deploymentAnnotations = map[string]rule{
		rollbackTo:           atLeastZero("0 for the previous revision, else the number of a revision that is kept"),
		revisionHistoryLimit: atLeastZero("how many old revisions to keep, like 10"),
		progressDeadline:     durationAtLeastZero,
		recreate:             trueOrFalse,
		preserveMax:          atLeastZero("how many failed Machines to preserve at once, like 1"),
		creationTimeout:      durationAtLeastZero,
		healthTimeout:        durationAtLeastZero,
	}
	// templateAnnotations are those of the Machines that come from a template.
	templateAnnotations = map[string]rule{
		priority: wholeNumber, preserve: preservation, creationTimeout: durationAtLeastZero, healthTimeout: durationAtLeastZero,
	}
)

// annotations applies rules to the annotations of an object itself.
func annotations(all map[string]string, rules map[string]rule) field.ErrorList {
	return annotationsAt(field.NewPath("metadata", "annotations"), all, rules)
}

func annotationsAt(path *field.Path, all map[string]string, rules map[string]rule) field.ErrorList {
	var found field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		value, set := all[key]
		if !set {
			continue
		}
		if because := rules[key](value); because != "" {
			found = append(found, field.Invalid(path.Key(key), value, because))
		}
	}
	return found
}

func trueOrFalse(value string) string {
	if value == "true" || value == "false" {
		return ""
	}
	return `must be "true" or "false"; remove the annotation for "false"`
}

func preservation(value string) string {
	switch value {
	case "now", "when-failed", "false":
		return ""
	}
	return `must be "now", "when-failed" or "false"`
}

func momentInTime(value string) string {
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return "must be a time like 2026-11-27T12:00:00Z"
	}
	return ""
}

func durationAtLeastZero(value string) string {
	if duration, err := time.ParseDuration(value); err != nil || duration < 0 {
		return "must be a duration of at least 0, like 15m; 0 is none"
	}
	return ""
}

func wholeNumber(value string) string {
	if _, err := strconv.ParseInt(value, 10, 32); err != nil {
		return "must be a whole number, like 1: the lower, the earlier the Machine is deleted; 3 is the default"
	}
	return ""
}

func atLeastZero(meaning string) rule {
	return func(value string) string {
		if number, err := strconv.ParseInt(value, 10, 64); err != nil || number < 0 {
			return "must be a whole number of at least 0: " + meaning
		}
		return ""
	}
}

// preflightChecks are the names that the annotation to skip checks may list.
var preflightChecks = []string{
	string(clusterv1.MachineSetPreflightCheckAll),
	string(clusterv1.MachineSetPreflightCheckControlPlaneIsStable),
	string(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew),
	string(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew),
	string(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew),
}

// skippedPreflightChecks refuses unknown names in the annotation to skip preflight checks.
func skippedPreflightChecks(all map[string]string) field.ErrorList {
	list := all[clusterv1.MachineSetSkipPreflightChecksAnnotation]
	if list == "" || !feature.Gates.Enabled(feature.MachineSetPreflightChecks) {
		return nil
	}
	for name := range strings.SplitSeq(list, ",") {
		if !slices.Contains(preflightChecks, strings.TrimSpace(name)) {
			return field.ErrorList{
				field.Invalid(
					field.NewPath("metadata", "annotations").Key(clusterv1.MachineSetSkipPreflightChecksAnnotation),
					list,
					quote(
						strings.TrimSpace(name),
					)+" is not a preflight check: use names of "+strings.Join(
						preflightChecks,
						", ",
					)+", with commas between them",
				),
			}
		}
	}
	return nil
}
