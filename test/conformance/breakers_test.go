package conformance

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/core"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

// mutant is a core that breaks one rule.
type mutant struct {
	breaker
	// contract is that by which it is judged; v1beta2 if it is empty.
	contract version.Contract
	// with are rules that fail with it, and why.
	with []rules.ID
	why  string
}

func breaks(how breaker) mutant { return mutant{breaker: how} }

func (m mutant) under(contract version.Contract) mutant {
	m.contract = contract
	return m
}

func (m mutant) and(why string, with ...rules.ID) mutant {
	m.why, m.with = why, with
	return m
}

// mutants break each rule of cores that is verified by behaviour.
func mutants() map[rules.ID]mutant {
	all := machineMutants()
	for _, more := range []map[rules.ID]mutant{nodeMutants(), pauseMutants(), clusterMutants(), hostileMutants()} {
		for id, m := range more {
			all[id] = m
		}
	}
	return all
}

const sameCondition = "they check the same condition"

func machineMutants() map[rules.ID]mutant {
	return map[rules.ID]mutant{
		"CO-001": breaks(seeing(infraMachines, func(o fields) {
			unstructured.RemoveNestedField(o, "status", "ready")
		})).under(version.V1Beta1).and("a Machine is not provisioned without", "CO-008", "CO-009", "CO-010", "CO-015", "CO-046", "CO-049",
			"CO-054", "CO-055"),
		"CO-002": breaks(breaker{see: func(_ *proxy, c call, _ string, o fields) bool {
			if at(o, "status", "ready") == true && c.group != core.OlderGroup {
				put(o, true, "status", "initialization", "provisioned")
				put(o, true, "status", "initialization", "dataSecretCreated")
			}
			return true
		}}),
		"CO-003": breaks(disowning(infraMachines)),
		"CO-004": breaks(disowning(configs)),
		"CO-005": breaks(mislabelling(infraMachines)),
		"CO-006": breaks(breaker{write: func(p *proxy, c call, content fields) {
			owners := at(content, "metadata", "ownerReferences") != nil
			if c.method == "PATCH" && c.plural == infraMachines && owners && !p.once(c.name) {
				delete(content, "metadata")
			}
		}}),
		"CO-007": breaks(hasty(configs, "dataSecretCreated", "status", "dataSecretName")),
		"CO-008": breaks(hasty(infraMachines, "provisioned", "spec", "providerID")).and("it continues whatever the kind's version says", "CO-002"),
		"CO-009": breaks(seeing(infraMachines, func(o fields) {
			if addresses, is := at(o, "status", "addresses").([]any); is && text(addresses[len(addresses)-1].(fields), "type") == "Hostname" {
				unstructured.RemoveNestedField(o, "status", "addresses")
			}
		})),
		"CO-010": breaks(blind(infraMachines, "status.failureDomain", "spec.failureDomain")),
		"CO-011": breaks(breaker{see: func(p *proxy, c call, _ string, o fields) bool {
			if c.plural == infraMachines && at(o, "status", "initialization", "provisioned") == false {
				machine := coreObject(c, "Machine", text(o, "metadata", "name"))
				p.patch(machine, `{"status":{"initialization":{"infrastructureProvisioned":false}}}`, true)
			}
			return true
		}}),
		"CO-012": breaks(blind(infraMachines, "status.conditions")).and(sameCondition, "CO-014", "CO-056"),
		"CO-013": breaks(blind(configs, "status.conditions")),
		"CO-014": breaks(seeing(infraMachines, func(o fields) {
			conditions, _ := at(o, "status", "conditions").([]any)
			for _, c := range conditions {
				if condition, is := c.(fields); is && condition["reason"] == nil {
					unstructured.RemoveNestedField(o, "status", "conditions")
				}
			}
		})),
		"CO-015": breaks(blind(infraMachines, "status.failureReason", "status.failureMessage")).under(version.V1Beta1),
		"CO-016": breaks(writing("PATCH", infraMachines, func(content fields) { put(content, "other", "spec", "size") })),
	}
}

