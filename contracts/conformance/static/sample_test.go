package static_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"millwright.dev/contracts/conformance/static"
	"millwright.dev/contracts/version"
)

// The sample is a release of a provider with all kinds, which keeps every rule under both versions of the contract.

type object = map[string]any

// props makes a schema of fields: "a.b.[].c": "string".
func props(fields map[string]string) object {
	root := object{"type": "object"}
	for path, kind := range fields {
		at := root
		for name := range strings.SplitSeq(path, ".") {
			key, holder := name, at
			switch name {
			case "[]":
				at["type"], key = "array", "items"
			case "{}":
				key = "additionalProperties"
			default:
				if at["properties"] == nil {
					at["properties"] = object{}
				}
				holder = at["properties"].(object)
			}
			if holder[key] == nil {
				holder[key] = object{"type": "object"}
			}
			at = holder[key].(object)
		}
		at["type"] = kind
		if kind == quantity {
			at["x-kubernetes-int-or-string"] = true
		}
	}
	return root
}

// quantity is the type of quantities.
const quantity = "quantity"

const common = `apiVersion: string
kind: string
metadata: object
`

const conditionFields = `status.conditions.[].type: string
status.conditions.[].status: string
status.failureReason: string
status.failureMessage: string
`

var kindFields = map[string]string{
	"infrastructure.example.dev/SampleMachine": conditionFields + `spec.providerID: string
spec.size: string
spec.failureDomain: string
status.failureDomain: string
status.ready: boolean
status.initialization.provisioned: boolean
status.interruptible: boolean
status.addresses.[].type: string
status.addresses.[].address: string
`,
	"infrastructure.example.dev/SampleCluster": conditionFields + `spec.controlPlaneEndpoint.host: string
spec.controlPlaneEndpoint.port: integer
status.ready: boolean
status.initialization.provisioned: boolean
`,
	"bootstrap.cluster.x-k8s.io/SampleConfig": conditionFields + `spec.files: string
status.ready: boolean
status.nodeName: string
status.dataSecretName: string
status.initialization.dataSecretCreated: boolean
`,
	"controlplane.cluster.x-k8s.io/SampleControlPlane": conditionFields + `spec.controlPlaneEndpoint.host: string
spec.controlPlaneEndpoint.port: integer
spec.version: string
spec.replicas: integer
spec.rolloutAfter: string
spec.rollout.after: string
spec.machineTemplate.metadata: object
spec.machineTemplate.infrastructureRef: object
spec.machineTemplate.nodeDrainTimeout: string
spec.machineTemplate.nodeVolumeDetachTimeout: string
spec.machineTemplate.nodeDeletionTimeout: string
spec.machineTemplate.readinessGates.[].conditionType: string
spec.machineTemplate.spec.infrastructureRef: object
spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds: integer
spec.machineTemplate.spec.deletion.nodeVolumeDetachTimeoutSeconds: integer
spec.machineTemplate.spec.deletion.nodeDeletionTimeoutSeconds: integer
spec.machineTemplate.spec.readinessGates.[].conditionType: string
spec.machineTemplate.spec.taints.[].key: string
spec.machineTemplate.spec.taints.[].effect: string
status.externalManagedControlPlane: boolean
status.initialized: boolean
status.initialization.controlPlaneInitialized: boolean
status.selector: string
status.replicas: integer
status.readyReplicas: integer
status.availableReplicas: integer
status.upToDateReplicas: integer
status.updatedReplicas: integer
status.unavailableReplicas: integer
status.versions.[].version: string
status.versions.[].replicas: integer
`,
}

const templateFields = `spec.template.spec: object
spec.template.metadata.labels: object
spec.template.metadata.annotations: object
status.capacity.{}: quantity
status.nodeInfo.architecture: string
status.nodeInfo.operatingSystem: string
`

const rest = `apiVersion: v1
kind: Namespace
metadata: {name: sample-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: sample-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sample-aggregated, labels: {cluster.x-k8s.io/aggregate-to-manager: "true"}}
rules:
- apiGroups: [infrastructure.example.dev]
  resources: [samplemachines, samplemachinetemplates, sampleclusters, sampleclustertemplates]
  verbs: [get, list, watch, create, update, patch, delete]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: sample-system}
spec:
  template:
    spec:
      serviceAccountName: manager
      containers:
      - {name: manager, image: "registry.example.dev/sample:v1.2.3", args: ["--v=${SAMPLE_LOG:=2}"]}
`

const clusterTemplate = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: "${CLUSTER_NAME}"}
spec: {infrastructureRef: {kind: SampleCluster, name: "${CLUSTER_NAME}"}}
---
apiVersion: infrastructure.example.dev/v1
kind: SampleCluster
metadata: {name: "${CLUSTER_NAME}"}
`

const clusterClass = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick}
spec: {infrastructure: {templateRef: {kind: SampleClusterTemplate, name: quick}}}
`

// definition makes the CRD of a kind.
func definition(group, kind, fields string) object {
	parsed := map[string]string{}
	if err := yaml.Unmarshal([]byte(common+fields), &parsed); err != nil {
		panic(err)
	}
	name := version.CRDName(schema.GroupKind{Group: group, Kind: kind})
	scale := object{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}
	columns := []any{object{"jsonPath": ".metadata.labels['cluster.x-k8s.io/cluster-name']"},
		object{"jsonPath": ".status.ready"}, object{"jsonPath": ".metadata.creationTimestamp"}}
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": object{"name": name, "labels": object{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v1"}},
		"spec": object{
			"group": group, "scope": "Namespaced",
			"names": object{
				"kind": kind, "listKind": kind + "List", "plural": strings.TrimSuffix(name, "."+group), "categories": []any{"cluster-api"},
			},
			"versions": []any{object{
				"name": "v1", "served": true, "storage": true, "schema": object{"openAPIV3Schema": props(parsed)},
				"subresources": object{"status": object{}, "scale": scale}, "additionalPrinterColumns": columns,
			}},
		},
	}
}

// sample returns the files of the release by name.
func sample(t *testing.T) map[string][]object {
	t.Helper()
	files := map[string][]object{"infrastructure-components.yaml": documents(t, rest)}
	add := func(o object) {
		files["infrastructure-components.yaml"] = append(files["infrastructure-components.yaml"], o)
	}
	for name, fields := range kindFields {
		group, kind, _ := strings.Cut(name, "/")
		add(definition(group, kind, fields))
		add(definition(group, kind+"Template", templateFields))
	}
	for _, o := range files["infrastructure-components.yaml"] {
		meta := o["metadata"].(object)
		if meta["labels"] == nil {
			meta["labels"] = object{}
		}
		meta["labels"].(object)["cluster.x-k8s.io/provider"] = "infrastructure-sample"
	}
	files["metadata.yaml"] = documents(t, `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries: [{major: 1, minor: 2, contract: v1beta2}]
`)
	files["cluster-template.yaml"] = documents(t, clusterTemplate)
	files["clusterclass-quick.yaml"] = documents(t, clusterClass)
	return files
}

func documents(t *testing.T, text string) []object {
	t.Helper()
	file, err := static.Parse("sample", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var found []object
	for _, o := range file.Objects {
		found = append(found, o.Object)
	}
	return found
}
