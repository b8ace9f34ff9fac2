package core

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/timeouts"
)

// testEnv is an API server that establishes each kind at once.
func testEnv(t *testing.T, functions interceptor.Funcs, objects ...client.Object) *Env {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	if functions.Create == nil {
		functions.Create = func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
				crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
					{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
				}
			}
			return c.Create(ctx, object, options...)
		}
	}
	waits := timeouts.Defaults()
	waits.React.Duration, waits.Poll.Duration = time.Minute, time.Millisecond
	return &Env{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(functions).Build(),
		Run:    "abc", Namespace: "ns", Timeouts: waits, Log: io.Discard, logging: &sync.Mutex{},
	}
}

// terminating is a kind of the run before, of which the API server removes objects still.
func terminating() *apiextensionsv1.CustomResourceDefinition {
	crd := CRDs()[0]
	crd.Finalizers = []string{"customresourcecleanup.apiextensions.k8s.io"}
	now := metav1.Now()
	crd.DeletionTimestamp = &now
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	return crd
}

// A kind that the run before has deleted is no kind that is there: it is waited for, installed, and removed at the end.
func TestInstallWaitsForKindsThatGo(t *testing.T) {
	reads := 0
	env := testEnv(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok && err == nil && crd.DeletionTimestamp != nil {
				if reads++; reads == 3 {
					gone := crd.DeepCopy()
					gone.Finalizers = nil
					if err := c.Update(ctx, gone); err != nil {
						return err
					}
				}
			}
			return err
		},
	}, terminating())
	if err := install(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: CRDs()[0].Name}, crd); err != nil || crd.DeletionTimestamp != nil {
		t.Errorf("the kind is not there: %v, deleted at %v", err, crd.DeletionTimestamp)
	}
}

// A kind that does not go is named, with what to do.
func TestInstallNamesAKindThatStays(t *testing.T) {
	env := testEnv(t, interceptor.Funcs{}, terminating())
	env.Timeouts.React.Duration = 50 * time.Millisecond
	err := install(t.Context(), env)
	if err == nil || !strings.Contains(err.Error(), CRDs()[0].Name) || !strings.Contains(err.Error(), "is being deleted") {
		t.Errorf("the error is %v", err)
	}
}

// What a run installs has its label, so that it is found when the run was killed; what was there before is not touched.
func TestInstallLabelsWhatItMakes(t *testing.T) {
	before := CRDs()[1]
	before.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
	}
	env := testEnv(t, interceptor.Funcs{}, before)
	if err := install(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	crds, roles := &apiextensionsv1.CustomResourceDefinitionList{}, &rbacv1.ClusterRoleList{}
	for _, list := range []client.ObjectList{crds, roles} {
		if err := env.Client.List(t.Context(), list, client.MatchingLabels{behaviour.LabelRun: env.Run}); err != nil {
			t.Fatal(err)
		}
	}
	if len(crds.Items) != len(CRDs())-1 || len(roles.Items) != 1 {
		t.Errorf("%d kinds and %d roles have the label", len(crds.Items), len(roles.Items))
	}
}

// An API server that fails for a moment does not end the clean-up; one that fails on is an error.
func TestCleanupAsksAgain(t *testing.T) {
	for name, test := range map[string]struct {
		failures int
		react    time.Duration
		want     bool
	}{"a moment": {5, time.Minute, true}, "for ever": {1 << 30, 50 * time.Millisecond, false}} {
		machine := &clusterv1.Machine{}
		machine.Namespace, machine.Name = "ns", "cc-abc-001"
		lists, deletions := test.failures, test.failures
		env := testEnv(t, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if lists--; lists >= 0 {
					return apierrors.NewInternalError(context.DeadlineExceeded)
				}
				return c.List(ctx, list, options...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if deletions--; deletions >= 0 {
					return apierrors.NewInternalError(context.DeadlineExceeded)
				}
				return c.Delete(ctx, object, options...)
			},
		}, machine)
		env.Timeouts.React.Duration = test.react
		err := (&cleanup{env: env}).run(t.Context())
		if (err == nil) != test.want {
			t.Errorf("%s: the clean-up ended with %v", name, err)
		}
		there := env.Client.Get(t.Context(), client.ObjectKeyFromObject(machine), machine)
		if apierrors.IsNotFound(there) != test.want {
			t.Errorf("%s: the Machine: %v", name, there)
		}
	}
}