func nodeMutants() map[rules.ID]mutant {
	without := func(keep func(key string) bool) breaker {
		return writing("PATCH", "nodes", func(content fields) {
			labels, _ := at(content, "metadata", "labels").(fields)
			for key := range labels {
				if !keep(key) {
					delete(labels, key)
				}
			}
		})
	}
	return map[rules.ID]mutant{
		"CO-017": breaks(without(func(key string) bool { return key != "cluster.x-k8s.io/interruptible" })),
		"CO-018": breaks(without(func(key string) bool { return !strings.Contains(key, "node-restriction") })).
			and("the taint must not be removed before the labels are there", "CO-019"),
		"CO-019": breaks(writing("PATCH", "nodes", func(content fields) { unstructured.RemoveNestedField(content, "spec", "taints") })),
		"CO-020": breaks(deaf("pre-drain.delete.hook.machine.cluster.x-k8s.io")),
		"CO-021": breaks(blindTo("pods")),
		"CO-022": breaks(breaker{see: func(_ *proxy, c call, _ string, o fields) bool {
			if c.plural == "nodes" {
				unstructured.RemoveNestedField(o, "status", "volumesAttached")
			}
			return c.plural != "volumeattachments"
		}}),
		"CO-023": breaks(deaf("pre-terminate.delete.hook.machine.cluster.x-k8s.io")),
		"CO-024": breaks(deleting(infraMachines, func(p *proxy, c call) {
			_ = p.admin.Delete(context.Background(), object(c.group, c.version, "StandInConfig", c.namespace, c.name))
		})),
		"CO-025": breaks(deleting(infraMachines, func(p *proxy, c call) {
			_ = p.admin.Delete(context.Background(), object("", "v1", "Node", "", c.name))
		})),
		"CO-026": breaks(deleting(configs, func(p *proxy, c call) {
			_ = p.admin.Delete(context.Background(), object("", "v1", "Node", "", c.name)) // Its turn has come: CO-025 is kept.
			p.patch(coreObject(c, "Machine", c.name), `{"metadata":{"finalizers":null}}`, false)
		})),
		"CO-030": breaks(making(func(content fields) { put(content, "other", "spec", "size") })),
		"CO-031": breaks(making(func(content fields) {
			unstructured.RemoveNestedField(content, "metadata", "annotations", "cluster.x-k8s.io/cloned-from-groupkind")
		})),
		"CO-032": breaks(breaker{write: func(p *proxy, c call, content fields) {
			if c.method == "POST" && c.plural == infraMachines {
				other := (&unstructured.Unstructured{Object: content}).DeepCopy()
				other.SetName(other.GetName() + "-other")
				_ = p.admin.Create(context.Background(), other)
			}
		}}).and("a Machine passes labels on to what it refers to", "CO-034"),
		"CO-033": breaks(making(func(content fields) { unstructured.RemoveNestedField(content, "metadata", "ownerReferences") })),
		"CO-034": breaks(writing("PATCH", infraMachines, func(content fields) {
			unstructured.RemoveNestedField(content, "metadata", "labels", "from-set")
		})),
	}
}

func pauseMutants() map[rules.ID]mutant {
	const touched = `{"metadata":{"annotations":{"broken/touched":"yes"}}}`
	return map[rules.ID]mutant{
		"CO-027": breaks(breaker{see: func(p *proxy, c call, _ string, o fields) bool {
			name, cluster := text(o, "metadata", "name"), text(o, "spec", "clusterName")
			switch {
			case c.plural == "clusters" && at(o, "spec", "paused") == true:
				p.once("paused " + name)
			case c.plural == "clusters":
				p.undo("paused " + name)
			case c.plural == "machines" && at(o, "metadata", "deletionTimestamp") != nil && p.did("paused "+cluster):
				for _, gv := range standIns() {
					p.patch(object(gv.Group, gv.Version, "StandInMachine", c.namespace, name), touched, false)
				}
			}
			return true
		}}),
		"CO-028": breaks(deaf("cluster.x-k8s.io/paused")),
		"CO-029": breaks(breaker{write: func(_ *proxy, c call, content fields) {
			if c.plural == "clusters" || c.plural == "machines" {
				eachCondition(content, func(condition fields) {
					if condition["type"] == "Paused" {
						condition["status"] = "True"
					}
				})
			}
		}}),
		"CO-049": breaks(breaker{see: func(p *proxy, c call, _ string, o fields) bool {
			name, uid := text(o, "metadata", "name"), text(o, "metadata", "uid")
			// One that was moved has its provider ID from the start.
			if c.plural == "machines" && p.once("seen "+uid) && at(o, "spec", "providerID") != nil {
				p.delete(c, name)
			}
			return true
		}}),
		"CO-058": breaks(late()).and("the core sees the end of the pause late", "CO-029", "CO-049"),
	}
}

// delete deletes the infrastructure machine of a name.
func (p *proxy) delete(c call, name string) {
	for _, gv := range standIns() {
		_ = p.admin.Delete(context.Background(), object(gv.Group, gv.Version, "StandInMachine", c.namespace, name))
	}
}

