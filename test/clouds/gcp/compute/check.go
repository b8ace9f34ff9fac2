package compute

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// The limits of names, labels and metadata that the documentation gives.
var (
	namePattern     = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelKey        = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,62}$`)
	labelValue      = regexp.MustCompile(`^[a-z0-9_-]{0,63}$`)
	metadataKey     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	serviceAccount  = regexp.MustCompile(`^(default|[^@\s]+@[^@\s]+)$`)
	maxLabels       = 64
	maxTags         = 64
	maxMetadata     = 256 << 10
	maxMetadataSize = 512 << 10
)

const nameMessage = "Must be a match of regex '[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?'"

// fingerprint changes with the labels.
func fingerprint(labels map[string]string) string {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, labels) // Prints maps in the order of their keys.
	return fmt.Sprintf("%x=", h.Sum64())
}

func checkLabels(field string, labels map[string]string) error {
	if len(labels) > maxLabels {
		return invalid(field, "", "There can be at most %d labels.", maxLabels)
	}
	for k, v := range labels {
		if !labelKey.MatchString(k) {
			return invalid(field, k, "Label key '%s' violates format constraints. The key can only contain lowercase letters, numeric characters, "+
				"underscores and dashes, at most 63, and must begin with a letter.", k)
		}
		if !labelValue.MatchString(v) {
			return invalid(field, v, "Label value '%s' violates format constraints. The value can only contain lowercase letters, numeric characters, "+
				"underscores and dashes, at most 63.", v)
		}
	}
	return nil
}

// check refuses an instance that can never be created.
func (s *Server) check(i *instance) error {
	if !namePattern.MatchString(i.Name) {
		return invalid("resource.name", i.Name, nameMessage)
	}
	zone, name, ok := strings.Cut(strings.TrimPrefix(relative(i.MachineType), "projects/"+i.project.name+"/"), "/machineTypes/")
	if !ok || zone != "zones/"+i.zone {
		return invalid("resource.machineType", i.MachineType, "The URL is malformed.")
	}
	if s.catalog.machineType(i.zone, name) == nil {
		return invalid("resource.machineType", i.MachineType, "Machine type with name '%s' does not exist in zone '%s'.", name, i.zone)
	}
	for _, check := range []func(*instance) error{checkMetadata, checkTags, s.checkScheduling, s.checkNetworks, s.checkDisks} {
		if err := check(i); err != nil {
			return err
		}
	}
	if len(i.ServiceAccounts) > 1 || len(i.ServiceAccounts) == 1 && !serviceAccount.MatchString(i.ServiceAccounts[0].Email) {
		return invalid("resource.serviceAccounts", "", "An instance has one service account at most, by its email address.")
	}
	return checkLabels("resource.labels", i.Labels)
}

func checkMetadata(i *instance) error {
	total := 0
	seen := map[string]bool{}
	for _, item := range value(i.Metadata).Items {
		total += len(item.Key) + len(item.Value)
		switch {
		case !metadataKey.MatchString(item.Key):
			return invalid("resource.metadata.items", item.Key, "Must be a match of regex '[a-zA-Z0-9-_]{1,128}'")
		case seen[item.Key]:
			return invalid("resource.metadata.items", item.Key, "Metadata has duplicate keys.")
		case len(item.Value) > maxMetadata || total > maxMetadataSize:
			return fail(http.StatusRequestEntityTooLarge, "uploadTooLarge",
				"Value for metadata key '%s' is too large: maximum size %d character(s).",
				item.Key, maxMetadata)
		}
		seen[item.Key] = true
	}
	return nil
}

func checkTags(i *instance) error {
	tags := value(i.Tags).Items
	if len(tags) > maxTags {
		return invalid("resource.tags.items", "", "There can be at most %d tags.", maxTags)
	}
	for _, tag := range tags {
		if !namePattern.MatchString(tag) {
			return invalid("resource.tags.items", tag, nameMessage)
		}
	}
	return nil
}

// checkScheduling refuses what preemptible instances or those with accelerators cannot have, and fills in the defaults.
func (s *Server) checkScheduling(i *instance) error {
	scheduling := value(i.Scheduling)
	i.Scheduling = &scheduling
	if scheduling.ProvisioningModel == "" {
		i.Scheduling.ProvisioningModel = map[bool]string{true: "SPOT", false: "STANDARD"}[scheduling.Preemptible]
	}
	spot := i.Scheduling.ProvisioningModel == "SPOT"
	terminates := spot || len(i.GuestAccelerators) > 0 || len(s.catalog.machineType(i.zone, base(i.MachineType)).Accelerators) > 0
	switch {
	case !slices.Contains([]string{"STANDARD", "SPOT"}, i.Scheduling.ProvisioningModel):
		return invalid("resource.scheduling.provisioningModel", scheduling.ProvisioningModel, "Not simulated.")
	case spot && value(scheduling.AutomaticRestart):
		return fail(http.StatusBadRequest, "invalid", "Scheduling must have preemptible be false when AutomaticRestart is true.")
	case terminates && scheduling.OnHostMaintenance == "MIGRATE":
		return fail(http.StatusBadRequest, "invalid", "Instances that are preemptible or have accelerators do not support live migration: "+
			"set onHostMaintenance to TERMINATE.")
	case !spot && scheduling.InstanceTerminationAction != "":
		return fail(http.StatusBadRequest, "invalid", "You cannot specify a termination action for a VM instance that has the standard "+
			"provisioning model.")
	}
	if scheduling.OnHostMaintenance == "" {
		if len(i.GuestAccelerators) > 0 {
			return fail(http.StatusBadRequest, "invalid", "Instances with guest accelerators do not support live migration.")
		}
		i.Scheduling.OnHostMaintenance = map[bool]string{true: "TERMINATE", false: "MIGRATE"}[terminates]
	}
	if spot && scheduling.InstanceTerminationAction == "" {
		i.Scheduling.InstanceTerminationAction = "STOP"
	}
	if scheduling.AutomaticRestart == nil {
		restart := !spot
		i.Scheduling.AutomaticRestart = &restart
	}
	i.Scheduling.Preemptible = spot
	for _, a := range i.GuestAccelerators {
		if !contains(s.catalog.AcceleratorTypes, base(a.AcceleratorType)) {
			return invalid("resource.guestAccelerators.acceleratorType", a.AcceleratorType, "The referenced accelerator type cannot be found.")
		}
	}
	return nil
}
