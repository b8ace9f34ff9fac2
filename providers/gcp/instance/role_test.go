package instance_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// permissions are those that Compute Engine asks for, by method: https://cloud.google.com/compute/docs/reference/rest/v1. An insertion
// needs those of all that it sets.
var permissions = map[string][]string{
	"instances.insert": {
		"instances.create",
		"instances.setLabels",
		"instances.setMetadata",
		"instances.setServiceAccount",
		"instances.setTags",
		"instances.setDeletionProtection",
		"disks.create",
		"disks.setLabels",
		"images.useReadOnly",
		"subnetworks.use",
		"subnetworks.useExternalIp",
	},
	"instances.aggregatedList": {"instances.list"}, "instances.get": {"instances.get"}, "instances.delete": {"instances.delete"},
	"instances.setDeletionProtection": {"instances.setDeletionProtection"}, "instances.setLabels": {"instances.setLabels"},
	"disks.aggregatedList": {"disks.list"}, "disks.list": {"disks.list"}, "disks.delete": {"disks.delete"}, "disks.setLabels": {"disks.setLabels"},
	"zoneOperations.get": {"zoneOperations.get"}, "zoneOperations.list": {"zoneOperations.list"}, "globalOperations.aggregatedList": {"globalOperations.list"},
	"machineTypes.get": {"machineTypes.get"}, "images.get": {"images.get"}, "images.getFromFamily": {"images.getFromFamily"},
}

// TestSampleRole grants what the calls of the driver need, and nothing else.
func TestSampleRole(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../../config/samples/gcp/role.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var role struct {
		Title, Stage        string
		IncludedPermissions []string
	}
	g.Expect(yaml.UnmarshalStrict(text, &role)).To(Succeed())
	needed := map[string]bool{}
	for _, method := range methods(g) {
		g.Expect(permissions).To(HaveKey(method), "which permissions does it need?")
		for _, p := range permissions[method] {
			needed["compute."+p] = true
		}
	}
	g.Expect(role.IncludedPermissions).To(ConsistOf(slices.Collect(maps.Keys(needed))))
}

// methods are those that the driver calls, as its source names them.
func methods(g *WithT) []string {
	files, err := filepath.Glob("*.go")
	g.Expect(err).NotTo(HaveOccurred())
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for _, m := range regexp.MustCompile(`name:? +=? *"([a-zA-Z]+\.[a-zA-Z]+)"`).FindAllSubmatch(source, -1) {
			found[string(m[1])] = true
		}
		for _, m := range regexp.MustCompile(`aggregated\[\w+\]\(ctx, d, scope, "(\w+)"`).FindAllSubmatch(source, -1) {
			name := strings.Replace(string(m[1]), "operations", "globalOperations", 1)
			found[name+".aggregatedList"] = true
		}
		for _, m := range regexp.MustCompile(`setLineage\(ctx, scope, "(\w+)"`).FindAllSubmatch(source, -1) {
			found[string(m[1])+".setLabels"] = true
		}
	}
	g.Expect(len(found)).To(Equal(len(permissions)), "%v", found)
	return slices.Collect(maps.Keys(found))
}
