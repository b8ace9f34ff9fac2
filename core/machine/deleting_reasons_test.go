package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/scopes"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/core/drain"
	"millwright.dev/core/external"
)

// reasonsOfTheSteps runs each step of the deletion where it must wait, without a connection to the target cluster, and
// returns the reasons that the condition Deleting comes to have: a reason that no step gives any more is missing.
func reasonsOfTheSteps(t *testing.T) sets.Set[string] {
	t.Helper()
	g := NewWithT(t)
	r := &Reconciler{drainer: drain.New(drain.Options{})}
	t.Cleanup(r.drainer.Close)
	seen := sets.New[string]()
	for name, test := range map[string]struct {
		step    outcome.Step[*scope]
		prepare func(*scope)
	}{
		"none":                {},
		"pre-drain hooks":     {step: r.preDrainHooks, prepare: annotated(clusterv1.PreDrainDeleteHookAnnotationPrefix + "/x")},
		"drain":               {step: r.drainNode},
		"volumes":             {step: r.detachVolumes},
		"pre-terminate hooks": {step: r.preTerminateHooks, prepare: annotated(clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/x")},
		"infrastructure":      {step: r.deleteInfrastructure, prepare: func(s *scope) { s.infrastructure.object, s.infrastructure.err = going("Infra"), nil }},
		"bootstrap":           {step: r.deleteBootstrap, prepare: func(s *scope) { s.bootstrap.object, s.bootstrap.err = going("Config"), nil }},
		"Node":                {step: r.deleteNode},
		"finalizers":          {step: r.release, prepare: func(s *scope) { s.Original.Finalizers = []string{"example.com/other"} }},
		"refused end":         {step: r.release, prepare: func(s *scope) { s.Original.Finalizers = []string{clusterv1.MachineFinalizer} }},
	} {
		s := leavingScope()
		if test.prepare != nil {
			test.prepare(s)
		}
		if test.step != nil {
			g.Expect(test.step(t.Context(), s).Finished()).To(BeFalse(), name+" must wait")
		}
		s.setStatus()
		reason := meta.FindStatusCondition(s.Object.Status.Conditions, clusterv1.MachineDeletingCondition).Reason
		g.Expect(seen.Has(reason)).To(BeFalse(), "%s: %s is the reason of another step", name, reason)
		seen.Insert(reason)
	}
	return seen
}

// refusing is an API server that refuses each patch.
type refusing struct{ client.Client }

func (refusing) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "machines"}, "m", errors.New("by policy"))
}

// leavingScope is that of a deleted Machine that had a Node, in a target cluster that cannot be reached.
func leavingScope() *scope {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", DeletionTimestamp: ptr.To(metav1.NewTime(noon))}}
	m.Spec.ClusterName, m.Spec.ProviderID = "c", "id"
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: "Infra", Name: "m"}
	m.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: "Config", Name: "m"}
	m.Status.NodeRef.Name = "n"
	m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	unread := errors.New("not read")
	writer := scopes.Writer[*clusterv1.Machine, clusterv1.MachineStatus]{Client: refusing{}, Status: statusOf}
	return &scope{
		Base: scopes.NewBase(m, noon, writer), cluster: &clusterv1.Cluster{}, options: Options{RemoteConditionsGracePeriod: time.Minute},
		bootstrap: reference{ref: m.Spec.Bootstrap.ConfigRef, err: unread}, infrastructure: reference{ref: m.Spec.InfrastructureRef, err: unread},
		disconnection: &shared.NotConnectedError{Message: "no route", LastSuccess: noon},
	}
}

func annotated(key string) func(*scope) {
	return func(s *scope) { s.Object.Annotations = map[string]string{key: ""} }
}

// going is an object that is being deleted and that its provider holds.
func going(kind string) external.Object {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	object.SetName("m")
	object.SetDeletionTimestamp(ptr.To(metav1.NewTime(noon)))
	object.SetFinalizers([]string{"example.com/provider"})
	return external.Object{Contract: version.V1Beta2, Unstructured: object}
}
