// Package manifests runs the static conformance suite on releases: ours, and others' as their Go modules have them.
package manifests

import (
	"millwright.dev/contracts/conformance"
)

// ours is what the components of this repository are released as.
const ours = "v0.1.0"

// The modules of others, each with its version: all that is pinned.
const (
	clusterAPI     = "sigs.k8s.io/cluster-api@v1.14.2"
	clusterAPITest = "sigs.k8s.io/cluster-api/test@v1.14.2"
	capa           = "sigs.k8s.io/cluster-api-provider-aws/v2@v2.13.0"
	capg           = "sigs.k8s.io/cluster-api-provider-gcp@v1.13.1"
)

// implementation is something that has manifests.
type implementation struct {
	name, organization string
	// module is where its manifests come from; ours come from config/release.sh and have none.
	module string
	// config is the directory that kustomize builds, and components the name of the result in a release; of ours, config is the
	// directory of the release.
	config, components string
	// metadata is the module that has metadata.yaml, if that is another, and templates what is beside the components in a release.
	metadata, templates string
	profiles            []conformance.Profile
}

var (
	provider = []conformance.Profile{conformance.ProviderProfile}
	// core is both: a core is installed as providers are.
	core = []conformance.Profile{conformance.ProviderProfile, conformance.CoreProfile}
)

const (
	own            = "Millwright"
	sigs           = "Kubernetes SIGs"
	infrastructure = "infrastructure-components.yaml"
	anyTemplate    = "cluster-template*.yaml"
)

var implementations = []implementation{
	{name: "core-millwright", organization: own, config: "cluster-api", components: "core-components.yaml", profiles: core},
	{
		name: "bootstrap-millwright-cloudconfig", organization: own, config: "bootstrap-millwright-cloudconfig",
		components: "bootstrap-components.yaml", profiles: provider,
	},
	{
		name: "infrastructure-millwright-aws", organization: own, config: "infrastructure-millwright-aws", components: infrastructure,
		templates: anyTemplate, profiles: provider,
	},
	{
		name: "infrastructure-millwright-azure", organization: own, config: "infrastructure-millwright-azure", components: infrastructure,
		templates: anyTemplate, profiles: provider,
	},
	{
		name: "infrastructure-millwright-gcp", organization: own, config: "infrastructure-millwright-gcp", components: infrastructure,
		templates: anyTemplate, profiles: provider,
	},
	{
		name: "core-cluster-api", organization: sigs, module: clusterAPI, config: "core/config/default",
		components: "core-components.yaml", profiles: core,
	},
	{
		name: "bootstrap-kubeadm", organization: sigs, module: clusterAPI, config: "bootstrap/kubeadm/config/default",
		components: "bootstrap-components.yaml", profiles: provider,
	},
	{
		name: "control-plane-kubeadm", organization: sigs, module: clusterAPI, config: "controlplane/kubeadm/config/default",
		components: "control-plane-components.yaml", profiles: provider,
	},
	{
		name: "infrastructure-docker", organization: sigs, module: clusterAPITest, config: "infrastructure/docker/config/default",
		components: "infrastructure-components-development.yaml", metadata: clusterAPI,
		templates: "infrastructure/docker/templates/*.yaml", profiles: provider,
	},
	{
		name: "runtime-extension-test", organization: sigs, module: clusterAPITest, config: "extension/config/default",
		components: "runtime-extension-components-development.yaml", metadata: clusterAPI, profiles: provider,
	},
	{
		name: "infrastructure-aws", organization: sigs, module: capa, config: "config/default", components: infrastructure,
		templates: "templates/cluster-template*.yaml", profiles: provider,
	},
	{
		name: "infrastructure-gcp", organization: sigs, module: capg, config: "config/default", components: infrastructure,
		templates: "templates/cluster-template*.yaml", profiles: provider,
	},
}
