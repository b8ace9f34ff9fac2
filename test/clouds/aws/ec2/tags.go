package ec2

import (
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"

	"millwright.dev/test/clouds/simulator"
)

// maxTags is the limit of tags on one resource; those of AWS itself do not count.
const maxTags = 50

// launchTagTypes are the resource types that RunInstances can tag here.
var launchTagTypes = []string{"instance", "volume", "network-interface", "spot-instances-request"}

func readLaunchTags(_ *Server, p params, l *launch) error {
	l.tags = map[string]map[string]string{}
	for _, item := range p.list("TagSpecification") {
		kind := item["ResourceType"]
		if !contains(launchTagTypes, kind) || kind == "spot-instances-request" && !l.spot {
			return fail("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
		if _, ok := l.tags[kind]; ok {
			return fail("InvalidParameterValue", "Duplicate resource type '%s' in the tag specifications", kind)
		}
		tags, err := readTags(item)
		if err != nil {
			return err
		}
		l.tags[kind] = tags
	}
	return nil
}

// metadataTagKey is the form of the keys that instance metadata can show, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/work-with-tags-in-IMDS.html.
var metadataTagKey = regexp.MustCompile(`^[0-9a-zA-Z\-_+=,.@:]{1,255}$`)

// readMetadataTags refuses tags that the instance metadata cannot show when they are to be in it.
func readMetadataTags(_ *Server, _ params, l *launch) error {
	if l.metadata.tags != "enabled" {
		return nil
	}
	for _, key := range sortedKeys(l.tags["instance"]) {
		if !metadataTagKey.MatchString(key) || contains([]string{".", "..", "_index"}, key) {
			return fail("InvalidParameterValue", "'%s' is not a valid tag key. Tag keys must match pattern "+
				"([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index')", key)
		}
	}
	return nil
}

// readTags reads Tag.N and checks it by the rules of
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions.
func readTags(p params) (map[string]string, error) {
	tags := map[string]string{}
	for _, item := range p.list("Tag") {
		key, value := item["Key"], item["Value"]
		if err := checkTag(key, value); err != nil {
			return nil, err
		}
		if _, ok := tags[key]; ok {
			return nil, fail("InvalidParameterValue", "Duplicate tag key '%s' specified.", key)
		}
		tags[key] = value
	}
	if len(tags) > maxTags {
		return nil, fail("TagLimitExceeded", "The maximum number of tags on a resource is %d", maxTags)
	}
	return tags, nil
}

func checkTag(key, value string) error {
	switch {
	case key == "":
		return fail("InvalidParameterValue", "Tag key cannot be empty.")
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		return fail("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
	case utf8.RuneCountInString(key) > 128:
		return fail("InvalidParameterValue", "Tag key exceeds the maximum length of 128 characters: '%s'", key)
	case utf8.RuneCountInString(value) > 256:
		return fail("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters for key '%s'", key)
	}
	return nil
}

// createTags adds and overwrites tags of instances, volumes and network interfaces.
func createTags(s *Server, c *simulator.Exchange, p params) (reply, error) {
	targets, err := s.tagTargets(c, p)
	if err != nil {
		return nil, err
	}
	tags, err := readTags(p)
	if err != nil {
		return nil, err
	}
	if len(tags) == 0 {
		return nil, missingParameter("Tag")
	}
	for _, target := range targets {
		after := maps.Clone(target)
		maps.Copy(after, tags)
		if len(after) > maxTags {
			return nil, fail("TagLimitExceeded", "The maximum number of tags on a resource is %d", maxTags)
		}
	}
	if p.dryRun() {
		return nil, errDryRun
	}
	for _, target := range targets {
		maps.Copy(target, tags)
	}
	return &returnReply{Return: true}, nil
}

// deleteTags removes tags: all of them when none is named, a tag whatever its value when no value is
// given, else only when the value is the same.
func deleteTags(s *Server, c *simulator.Exchange, p params) (reply, error) {
	targets, err := s.tagTargets(c, p)
	if err != nil {
		return nil, err
	}
	if p.dryRun() {
		return nil, errDryRun
	}
	named := p.list("Tag")
	for _, target := range targets {
		if len(named) == 0 {
			clear(target)
		}
		for _, item := range named {
			value, given := item["Value"]
			if current, ok := target[item["Key"]]; ok && (!given || value == current) {
				delete(target, item["Key"])
			}
		}
	}
	return &returnReply{Return: true}, nil
}

// tagTargets finds the tags of each ResourceId; one missing resource fails the whole call.
func (s *Server) tagTargets(c *simulator.Exchange, p params) ([]map[string]string, error) {
	ids := p.strings("ResourceId")
	if len(ids) == 0 {
		return nil, missingParameter("ResourceId")
	}
	var targets []map[string]string
	for _, id := range ids {
		tags, err := s.tagsOf(id)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(id, "i-") {
			c.AddResources(id)
		}
		targets = append(targets, tags)
	}
	return targets, nil
}

func (s *Server) tagsOf(id string) (map[string]string, error) {
	prefix, _, _ := strings.Cut(id, "-")
	if !wellFormed(id, prefix) {
		return nil, fail("InvalidID", "The ID '%s' is not valid", id)
	}
	switch prefix {
	case "i":
		found, err := s.findInstances([]string{id})
		if err != nil {
			return nil, err
		}
		return found[0].tags, nil
	case "vol":
		for _, v := range s.visibleVolumes() {
			if v.id == id {
				return v.tags, nil
			}
		}
		return nil, fail("InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
	case "eni":
		for _, n := range s.visibleInterfaces() {
			if n.id == id {
				return n.tags, nil
			}
		}
		return nil, notFound("InvalidNetworkInterfaceID.NotFound", "networkInterface", []string{id})
	}
	return nil, fail("InvalidID", "The ID '%s' is not valid", id)
}
