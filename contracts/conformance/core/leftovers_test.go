package core

import (
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/conformance/behaviour"
)

// The policies of a run that was killed go at the next run, those of one that may work beside it and of others stay.
func TestPoliciesOfKilledRunsGo(t *testing.T) {
	var objects []client.Object
	for name, of := range map[string]struct {
		age  time.Duration
		mark string
	}{"killed": {time.Hour, behaviour.LabelRun}, "beside": {time.Minute, behaviour.LabelRun}, "others": {time.Hour, "example.com/run"}} {
		meta := metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-of.age)), Labels: map[string]string{of.mark: "abc"},
		}
		objects = append(objects, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta})
	}
	env := testEnv(t, interceptor.Funcs{}, objects...)
	if err := leftovers(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		there := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object) == nil
		if want := object.GetName() != "killed"; there != want {
			t.Errorf("%T %s is there: %t", object, object.GetName(), there)
		}
	}
}
