package machine

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestInstanceGone: only the removal of the object that the Machine has had means that the instance is gone.
func TestInstanceGone(t *testing.T) {
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "infra.example.com", Kind: "Thing", Name: "m"}
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "m")
	provisioned := func(m *clusterv1.Machine) { m.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	reported := func(m *clusterv1.Machine) {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineInfrastructureReadyCondition, Reason: "Failing"}}
	}
	for name, test := range map[string]struct {
		reference reference
		machine   func(*clusterv1.Machine)
		want      bool
	}{
		"gone after it was provisioned":  {reference{ref: ref, err: notFound}, provisioned, true},
		"gone after it was seen":         {reference{ref: ref, err: notFound}, reported, true},
		"never seen":                     {reference{ref: ref, err: notFound}, func(*clusterv1.Machine) {}, false},
		"no reference":                   {reference{err: notFound}, provisioned, false},
		"its kind is not installed":      {reference{ref: ref, err: &meta.NoKindMatchError{}}, provisioned, false},
		"the API server does not answer": {reference{ref: ref, err: errors.New("timeout")}, provisioned, false},
		"there": {func() reference {
			r := reference{ref: ref}
			r.object.Unstructured = &unstructured.Unstructured{}
			return r
		}(), provisioned, false},
		"not read": {reference{ref: ref}, provisioned, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{Base: base{Original: &clusterv1.Machine{}, Object: &clusterv1.Machine{}}, infrastructure: test.reference}
			test.machine(s.Original)
			s.Object.Status = *s.Original.Status.DeepCopy()
			NewWithT(t).Expect(s.instanceGone()).To(Equal(test.want))
		})
	}
}

// TestForcedOffVolumes: a forced drain is about pods; volumes have their own timeout, unless a user says otherwise.
func TestForcedOffVolumes(t *testing.T) {
	for name, test := range map[string]struct {
		forced forcing
		flag   bool
		want   bool
	}{
		"not forced":              {},
		"not forced, flag":        {flag: true},
		"by time or Node":         {forced: forcing{cause: "time"}},
		"by time or Node, flag":   {forced: forcing{cause: "time"}, flag: true, want: true},
		"by a person":             {forced: forcing{cause: "annotation", atOnce: true}, want: true},
		"by a person and by time": {forced: forcing{cause: "time"}.or(forcing{cause: "annotation", atOnce: true}), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{options: Options{ForceDetach: test.flag}}
			s.drained.forced = test.forced
			NewWithT(t).Expect(s.forcedOffVolumes()).To(Equal(test.want))
		})
	}
}
