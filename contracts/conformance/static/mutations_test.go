package static_test

import (
	"maps"

	"millwright.dev/contracts/rules"
)

const (
	components    = "infrastructure-components.yaml"
	machine       = "SampleMachine"
	machineKit    = "SampleMachineTemplate"
	cluster       = "SampleCluster"
	config        = "SampleConfig"
	plane         = "SampleControlPlane"
	providerLabel = "cluster.x-k8s.io/provider"
	other         = "other"
	// releaseFile stands for the version of the release, which is in no file.
	releaseFile = "version of the release"
)

type mutation = func(files map[string][]object)

// mutations break each rule, and nothing else.
var mutations = map[rules.ID]mutation{
	"CV-001": in(components, machine, set("machines.example.dev", "metadata", "name")),
	"CV-002": in(components, "SampleConfigTemplate", func(o object) {
		set(nil, "metadata", "labels", "cluster.x-k8s.io/v1beta1")(o)
		set(nil, "metadata", "labels", "cluster.x-k8s.io/v1beta2")(o)
	}),
	"CV-005": in(components, machine, set("v1_v2", "metadata", "labels", "cluster.x-k8s.io/v1beta1")),
	"CV-006": in(components, machine, func(o object) {
		set("v1_v1beta1", "metadata", "labels", "cluster.x-k8s.io/v1beta1")(o)
		versions := o["spec"].(object)["versions"].([]any)
		older := maps.Clone(versions[0].(object))
		older["name"] = "v1beta1"
		o["spec"].(object)["versions"] = append(versions, older)
	}),
	"CV-007": in(components, machine, set("Cluster", "spec", "scope")),
	"CV-008": schemaOf(machine, "metadata", ""),
	"CV-009": in(components, machine, set("Machines", "spec", "names", "listKind")),
	"CV-010": apiVersion(machine, func(v object) { set(nil, "subresources", "status")(v) }),
	"CV-012": in(components, "ClusterRole sample-aggregated", set(nil, "metadata", "labels", "cluster.x-k8s.io/aggregate-to-manager")),
	"CV-015": schemaOf(machine, "status.conditions.[].type", ""),
	"IM-002": schemaOf(machine, "spec.providerID", "integer"),
	"IM-003": schemaOf(machine, "status.initialization.provisioned", ""),
	"IM-004": schemaOf(machine, "status.addresses.[].address", ""),
	"IM-005": schemaOf(machine, "status.failureDomain", "integer"),
	"IM-006": schemaOf(machine, "status.interruptible", "string"),
	"IM-008": schemaOf(machine, "status.failureReason", "integer"),
	"IM-014": enum(machine, "status.addresses.[].type", "InternalIP", "Fax"),
	"IM-015": schemaOf(machine, "spec.failureDomain", "integer"),
	"IT-001": in(components, machineKit, rename(machineKit, "SampleMachineMould")),
	"IT-002": schemaOf(machineKit, "spec.template.spec", "string"),
	"IT-003": schemaOf(machineKit, "spec.template.metadata.labels", ""),
	"IT-007": schemaOf(machineKit, "status.capacity", "string"),
	"IT-008": enum(machineKit, "status.nodeInfo.architecture", "amd64", "z80"),
	"IT-009": schemaOf(machineKit, "status.nodeInfo.operatingSystem", "integer"),
	"BC-002": schemaOf(config, "status.ready", "string"),
	"BC-003": schemaOf(config, "status.dataSecretName", ""),
	"BC-005": schemaOf(config, "status.failureMessage", ""),
	"BC-007": schemaOf(config, "status.nodeName", "integer"),
	"BT-001": in(components, "SampleConfigTemplate", rename("SampleConfigTemplate", "SampleConfigMould")),
	"BT-002": schemaOf("SampleConfigTemplate", "spec.template.spec", ""),
	"BT-003": schemaOf("SampleConfigTemplate", "spec.template.metadata", ""),
	"IC-001": schemaOf(cluster, "status.ready", ""),
	"IC-002": schemaOf(cluster, "spec.controlPlaneEndpoint.port", "string"),
	"IC-004": schemaOf(cluster, "status.failureDomains", "string"),
	"IC-005": schemaOf(cluster, "status.failureReason", "integer"),
	"IC-012": schemaOf("SampleClusterTemplate", "spec.template.spec", ""),
	"CP-001": schemaOf(plane, "status.initialized", ""),
	"CP-002": schemaOf(plane, "spec.controlPlaneEndpoint.host", ""),
	"CP-003": schemaOf(plane, "status.externalManagedControlPlane", "string"),
	"CP-005": schemaOf(plane, "spec.version", "integer"),
	"CP-006": schemaOf(plane, "status.versions.[].version", ""),
	"CP-007": schemaOf(plane, "status.readyReplicas", "string"),
	"CP-008": apiVersion(plane, func(v object) { set(".status.count", "subresources", "scale", "statusReplicasPath")(v) }),
	"CP-011": schemaOf(plane, "status.versions.[].replicas", "string"),
	"CP-012": schemaOf(plane, "status.failureReason", "integer"),
	"CP-013": schemaOf(plane, "spec.machineTemplate.infrastructureRef", ""),
	"CP-014": schemaOf(plane, "spec.machineTemplate.nodeDrainTimeout", "integer"),
	"CP-015": schemaOf(plane, "spec.machineTemplate.readinessGates.[].conditionType", "integer"),
	"CP-016": schemaOf(plane, "spec.machineTemplate.spec.taints.[].key", ""),
	"CP-017": schemaOf(plane, "spec.rollout.after", "integer"),
	"CP-019": in(components, "SampleControlPlaneTemplate", rename("SampleControlPlaneTemplate", "SampleControlPlaneMould")),
	"PR-001": func(files map[string][]object) { delete(files, "metadata.yaml") },
	"PR-002": func(files map[string][]object) {
		files["z.yaml"], files[components] = files[components][1:], files[components][:1]
	},
	"PR-003": move(components, "manifests.yaml"),
	"PR-004": func(files map[string][]object) { files[releaseFile] = []object{{"version": "v1.2"}} },
	"PR-005": in("metadata.yaml", "", set("clusterctl.cluster.x-k8s.io/v1", "apiVersion")),
	"PR-006": in("metadata.yaml", "", set("Data", "kind")),
	"PR-007": in("metadata.yaml", "", func(o object) {
		o["releaseSeries"] = append(o["releaseSeries"].([]any), object{"major": int64(1), "minor": int64(1)})
	}),
	"PR-008": in("metadata.yaml", "", set([]any{object{"major": int64(1), "minor": int64(1), "contract": "v1beta2"}}, "releaseSeries")),
	"PR-009": in("metadata.yaml", "", set([]any{object{"major": int64(1), "minor": int64(2), "contract": "v1alpha4"}}, "releaseSeries")),
	"PR-010": add(object{"apiVersion": "v1", "kind": "Namespace", "metadata": named("second", "")}),
	"PR-011": drop("Namespace sample-system"),
	"PR-012": add(object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("stray", "kube-system")}),
	"PR-013": add(object{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": named("d", "sample-system")}),
	"PR-014": container("name", other),
	"PR-017": container("args", []any{"--namespace=mine"}),
	"PR-018": container("image", "sample:latest"),
	"PR-019": container("args", []any{"--x=${SAMPLE_${A}}"}),
	"PR-020": container("args", []any{"--x=${LOG:=2}"}),
	"PR-022": in(components, "Deployment manager", set(nil, "metadata", "labels")),
	"PR-023": in(components, "Deployment manager", set("infrastructure-other", "metadata", "labels", providerLabel)),
	"PR-024": func(files map[string][]object) {
		for _, o := range files[components] {
			set("infrastructure-Sample", "metadata", "labels", providerLabel)(o)
		}
	},
	"PR-026": drop("ServiceAccount manager"),
	"PR-031": func(files map[string][]object) { delete(files, "cluster-template.yaml") },
	"PR-032": move("cluster-template.yaml", "cluster-templateX.yaml"),
	"PR-033": addTo("cluster-template.yaml", object{"apiVersion": "v1", "kind": "Namespace", "metadata": named("x", "")}),
	"PR-034": in("cluster-template.yaml", "SampleCluster ${CLUSTER_NAME}", set(other, "metadata", "namespace"),
		in("cluster-template.yaml", "Cluster ${CLUSTER_NAME}", set("${NAMESPACE}", "metadata", "namespace"))),
	"PR-035": in("cluster-template.yaml", "Cluster ${CLUSTER_NAME}", set("fixed", "metadata", "name")),
	"PR-036": in("cluster-template.yaml", "SampleCluster ${CLUSTER_NAME}", set(other, "metadata", "name")),
	"PR-039": move("clusterclass-quick.yaml", "clusterclass-slow.yaml"),
	"PR-040": addTo("clusterclass-quick.yaml", object{"apiVersion": "v1", "kind": "Namespace", "metadata": named("x", "")}),
	"PR-041": in("clusterclass-quick.yaml", "", set("x", "spec", "infrastructure", "templateRef", "namespace")),
	"PR-042": in("clusterclass-quick.yaml", "", set("x", "metadata", "namespace")),
	"PR-043": func(files map[string][]object) {
		shared := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "shared"}}
		second := object{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": object{"name": "second"}}
		files["clusterclass-quick.yaml"] = append(files["clusterclass-quick.yaml"], shared)
		files["clusterclass-second.yaml"] = []object{second, shared}
	},
	"PR-044": in("clusterclass-quick.yaml", "", set("${X}", "spec", "text")),
}
