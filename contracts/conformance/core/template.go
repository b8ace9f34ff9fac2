package core

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

func templateCases() []conformance.Case[*Env] {
	ids := []rules.ID{"CO-030", "CO-031", "CO-032", "CO-033", "CO-034"}
	return []conformance.Case[*Env]{scenario("Templates", ids, templates)}
}

// template creates a template of a kind.
func (w *world) template(kind string) {
	object := w.standIn(kind+clusterv1.TemplateSuffix, w.id, fields{"template": fields{
		"metadata": fields{"labels": fields{"inner": "label"}, "annotations": fields{"inner": "annotation"}},
		"spec":     fields{"size": "large"},
	}})
	object.SetFinalizers(nil)
	object.SetLabels(map[string]string{"outer": "label"})
	object.SetAnnotations(map[string]string{"outer": "annotation"})
	w.create(object)
}

// set creates a MachineSet.
func (w *world) set(replicas int32) *clusterv1.MachineSet {
	w.template(machineKind)
	w.template(configKind)
	set := &clusterv1.MachineSet{ObjectMeta: w.meta(w.id)}
	set.Spec.ClusterName = w.id
	set.Spec.Replicas = ptr.To(replicas)
	set.Spec.Selector = metav1.LabelSelector{MatchLabels: map[string]string{"set": w.id}}
	set.Spec.Template.Labels = map[string]string{"set": w.id, "from-set": "before", clusterv1.ClusterNameLabel: w.id}
	set.Spec.Template.Spec.ClusterName = w.id
	set.Spec.Template.Spec.InfrastructureRef = w.ref(machineKind+clusterv1.TemplateSuffix, w.id)
	set.Spec.Template.Spec.Bootstrap.ConfigRef = w.ref(configKind+clusterv1.TemplateSuffix, w.id)
	w.create(set)
	return set
}

// clones watches for the first version of an object of a kind that is created from the template.
func (w *world) clones(kind string) func() (*unstructured.Unstructured, bool) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(groupVersion(w.Contract).WithKind(kind + "List"))
	watch, err := w.Client.Watch(w.ctx, list, client.InNamespace(w.Namespace))
	w.must(err, "to watch "+kind)
	return func() (first *unstructured.Unstructured, found bool) {
		defer watch.Stop()
		deviation := w.soon(func() string {
			for {
				select {
				case event, open := <-watch.ResultChan():
					object, is := event.Object.(*unstructured.Unstructured)
					if !open {
						return "the watch has ended"
					}
					if is && object.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation] == w.id || is && object.GetLabels()["set"] == w.id {
						first, found = object, true
						return ""
					}
				default:
					return "nothing was created"
				}
			}
		})
		return first, found && deviation == ""
	}
}

func templates(w *world) {
	w.open()
	infras, configs := w.clones(machineKind), w.clones(configKind)
	set := w.set(1)
	infra, created := infras()
	config, also := configs()
	if !created || !also {
		w.stop("nothing was created that names the templates in an annotation or label")
	}
	spec, from, owner, named := "", "", "", ""
	for _, object := range []*unstructured.Unstructured{infra, config} {
		annotations, labels := object.GetAnnotations(), object.GetLabels()
		size, _, _ := unstructured.NestedString(object.Object, "spec", "size")
		if size != "large" || labels["inner"] != "label" || annotations["inner"] != "annotation" || labels["outer"]+annotations["outer"] != "" {
			spec += fmt.Sprintf("%s has size %q, labels %v, annotations %v; ", object.GetKind(), size, labels, annotations)
		}
		kind := object.GetKind() + clusterv1.TemplateSuffix + "." + groupVersion(w.Contract).Group
		if annotations[clusterv1.TemplateClonedFromNameAnnotation] != w.id ||
			annotations[clusterv1.TemplateClonedFromGroupKindAnnotation] != kind {
			from += fmt.Sprintf("%s has annotations %v; ", object.GetKind(), annotations)
		}
		if len(object.GetOwnerReferences()) == 0 {
			owner += object.GetKind() + " was created without owner; "
		}
		machine := &clusterv1.Machine{}
		if err := w.Client.Get(w.ctx, w.key(object.GetName()), machine); err != nil {
			if w.within(w.Timeouts.React.Duration, func() string { return errorText(w.Client.Get(w.ctx, w.key(object.GetName()), machine)) }) != "" {
				named += fmt.Sprintf("%s is named %s, no Machine is; ", object.GetKind(), object.GetName())
			}
		}
	}
	w.check("CO-030", "created objects have spec, labels and annotations of spec.template, and none of the template's own", spec)
	w.check("CO-031", "annotations name the template", from)
	w.check("CO-032", "created objects have the name of their Machine", named)
	w.check("CO-033", "created objects have an owner in their first version", owner)
	w.change(set, func() { set.Spec.Template.Labels["from-set"] = "after" })
	w.check("CO-034", "a changed label of the MachineSet's template is propagated to existing objects", w.soon(func() string {
		for _, object := range []*unstructured.Unstructured{infra, config} {
			if got := w.current(object).GetLabels()["from-set"]; got != "after" {
				return fmt.Sprintf("label from-set of %s is %q", object.GetKind(), got)
			}
		}
		return ""
	}))
	w.remove(set)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
