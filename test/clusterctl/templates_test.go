package clusterctl

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/cores"
)

// values are those of a user's own account, which the simulated clouds have: what a template requires.
var values = map[string]map[string]string{
	"aws": {"AWS_REGION": "us-east-1", "AWS_AMI_ID": "ami-0a000000000000001", "AWS_SUBNET_ID": "subnet-0a000000000000001",
		"AWS_SECURITY_GROUP_ID": "sg-0a000000000000001"},
	"azure": {"AZURE_SUBSCRIPTION_ID": "00000000-0000-0000-0000-000000000001", "AZURE_RESOURCE_GROUP": "nodes", "AZURE_LOCATION": "westeurope",
		"AZURE_IMAGE_ID":  "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/images/providers/Microsoft.Compute/galleries/millwright/images/node/versions/1.36.3",
		"AZURE_SUBNET_ID": "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/nodes/subnets/workers"},
	"gcp": {"GCP_PROJECT": "my-project", "GCP_ZONE": "us-central1-a", "GCP_IMAGE_PROJECT": "my-images", "GCP_IMAGE_FAMILY": "millwright-node-v1-36",
		"GCP_SUBNETWORK": "projects/my-host-project/regions/us-central1/subnetworks/nodes"},
}

// others are variables that have defaults, with values other than those.
var others = map[string]map[string]string{
	"aws":   {"AWS_INSTANCE_TYPE": "m5.xlarge", "AWS_ROOT_VOLUME_GIB": "41"},
	"azure": {"AZURE_VM_SIZE": "Standard_D8s_v5", "AZURE_OS_DISK_GIB": "83"},
	"gcp":   {"GCP_MACHINE_TYPE": "e2-standard-8", "GCP_BOOT_DISK_GIB": "61"},
}

// flavours are the templates of each cloud and what they require beside the cloud's own variables.
var flavours = []struct {
	name, file       string
	required, others map[string]string
}{
	{"", "cluster-template.yaml", nil, map[string]string{"SERVICE_DOMAIN": "example.internal"}},
	{"kubeadm", "cluster-template-kubeadm.yaml", map[string]string{"CONTROL_PLANE_HOST": "api.example.com"},
		map[string]string{"SERVICE_DOMAIN": "example.internal", "CONTROL_PLANE_PORT": "7443"}},
}

var (
	// described is a variable in the first lines of a template.
	described = regexp.MustCompile(`(?m)^#   ([A-Z_]+) +\S`)
	// listed is a variable in what clusterctl lists.
	listed = regexp.MustCompile(`(?m)^ *- ([A-Z_]+)`)
)

// templatesOfAllClouds generates a cluster from each template, with a value for each variable that its first lines describe, and only
// with those that it requires; the API server accepts the result, the bootstrap provider's kinds included.
func (i *installation) templatesOfAllClouds() {
	i.withoutWebhooks()
	i.kindsOfKubeadm()
	var all []string
	for cloud := range values {
		for _, flavour := range flavours {
			mine := *i.person
			i := &installation{i.WithT, &mine, i.client}
			template, err := os.ReadFile(filepath.Join(i.dir, "out", "release", "infrastructure-millwright-"+cloud, "v0.1.0", flavour.file))
			i.Expect(err).NotTo(HaveOccurred())
			generate := `clusterctl generate cluster c-` + cloud + flavour.name + ` -n default --infrastructure millwright-` + cloud +
				`:v0.1.0 --flavor "` + flavour.name +
				`" --kubernetes-version v1.36.3`
			names := found(described, string(template))
			own := []string{"CLUSTER_NAME", "NAMESPACE", "KUBERNETES_VERSION", "WORKER_MACHINE_COUNT"}
			i.Expect(found(listed, i.run(generate+` --list-variables`))).To(ConsistOf(append(own, names...)), "the first lines of %s", flavour.file)
			required, optional := values[cloud], maps.Clone(others[cloud])
			for _, variables := range []map[string]string{required, flavour.required} {
				for name, value := range variables {
					i.export(name, value)
				}
			}
			all = append(all, i.run(generate))
			maps.Copy(optional, flavour.others)
			i.Expect(len(required) + len(flavour.required) + len(optional)).To(Equal(len(names)))
			for name, value := range optional {
				i.Expect(names).To(ContainElement(name))
				i.export(name, value)
			}
			full := i.run(generate + ` --worker-machine-count 7`)
			for _, variables := range []map[string]string{required, flavour.required, optional} {
				for _, value := range variables {
					i.Expect(full).To(ContainSubstring(value))
				}
			}
			i.Expect(full).To(ContainSubstring("replicas: 7"))
			all = append(all, strings.ReplaceAll(full, "c-"+cloud, "full-"+cloud))
		}
	}
	i.write("all.yaml", strings.Join(all, "\n---\n"))
	i.run(`kubectl apply --dry-run=server --validate=strict -f all.yaml`)
	made := clusters(i.objects(strings.Join(all, "\n---\n")))
	i.Expect(made).To(HaveLen(2 * len(values) * len(flavours)))
	for _, cluster := range made {
		i.Expect(i.unpause("a template", cluster)).To(Succeed(), "Cluster %s needs a field in spec beside paused", cluster.GetName())
	}
}

// kindsOfKubeadm are those of Cluster API's own bootstrap provider, which we do not release.
func (i *installation) kindsOfKubeadm() {
	root, err := controlplane.Root()
	i.Expect(err).NotTo(HaveOccurred())
	module, err := cores.ModuleDirectory(i.t.Context(), root, clusterctl)
	i.Expect(err).NotTo(HaveOccurred())
	i.run(`kubectl apply --server-side -f "` + module + `/bootstrap/kubeadm/config/crd/bases"`)
	i.established("kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io")
}

// found are the names in a text, each once.
func found(pattern *regexp.Regexp, text string) []string {
	var names []string
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}
