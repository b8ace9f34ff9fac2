package machines

import (
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// namesInText is how many names an event or a condition has; they are read by people.
const namesInText = 5

// ListNames lists the names of the first Machines and counts the others.
func ListNames(machines []*clusterv1.Machine) string {
	names := make([]string, 0, len(machines))
	for _, machine := range machines {
		names = append(names, machine.Name)
	}
	return conditions.ListNames(names, namesInText)
}

// List is a heading with items below it.
func List(heading string, items []string) string {
	return heading + "\n* " + strings.Join(items, "\n* ")
}

// Unread reports that something is not known; failure is why, nil if nothing has failed.
func Unread(what string, failure error) string {
	if failure == nil {
		return "The " + what + " are not known"
	}
	return fmt.Sprintf("Cannot read the %s: %v", what, failure)
}

// Plural is a number with its noun, which takes an s when there is not exactly one.
func Plural(number int, noun string) string {
	if number == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", number, noun)
}
