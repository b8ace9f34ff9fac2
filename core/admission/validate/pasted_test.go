package validate

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// What `kubectl get -o yaml` shows of a MachineSet or a Machine, pasted where it cannot work, is rejected with the remedy.
func TestValidateMachineDeployment_CAPI12156_PastedFromASet_IsRejected(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*clusterv1.MachineDeployment)
		want   string
	}{
		"revision and labels": {change: func(d *clusterv1.MachineDeployment) {
			d.Annotations = map[string]string{clusterv1.RevisionAnnotation: "3"}
			d.Labels = map[string]string{createdBy: "u", clusterv1.MachineDeploymentNameLabel: "other"}
			d.Spec.Template.Labels[clusterv1.MachineDeploymentUniqueLabel] = "x-y"
		}},
		"owner": {change: func(d *clusterv1.MachineDeployment) {
			d.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "x", UID: "u", Controller: ptr.To(true)}}
		}, want: `metadata.ownerReferences: Invalid value: "MachineDeployment x": is the controller of a MachineSet`},
		"Cluster as owner": {change: func(d *clusterv1.MachineDeployment) {
			d.OwnerReferences = []metav1.OwnerReference{{Kind: "Cluster", Name: "c", UID: "u"}}
		}},
		"finalizer": {change: func(d *clusterv1.MachineDeployment) {
			d.Finalizers = []string{clusterv1.MachineDeploymentFinalizer, clusterv1.MachineSetFinalizer}
		}, want: `metadata.finalizers: Invalid value: "` + clusterv1.MachineSetFinalizer + `": is the finalizer of another kind`},
		"adoption": {change: func(d *clusterv1.MachineDeployment) { d.Annotations = map[string]string{adopt: "m=p"} },
			want: `metadata.annotations[machineset.millwright.dev/adopt]: Invalid value: "m=p": adopts instances only on a MachineSet`},
		"reserved names": {change: func(d *clusterv1.MachineDeployment) {
			d.Annotations = map[string]string{"machineset.millwright.dev/reserved-names": "x"}
		}, want: `metadata.annotations[machineset.millwright.dev/reserved-names]: Invalid value: "x": is written by the controllers`},
	} {
		t.Run(name, func(t *testing.T) { expect(t, MachineDeployment(aDeployment(test.change), nil), test.want) })
	}
}

// A template with labels or annotations of a single Machine is rejected: all Machines would count as preserved, or as adopted.
func TestValidateTemplate_PastedFromAMachine_IsRejected(t *testing.T) {
	const path = "spec.template.metadata."
	for name, test := range map[string]struct {
		change func(*clusterv1.MachineTemplateSpec)
		want   string
	}{
		"created by":  {change: label(createdBy, "u"), want: path + `labels[safety.millwright.dev/created-by]: Invalid value: "u": is set by the controllers`},
		"preserved":   {change: label(preserved, "d"), want: path + `labels[machine.millwright.dev/preserved]: Invalid value: "d": is set by the controllers`},
		"set name":    {change: label(clusterv1.MachineSetNameLabel, "other")},
		"adopted":     {change: annotation("adopted"), want: path + `annotations[machineset.millwright.dev/adopted]: Invalid value: "x": is written`},
		"provider ID": {change: annotation("provider-id"), want: path + `annotations[machineset.millwright.dev/provider-id]: Invalid value: "x": is written`},
		"propagated":  {change: annotation("propagated"), want: path + `annotations[machineset.millwright.dev/propagated]: Invalid value: "x": is written`},
		"adoption":    {change: annotation("adopt"), want: path + `annotations[machineset.millwright.dev/adopt]: Invalid value: "x": adopts instances only`},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, MachineSet(aSet(func(s *clusterv1.MachineSet) { test.change(&s.Spec.Template) }), nil), test.want)
			expect(t, MachineDeployment(aDeployment(func(d *clusterv1.MachineDeployment) { test.change(&d.Spec.Template) }), nil), test.want)
		})
	}
}

func label(key, value string) func(*clusterv1.MachineTemplateSpec) {
	return func(from *clusterv1.MachineTemplateSpec) { from.Labels[key] = value }
}

func annotation(name string) func(*clusterv1.MachineTemplateSpec) {
	return func(from *clusterv1.MachineTemplateSpec) { from.Annotations = map[string]string{ofSets + name: "x"} }
}

// A MachineSet that was exported is created again as it is; only the finalizer of another kind is rejected.
func TestValidateMachineSet_CAPI12156_Exported_IsAccepted(t *testing.T) {
	exported := func(s *clusterv1.MachineSet) {
		s.Finalizers = []string{clusterv1.MachineSetFinalizer}
		s.Annotations = map[string]string{adopt: "m=p", ofSets + "reserved-names": "bcdfg:0"}
		s.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", Name: "d", UID: "u", Controller: ptr.To(true)}}
		s.Labels = map[string]string{createdBy: "u", clusterv1.MachineDeploymentUniqueLabel: "x-y"}
		s.Spec.Selector.MatchLabels[clusterv1.MachineDeploymentUniqueLabel] = "x-y"
		s.Spec.Template.Labels[clusterv1.MachineDeploymentUniqueLabel] = "x-y"
	}
	expect(t, MachineSet(aSet(exported), nil), "")
	expect(t, MachineSet(aSet(func(s *clusterv1.MachineSet) { s.Finalizers = []string{clusterv1.MachineDeploymentFinalizer} }), nil),
		`metadata.finalizers: Invalid value: "`+clusterv1.MachineDeploymentFinalizer+`": is the finalizer of another kind`)
}