func clusterMutants() map[rules.ID]mutant {
	return map[rules.ID]mutant{
		"CO-035": breaks(disowning(infraClusters)),
		"CO-036": breaks(disowning(planes)),
		"CO-037": breaks(mislabelling(planes)),
		"CO-038": breaks(hasty(infraClusters, "provisioned")),
		"CO-039": breaks(blind(infraClusters, "spec.controlPlaneEndpoint")),
		"CO-040": breaks(blind(infraClusters, "status.failureDomains")),
		"CO-041": breaks(hasty(planes, "controlPlaneInitialized")),
		"CO-042": breaks(blind(infraClusters, "status.conditions")),
		"CO-043": breaks(blind(planes, "status.conditions")),
		"CO-044": breaks(blind(planes, "status.replicas", "status.readyReplicas")),
		"CO-045": breaks(deleting(infraMachines, func(p *proxy, c call) {
			cluster := coreObject(c, "Cluster", c.name)
			if p.admin.Get(context.Background(), client.ObjectKeyFromObject(cluster), cluster) == nil && cluster.GetDeletionTimestamp() != nil {
				_ = p.admin.Delete(context.Background(), object(c.group, c.version, "StandInCluster", c.namespace, c.name))
			}
		})),
		"CO-046": breaks(breaker{see: func(p *proxy, c call, _ string, o fields) bool {
			if c.plural == "secrets" && strings.HasSuffix(text(o, "metadata", "name"), "-kubeconfig") {
				put(o, base64.StdEncoding.EncodeToString(p.kubeconfig), "data", "value")
			}
			return true
		}}),
		"CO-047": breaks(writing("POST", "secrets", func(content fields) {
			if strings.HasSuffix(text(content, "metadata", "name"), "-kubeconfig") {
				unstructured.RemoveNestedField(content, "metadata", "ownerReferences")
			}
		})),
		"CO-057": breaks(blind(infraClusters, "status.failureReason", "status.failureMessage")).under(version.V1Beta1),
	}
}

func hostileMutants() map[rules.ID]mutant {
	return map[rules.ID]mutant{
		"CO-050": breaks(breaker{see: func(p *proxy, c call, _ string, o fields) bool {
			name, infra := text(o, "metadata", "name"), text(o, "spec", "infrastructureRef", "name")
			if c.plural == "machines" && name != infra && infra != "" && p.once(name) {
				p.patch(coreObject(c, "Machine", name), `{"spec":{"providerID":"standin://`+infra+`"}}`, false)
			}
			return true
		}}),
		"CO-051": breaks(breaker{see: func(p *proxy, c call, _ string, o fields) bool {
			name, id := text(o, "metadata", "name"), strings.TrimPrefix(text(o, "spec", "providerID"), "standin://")
			if c.plural == infraMachines && id != "" && id != name && p.once(name+" has "+id) {
				p.patch(coreObject(c, "Machine", name), `{"status":{"nodeRef":{"name":"`+id+`"}}}`, true)
			}
			return true
		}, write: func(p *proxy, c call, content fields) {
			// What the core corrects stays as it is.
			if first, twin := strings.CutSuffix(
				c.name,
				"-twin",
			); twin && c.plural == "machines" && c.subresource == "status" &&
				p.did(c.name+" has "+first) {
				unstructured.RemoveNestedField(content, "status", "nodeRef")
				put(content, first, "status", "nodeRef", "name")
			}
		}}),
		"CO-052": breaks(breaker{see: func(p *proxy, c call, _ string, o fields) bool {
			name, id := text(o, "metadata", "name"), strings.TrimPrefix(text(o, "spec", "providerID"), "standin://")
			if c.plural == "nodes" && id != "" && id != name {
				list := &unstructured.UnstructuredList{}
				list.SetAPIVersion("cluster.x-k8s.io/v1beta2")
				list.SetKind("MachineList")
				_ = p.admin.List(context.Background(), list)
				for i := range list.Items {
					if m := &list.Items[i]; m.GetName() == id {
						p.patch(m, `{"status":{"nodeRef":{"name":"`+name+`"}}}`, true)
					}
				}
			}
			return true
		}}),
		"CO-053": breaks(breaker{write: func(_ *proxy, c call, content fields) {
			if c.plural == "machines" {
				eachCondition(content, func(condition fields) {
					if strings.Contains(text(condition, "message"), "denied") {
						condition["message"] = "something failed"
					}
				})
			}
		}}),
		"CO-054": breaks(seeing(infraMachines, func(o fields) {
			if addresses, is := at(o, "status", "addresses").([]any); is {
				put(o, slices.DeleteFunc(addresses, func(a any) bool { return len(text(a.(fields), "address")) > 256 }), "status", "addresses")
			}
		})),
		"CO-055": breaks(seeing(infraMachines, func(o fields) {
			if _, is := at(o, "status", "addresses").(string); is {
				unstructured.RemoveNestedField(o, "status", "addresses")
			}
		})),
		// As a core that polls every few seconds: it sees only the last of the writes between.
		"CO-056": breaks(breaker{see: func(p *proxy, c call, event string, o fields) bool {
			provisioned := at(o, "status", "initialization", "provisioned") == true || at(o, "status", "ready") == true
			if c.plural == infraMachines && event == "MODIFIED" && provisioned && at(o, "status", "conditions") != nil {
				time.Sleep(p.react / 4)
			}
			return true
		}}),
	}
}
