package machinedeployment

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// groupRecord is the value of AutoscalerAnnotation.
type groupRecord struct {
	// Templates identifies the templates that the values describe. If they change, the values no longer apply.
	Templates string `json:"templates,omitempty"`
	// Learned is true if the values come from a Node.
	Learned bool `json:"learned,omitempty"`
	// Values are what the controller has written, by annotation. An annotation with another value is the user's.
	Values map[string]string `json:"values,omitempty"`
}

// tellAutoscaler writes, for a deployment with both limits of the cluster autoscaler, what a Node of it will have: labels, taints and
// maxPods of the bootstrap template, and from the first Node on what Pods can use of it. Annotations that a user has set stay as they are.
func (r *Reconciler) tellAutoscaler(ctx context.Context, s *scope) outcome.Outcome {
	record := recordOf(s.Object)
	next := groupRecord{}
	if isNodeGroup(s.Object) {
		bootstrap, known := r.bootstrapTemplate(ctx, s.Object)
		if !known {
			return outcome.Continue() // A watch requeues the deployment when the template can be read.
		}
		next = record.next(templatesOf(s.Object, bootstrap), bootstrap, r.nodesOf(s))
	}
	annotations := record.replace(s.Object.Annotations, next)
	if maps.Equal(annotations, s.Object.Annotations) {
		return outcome.Continue()
	}
	return outcome.FromError(s.Patch(ctx, func(deployment *clusterv1.MachineDeployment) { deployment.Annotations = annotations }))
}

func isNodeGroup(deployment *clusterv1.MachineDeployment) bool {
	_, low := deployment.Annotations[clusterv1.AutoscalerMinSizeAnnotation]
	_, high := deployment.Annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	return low && high && deployment.DeletionTimestamp.IsZero()
}

func recordOf(deployment *clusterv1.MachineDeployment) groupRecord {
	record := groupRecord{}
	// One that cannot be read counts as none: its annotations become the user's.
	if json.Unmarshal([]byte(deployment.Annotations[AutoscalerAnnotation]), &record) != nil {
		return groupRecord{}
	}
	return record
}

// templatesOf identifies what Nodes are created from. A bootstrap template that is edited in place is another one.
func templatesOf(deployment *clusterv1.MachineDeployment, bootstrap *unstructured.Unstructured) string {
	text := deployment.Spec.Template.Spec.InfrastructureRef.Kind + "/" + deployment.Spec.Template.Spec.InfrastructureRef.Name
	if bootstrap != nil {
		text += fmt.Sprintf(" %s/%s@%d", bootstrap.GetKind(), bootstrap.GetName(), bootstrap.GetGeneration())
	}
	return text
}

// next is the record for the present templates and Nodes. Without a Node, what was learned from an earlier one stays.
func (g groupRecord) next(templates string, bootstrap *unstructured.Unstructured, nodes []*corev1.Node) groupRecord {
	if len(nodes) == 0 && g.Learned && g.Templates == templates {
		return g
	}
	next := groupRecord{Templates: templates, Learned: len(nodes) > 0, Values: map[string]string{}}
	taints := taintsOf(bootstrap)
	setUnlessEmpty(next.Values, podsAnnotation, podsOf(bootstrap))
	if len(nodes) > 0 {
		taints = lasting(taints, nodes[0])
		maps.Copy(next.Values, usable(nodes, g.Values))
	}
	setUnlessEmpty(next.Values, labelsAnnotation, formatLabels(labelsOf(bootstrap)))
	setUnlessEmpty(next.Values, taintsAnnotation, formatTaints(taints))
	return next
}

func setUnlessEmpty(values map[string]string, key, value string) {
	if value != "" {
		values[key] = value
	}
}

// replace returns the annotations with those of this record replaced by those of the next, but for those of the user.
func (g groupRecord) replace(annotations map[string]string, next groupRecord) map[string]string {
	result := maps.Clone(annotations)
	if result == nil {
		result = map[string]string{}
	}
	for key, value := range g.Values {
		if result[key] == value {
			delete(result, key)
		}
	}
	written := map[string]string{}
	for key, value := range next.Values {
		if _, set := result[key]; !set {
			result[key], written[key] = value, value
		}
	}
	next.Values = written
	delete(result, AutoscalerAnnotation)
	if len(written) > 0 {
		// Marshalling texts and maps of texts does not fail.
		text, _ := json.Marshal(next)
		result[AutoscalerAnnotation] = string(text)
	}
	return result
}

// nodesOf returns the Nodes of available Machines of the current set, that of the youngest first.
func (r *Reconciler) nodesOf(s *scope) []*corev1.Node {
	if r.Node == nil || s.current == nil {
		return nil
	}
	var nodes []*corev1.Node
	var youngest *clusterv1.Machine
	cluster := types.NamespacedName{Namespace: s.Object.Namespace, Name: s.Object.Spec.ClusterName}
	for _, machine := range s.machines[s.current.UID] {
		if !machines.Available(machine) || !machine.Status.NodeRef.IsDefined() {
			continue
		}
		node := r.Node(cluster, machine.Status.NodeRef.Name)
		if node == nil {
			continue
		}
		nodes = append(nodes, node)
		if youngest == nil || youngest.CreationTimestamp.Before(&machine.CreationTimestamp) {
			youngest = machine
			nodes[0], nodes[len(nodes)-1] = nodes[len(nodes)-1], nodes[0]
		}
	}
	return nodes
}

// bootstrapTemplate returns the bootstrap template of a deployment, nil if it has none, and whether that is known.
func (r *Reconciler) bootstrapTemplate(
	ctx context.Context, deployment *clusterv1.MachineDeployment,
) (template *unstructured.Unstructured, known bool) {
	ref := deployment.Spec.Template.Spec.Bootstrap.ConfigRef
	if !ref.IsDefined() {
		return nil, true
	}
	if r.kinds == nil {
		return nil, false
	}
	// Why it cannot be read is reported by the MachineSet, which cannot create Machines without it.
	found, err := r.kinds.Get(ctx, ref, deployment.Namespace, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(deployment)})
	return found.Unstructured, err == nil
}

// deploymentsOfTemplate returns the deployments that are node groups and refer to a bootstrap template.
func (r *Reconciler) deploymentsOfTemplate(ctx context.Context, template client.Object) []ctrl.Request {
	return r.deploymentsWhere(ctx, template.GetNamespace(), func(deployment *clusterv1.MachineDeployment) bool {
		ref := deployment.Spec.Template.Spec.Bootstrap.ConfigRef
		return isNodeGroup(deployment) && ref.Name == template.GetName() && ref.Kind == template.GetObjectKind().GroupVersionKind().Kind
	})
}
