package conformance

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/conformance/core"
)

// The kinds of the suite, as they are in requests.
const (
	infraMachines = "standinmachines"
	configs       = "standinconfigs"
	infraClusters = "standinclusters"
	planes        = "standincontrolplanes"
)

func at(object fields, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}

func text(object fields, path ...string) string {
	value, _ := at(object, path...).(string)
	return value
}

func put(object fields, value any, path ...string) {
	_ = unstructured.SetNestedField(object, value, path...)
}

// seeing breaks what the core reads of a kind.
func seeing(plural string, change func(object fields)) breaker {
	return breaker{see: func(_ *proxy, c call, _ string, object fields) bool {
		if c.plural == plural {
			change(object)
		}
		return true
	}}
}

// blind is a core that does not see some fields of a kind.
func blind(plural string, paths ...string) breaker {
	return seeing(plural, func(object fields) {
		for _, path := range paths {
			unstructured.RemoveNestedField(object, strings.Split(path, ".")...)
		}
	})
}

// blindTo is a core that sees no object of a kind.
func blindTo(plural string) breaker {
	return breaker{see: func(_ *proxy, c call, _ string, _ fields) bool { return c.plural != plural }}
}

// hasty is a core that considers something done before the provider reports it: when it sees a field.
func hasty(plural, flag string, seen ...string) breaker {
	return breaker{see: func(_ *proxy, c call, _ string, object fields) bool {
		if c.plural == plural && at(object, "status", "ready") == nil && (len(seen) == 0 || at(object, seen...) != nil) {
			if c.group == core.OlderGroup {
				put(object, true, "status", "ready")
			} else {
				put(object, true, "status", "initialization", flag)
			}
		}
		return true
	}}
}

// writing breaks what the core writes to objects of a kind that exist, or that it creates.
func writing(method, plural string, change func(content fields)) breaker {
	return breaker{write: func(_ *proxy, c call, content fields) {
		if c.plural == plural && c.method == method && content != nil {
			change(content)
		}
	}}
}

// making breaks what the core creates from templates.
func making(change func(content fields)) breaker { return writing("POST", infraMachines, change) }

// disowning is a core that writes another owner than it should, and considers it right.
func disowning(plural string) breaker {
	rename := func(object fields, from, to string) {
		owners, _ := at(object, "metadata", "ownerReferences").([]any)
		for _, owner := range owners {
			if o, is := owner.(fields); is && (o["kind"] == from+"Machine" || o["kind"] == from+"Cluster") {
				kind, _ := o["kind"].(string)
				o["kind"] = to + strings.TrimPrefix(kind, from)
			}
		}
	}
	return both(writing("PATCH", plural, func(o fields) { rename(o, "", "Other") }), seeing(plural, func(o fields) { rename(o, "Other", "") }))
}

// mislabelling is a core that writes another label than it should, and considers it right.
func mislabelling(plural string) breaker {
	rename := func(object fields, from, to string) {
		labels, _ := at(object, "metadata", "labels").(fields)
		if value, is := labels[from]; is {
			labels[to] = value
			delete(labels, from)
		}
	}
	const right, wrong = "cluster.x-k8s.io/cluster-name", "broken/cluster-name"
	return both(
		writing("PATCH", plural, func(o fields) { rename(o, right, wrong) }),
		seeing(plural, func(o fields) { rename(o, wrong, right) }),
	)
}

func both(writes, sees breaker) breaker { return breaker{write: writes.write, see: sees.see} }

// deaf is a core that does not see annotations of Machines with a prefix.
func deaf(prefix string) breaker {
	return seeing("machines", func(object fields) {
		annotations, _ := at(object, "metadata", "annotations").(fields)
		for key := range annotations {
			if strings.HasPrefix(key, prefix) {
				delete(annotations, key)
			}
		}
	})
}

// deleting is a core that does something else when it deletes an object of a kind.
func deleting(plural string, also func(p *proxy, c call)) breaker {
	return breaker{write: func(p *proxy, c call, _ fields) {
		if c.plural == plural && c.method == "DELETE" {
			also(p, c)
		}
	}}
}

// object is one that the proxy writes, beside one that the core writes.
func object(group, version, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(strings.TrimPrefix(group+"/"+version, "/"))
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func coreObject(c call, kind, name string) *unstructured.Unstructured {
	return object("cluster.x-k8s.io", "v1beta2", kind, c.namespace, name)
}

// eachCondition changes the conditions in a status that the core writes.
func eachCondition(content fields, change func(condition fields)) {
	conditions, _ := at(content, "status", "conditions").([]any)
	for _, c := range conditions {
		if condition, is := c.(fields); is {
			change(condition)
		}
	}
}

// late is a core that sees the end of a pause only by another change of the Cluster, which comes after the suite has waited for it.
func late() breaker {
	return breaker{see: func(p *proxy, c call, event string, o fields) bool {
		name := text(o, "metadata", "name")
		switch {
		case c.plural != "clusters":
		case at(o, "spec", "paused") == true:
			p.once("paused " + name)
		case event != "" && p.did("paused "+name):
			if p.once("hidden " + name) {
				time.AfterFunc(p.react+2*time.Second, func() {
					p.undo("paused " + name)
					p.undo("hidden " + name)
					p.patch(coreObject(c, "Cluster", name), `{"metadata":{"annotations":{"late":"`+time.Now().String()+`"}}}`, false)
				})
			}
			return false
		}
		return true
	}}
}
