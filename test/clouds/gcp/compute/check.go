package compute

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"regexp"
	"strings"
)

// The limits of names, labels and metadata that the documentation gives.
var (
	namePattern     = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelKey        = regexp.MustCompile(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	labelValue      = regexp.MustCompile(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
	metadataKey     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	maxLabels       = 64
	maxLabelBytes   = 128
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
		if !labelKey.MatchString(k) || len(k) > maxLabelBytes {
			return invalid(field, k, "Label key '%s' violates format constraints. The key can only contain lowercase letters, numeric characters, "+
				"underscores and dashes, at most 63 and 128 bytes, and must begin with a letter.", k)
		}
		if !labelValue.MatchString(v) || len(v) > maxLabelBytes {
			return invalid(field, v, "Label value '%s' violates format constraints. The value can only contain lowercase letters, numeric characters, "+
				"underscores and dashes, at most 63 and 128 bytes.", v)
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
	for _, check := range []func(*instance) error{
		checkMetadata, checkTags, s.checkAccelerators, s.checkScheduling, s.checkConfidential, s.checkNetworks, s.checkDisks,
		s.checkImage, s.checkNamed,
	} {
		if err := check(i); err != nil {
			return err
		}
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
