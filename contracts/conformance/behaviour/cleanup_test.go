package behaviour_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/standin"
	"millwright.dev/contracts/version"
	"millwright.dev/test/testenv"
)

// left are the objects of a namespace of the kinds that runs make.
func left(t *testing.T, namespace string) []string {
	t.Helper()
	var names []string
	kinds := []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Secret"), clusterv1.GroupVersion.WithKind("Cluster"), clusterv1.GroupVersion.WithKind("Machine"),
	}
	for _, name := range []string{"StandInMachine", "StandInMachineTemplate", "StandInConfig", "StandInConfigTemplate"} {
		kinds = append(kinds, standin.VersionOf(version.V1Beta2).WithKind(name))
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := admin.List(context.WithoutCancel(t.Context()), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			names = append(names, kind.Kind+" "+list.Items[i].GetName())
		}
	}
	return names
}

// A run leaves what it found and nothing else, also when it is interrupted in the middle, and no machine is left either.
func TestRunsCleanUp(t *testing.T) {
	for _, k := range kinds {
		for name, interrupt := range map[string]bool{"finished": false, "interrupted": true} {
			t.Run(k.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := provide(t, k, version.V1Beta2, standin.Switches{})
				others := &corev1.Secret{}
				others.Namespace, others.Name = p.Namespace, "of-others"
				if err := admin.Create(t.Context(), others); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				options := options(k, p)
				options.Timeouts = []byte(longTimeouts) // What does not end in time is let go.
				if interrupt {
					options.Log = whenSaid{cancel}
				}
				config, deletions := rest.CopyConfig(env.Config), &deletions{}
				config.Wrap(func(next http.RoundTripper) http.RoundTripper {
					deletions.next = next
					return deletions
				})
				_, err := k.suite(ctx, config, options)
				if deletions.seen.Load() == 0 || deletions.blind.Load() > 0 {
					t.Errorf("%d of %d deletions name no version of the object", deletions.blind.Load(), deletions.seen.Load())
				}
				if interrupt != errors.Is(err, context.Canceled) {
					t.Errorf("interrupted is %t, and the run ended with %v", interrupt, err)
				}
				if names := left(t, p.Namespace); len(names) != 1 || names[0] != "Secret of-others" {
					t.Errorf("left are %v, and should be the Secret of others alone", names)
				}
				if machines, _ := p.Cloud.Machines(t.Context()); len(machines) > 0 {
					t.Errorf("machines are left: %v", machines)
				}
			})
		}
	}
}

// deletions counts those of providers' objects, and those that delete whatever is there: the API server would look for finalizers before it
// deletes, and one that is added between the two is lost.
type deletions struct {
	next        http.RoundTripper
	seen, blind atomic.Int64
}

func (d *deletions) RoundTrip(original *http.Request) (*http.Response, error) {
	if r := requestOf(original); r.on(http.MethodDelete, "standinmachines") || r.on(http.MethodDelete, "standinconfigs") {
		d.seen.Add(1)
		if !strings.Contains(r.body, `"resourceVersion"`) {
			d.blind.Add(1)
		}
	}
	return d.next.RoundTrip(original)
}

// The moment in which a run may not leave its object: its finalizers are off for a move, and it is not deleted yet. What has no finalizer
// goes at once when it is deleted, and its machine would stay for ever.
func TestRunsCleanUpInTheMidstOfAMove(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	p := provide(t, k, version.V1Beta2, standin.Switches{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &bareThen{next: next, then: cancel} })
	options := options(k, p)
	options.Timeouts = []byte(longTimeouts)
	options.Selection.Cases = regexp.MustCompile("^Move$")
	if _, err := k.suite(ctx, config, options); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v", err)
	}
	if names := left(t, p.Namespace); len(names) > 0 {
		t.Errorf("left are %v", names)
	}
	if machines, _ := p.Cloud.Machines(t.Context()); len(machines) > 0 {
		t.Errorf("machines are left: %v", machines)
	}
}

// bareThen does something once a patch has taken finalizers off.
type bareThen struct {
	next http.RoundTripper
	then func()
}

func (b *bareThen) RoundTrip(request *http.Request) (*http.Response, error) {
	bare := false
	if request.Method == http.MethodPatch && request.GetBody != nil {
		if body, err := request.GetBody(); err == nil {
			sent, _ := io.ReadAll(body)
			bare = strings.Contains(string(sent), `"finalizers":null`)
		}
	}
	response, err := b.next.RoundTrip(request)
	if bare && err == nil {
		b.then()
	}
	return response, err
}

// whenSaid cancels at the first line that is written.
type whenSaid struct{ cancel context.CancelFunc }

func (w whenSaid) Write(p []byte) (int, error) {
	w.cancel()
	return len(p), nil
}

// The suite does not work beside a core: both would write the same objects.
func TestRefusesToRunBesideACore(t *testing.T) {
	t.Parallel()
	k := kinds[0]
	namespace := testenv.Namespace(t, admin)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			list := &clusterv1.ClusterList{}
			if admin.List(ctx, list, client.InNamespace(namespace)) != nil {
				continue
			}
			for i := range list.Items {
				list.Items[i].Status.Phase = string(clusterv1.ClusterPhasePending)
				_ = admin.Status().Update(ctx, &list.Items[i])
			}
		}
	}()
	_, err := k.suite(t.Context(), env.Config, conformance.RunOptions{
		Selection: conformance.Selection{Profile: k.profile, Level: conformance.Extended}, Sample: []byte(k.sample), Namespace: namespace,
		Timeouts: []byte(strings.ReplaceAll(quick, "quiet: 500ms", "quiet: 10s")), Log: io.Discard,
	})
	if err == nil || !strings.Contains(err.Error(), "a core reconciles") {
		t.Errorf("the run ended with %v", err)
	}
	if names := left(t, namespace); len(names) > 0 {
		t.Errorf("left are %v", names)
	}
}
