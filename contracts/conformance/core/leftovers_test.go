package core

import (
	"context"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/conformance/behaviour"
)

// leaseOf is the Lease of another run, renewed so long ago.
func leaseOf(run string, ago time.Duration) *coordinationv1.Lease {
	lease := (&Env{Run: run, Namespace: "conformance-" + run}).lease()
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-ago)))
	return lease
}

// installedBy are the kinds and the role as a run has installed them; somebody else has them without the label.
func installedBy(run string) []client.Object {
	objects := installation()
	for _, object := range objects {
		if run != "" {
			(&Env{Run: run}).own(object)
		}
	}
	return objects
}

func there(t *testing.T, env *Env, object client.Object) bool {
	t.Helper()
	err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// The policies of a run that was killed go at the next run, those of one that works beside it and of others stay.
func TestPoliciesOfKilledRunsGo(t *testing.T) {
	objects := []client.Object{leaseOf("beside", time.Minute)}
	for name, mark := range map[string]string{"killed": behaviour.LabelRun, "beside": behaviour.LabelRun, "others": "example.com/run"} {
		meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{mark: name}}
		objects = append(objects, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta},
			&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta})
	}
	env := testEnv(t, interceptor.Funcs{}, objects...)
	if err := leftovers(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if want, is := object.GetName() != "killed", there(t, env, object); is != want {
			t.Errorf("%T %s is there: %t", object, object.GetName(), is)
		}
	}
}

// The kinds of a run that was killed go at the next run, unless another one is alive or somebody else has installed them.
func TestKindsOfKilledRunsGo(t *testing.T) {
	for name, test := range map[string]struct {
		by     string
		leases []client.Object
		want   bool
	}{
		"killed, with its Lease":     {"killed", []client.Object{leaseOf("killed", time.Hour)}, false},
		"killed, and no Lease":       {"killed", nil, false},
		"killed, another is alive":   {"killed", []client.Object{leaseOf("killed", time.Hour), leaseOf("beside", time.Minute)}, true},
		"of one that is alive":       {"beside", []client.Object{leaseOf("beside", time.Minute)}, true},
		"installed by somebody else": {"", []client.Object{leaseOf("killed", time.Hour)}, true},
	} {
		installed := installedBy(test.by)
		env := testEnv(t, interceptor.Funcs{}, append(installed, test.leases...)...)
		if err := leftovers(t.Context(), env); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, object := range installed {
			if is := there(t, env, object); is != test.want {
				t.Errorf("%s: %s is there: %t", name, object.GetName(), is)
			}
		}
	}
}

// A run that begins while another removes kinds has them: what it has marked as used is not removed, or is gone before, and made again.
func TestKindsThatANewRunTakesStay(t *testing.T) {
	installed := installedBy("killed")
	var begins *Env
	env := testEnv(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if _, is := list.(*coordinationv1.LeaseList); is && begins != nil {
				other := begins
				begins = nil
				if err := c.Create(ctx, other.lease()); err != nil {
					return err
				}
				for _, object := range installation() {
					if err := ensure(ctx, other, object); err != nil {
						return err
					}
				}
			}
			return err
		},
	}, installed...)
	other := *env
	other.Run, other.Namespace = "new", "conformance-new"
	begins = &other
	if err := kinds(t.Context(), env); !apierrors.IsConflict(errorOf(err)) {
		t.Errorf("the kinds that another run has taken: %v", err)
	}
	for _, object := range installed {
		if !there(t, env, object) || object.GetLabels()[behaviour.LabelRun] != "new" {
			t.Errorf("%s is gone, or has label %q", object.GetName(), object.GetLabels()[behaviour.LabelRun])
		}
	}
}

// errorOf is the first of errors that are joined.
func errorOf(err error) error {
	if several, is := err.(interface{ Unwrap() []error }); is {
		return several.Unwrap()[0]
	}
	return err
}

// Objects of a killed run go, with their finalizers, and its namespace; those of a run that is alive stay.
func TestObjectsOfKilledRunsGo(t *testing.T) {
	objects := []client.Object{leaseOf("killed", time.Hour), leaseOf("beside", time.Minute)}
	for _, run := range []string{"killed", "beside"} {
		machine := &clusterv1.Machine{}
		machine.Namespace, machine.Name, machine.Finalizers = "conformance-"+run, "cc-"+run+"-001", []string{"example.com/held"}
		objects = append(objects, machine, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "conformance-" + run}})
	}
	env := testEnv(t, interceptor.Funcs{}, objects...)
	env.Timeouts.React.Duration = 100 * time.Millisecond
	if err := leftovers(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	for i, object := range objects {
		if want, is := i == 1 || i > 3, there(t, env, object); is != want {
			t.Errorf("%T %s is there: %t", object, object.GetName(), is)
		}
	}
}

// A Lease that only has the label of a run, whoever wrote it, has nothing deleted: neither what a run has that is alive nor a namespace.
func TestAForgedLeaseHasNothingDeleted(t *testing.T) {
	forged := leaseOf("beside", time.Hour)
	forged.Namespace = "elsewhere"
	other := leaseOf("killed", time.Hour)
	other.Name = "of-somebody"
	objects := []client.Object{forged, other, leaseOf("beside", time.Minute)}
	for _, namespace := range []string{"elsewhere", "conformance-killed"} {
		machine := &clusterv1.Machine{}
		machine.Namespace, machine.Name = namespace, "cc-beside-001"
		objects = append(objects, machine, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	env := testEnv(t, interceptor.Funcs{}, objects...)
	env.Timeouts.React.Duration = 100 * time.Millisecond
	if err := leftovers(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if !there(t, env, object) {
			t.Errorf("%T %s/%s is gone", object, object.GetNamespace(), object.GetName())
		}
	}
}

// A user without rights in the namespace of a killed run can make a run, and the Lease stays for the next one.
func TestLeftoversThatAreRefusedHoldNoRun(t *testing.T) {
	lease := leaseOf("killed", time.Hour)
	env := testEnv(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked := (&client.ListOptions{}).ApplyOptions(options)
			if asked.Namespace == lease.Namespace {
				return apierrors.NewForbidden(clusterv1.GroupVersion.WithResource("machines").GroupResource(), "", nil)
			}
			return c.List(ctx, list, options...)
		},
	}, lease)
	env.Timeouts.React.Duration = 10 * time.Millisecond
	if err := leftovers(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	if !there(t, env, lease) {
		t.Error("the Lease is gone, and with it what tells the next run")
	}
}

// Of two runs, the last that ends removes the kinds.
func TestTheLastRunRemovesTheKinds(t *testing.T) {
	env := testEnv(t, interceptor.Funcs{}, leaseOf("beside", time.Minute))
	end := func(env *Env) {
		t.Helper()
		if err := (&cleanup{env: env, stop: func() {}}).run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := install(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	end(env)
	if !there(t, env, CRDs()[0]) {
		t.Fatal("the kinds are gone, while another run uses them")
	}
	beside := *env
	beside.Run, beside.Namespace = "beside", "conformance-beside"
	end(&beside)
	for _, object := range installation() {
		if there(t, env, object) {
			t.Errorf("%s stays", object.GetName())
		}
	}
}
