package external_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/test/coretest"
	"millwright.dev/test/testenv"
)

// passing is the kind that comes and goes; all readers are about its one object.
const (
	passing = "Passing"
	only    = "only"
	timeout = time.Minute
)

// reader is a controller that reads the object whenever it may have changed.
type reader struct {
	kinds  *external.Kinds
	silent *atomic.Bool
	mutex  sync.Mutex
	saw    string
}

func (r *reader) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if r.silent.Load() {
		return ctrl.Result{}, nil
	}
	found, err := r.kinds.Get(ctx, coretest.Ref(passing, only), metav1.NamespaceDefault, request)
	saw := ""
	switch {
	case err == nil:
		id, _, _ := unstructured.NestedString(found.Object, "spec", "providerID")
		saw = fmt.Sprintf("%s %s", found.GroupVersionKind().Version, id)
	case external.NotInstalled(err):
		saw = "no kind"
	case apierrors.IsNotFound(err):
		saw = "no object"
	default:
		saw = err.Error()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.saw = saw
	if external.Expected(err) {
		err = nil
	}
	return ctrl.Result{}, err
}

func (r *reader) last() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.saw
}

// passer is an API server on which the kind comes and goes, with a manager of two readers.
type passer struct {
	*WithT
	t       *testing.T
	client  client.Client
	readers []*reader
	// silent is true while the readers ask for nothing.
	silent atomic.Bool
}

func newPasser(t *testing.T) *passer {
	t.Helper()
	g := NewWithT(t)
	ctrl.SetLogger(klog.Background())
	env, err := testenv.Start(testenv.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(env.Stop()).To(Succeed()) })
	scheme := testenv.Scheme(apiextensionsv1.AddToScheme)
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	informers := external.NewInformers(&version.Resolver{Reader: mgr.GetClient()}, mgr.GetCache(), mgr.GetAPIReader(), mgr.GetRESTMapper())
	p := &passer{WithT: g, t: t, client: admin}
	for _, name := range []string{"one", "other"} {
		p.readers = append(p.readers, p.read(mgr, informers, name))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		g.Expect(testenv.Ended(<-ended)).To(Succeed())
	})
	return p
}

// read adds a reader to the manager.
func (p *passer) read(mgr ctrl.Manager, informers *external.Informers, name string) *reader {
	r := &reader{kinds: &external.Kinds{Informers: informers, Clock: clock.RealClock{}}, silent: &p.silent}
	the := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: only}}}
	})
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	built, err := ctrl.NewControllerManagedBy(mgr).Named(name).
		WatchesMetadata(crd, the, builder.WithPredicates(external.DefinitionChanged())).Build(r)
	p.Expect(err).NotTo(HaveOccurred())
	p.Expect(r.kinds.Bind(built, the)).To(Succeed())
	return r
}

// see waits until both readers have seen that.
func (p *passer) see(when, what string) {
	p.t.Helper()
	for _, r := range p.readers {
		p.Eventually(r.last).WithTimeout(timeout).WithPolling(20*time.Millisecond).Should(Equal(what), when)
	}
}

// crd is the definition of the kind that serves those versions, of which it stores the last and has that keep the contract.
func (p *passer) crd(serves ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := coretest.CRD(passing, version.V1Beta2)
	only := crd.Spec.Versions[0]
	crd.Spec.Versions = nil
	for i, name := range serves {
		only.Name, only.Storage = name, i == len(serves)-1
		crd.Spec.Versions = append(crd.Spec.Versions, only)
		crd.Labels[version.Label(version.V1Beta2)] = name
	}
	return crd
}

// install creates the kind and its object.
func (p *passer) install(serves, id string) {
	p.t.Helper()
	p.Eventually(func() error { return p.client.Create(p.t.Context(), p.crd(serves)) }).WithTimeout(timeout).Should(Succeed())
	p.Eventually(func() error { return p.client.Create(p.t.Context(), p.object(serves, id)) }).WithTimeout(timeout).Should(Succeed())
}

func (p *passer) object(serves, id string) *unstructured.Unstructured {
	object := coretest.Object(passing, metav1.NamespaceDefault, only)
	object.SetGroupVersionKind(object.GroupVersionKind().GroupKind().WithVersion(serves))
	object.Object["spec"] = map[string]any{"providerID": id}
	return object
}

// update replaces the definition and waits until it is in effect.
func (p *passer) update(change func(*apiextensionsv1.CustomResourceDefinition)) {
	p.t.Helper()
	p.Eventually(func() error {
		crd := p.crd()
		if err := p.client.Get(p.t.Context(), client.ObjectKeyFromObject(crd), crd); err != nil {
			return err
		}
		change(crd)
		return p.client.Update(p.t.Context(), crd)
	}).WithTimeout(timeout).Should(Succeed())
}

// serve has the definition serve other versions.
func (p *passer) serve(serves ...string) {
	p.t.Helper()
	wanted := p.crd(serves...)
	p.update(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Labels, crd.Spec.Versions = wanted.Labels, wanted.Spec.Versions
		for _, stored := range crd.Status.StoredVersions { // They may not disappear.
			if !strings.Contains(strings.Join(serves, " "), stored) {
				former := p.crd(stored).Spec.Versions[0]
				former.Served, former.Storage = false, false
				crd.Spec.Versions = append(crd.Spec.Versions, former)
			}
		}
	})
}

// serveNot has the definition not serve a version, and the others; the label stays.
func (p *passer) serveNot(former string, serves ...string) {
	p.t.Helper()
	p.update(func(crd *apiextensionsv1.CustomResourceDefinition) {
		for _, name := range append(serves, former) {
			index := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
			if index < 0 {
				another := crd.Spec.Versions[0]
				another.Name, another.Storage = name, false
				crd.Spec.Versions = append(crd.Spec.Versions, another)
				index = len(crd.Spec.Versions) - 1
			}
			crd.Spec.Versions[index].Served = name != former
		}
	})
}

// label has the label of the contract name a version.
func (p *passer) label(named string) {
	p.t.Helper()
	p.update(func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Labels[version.Label(version.V1Beta2)] = named
	})
}

// notServed is what is seen when the label names a version that is not served.
func notServed(named, serves string) string {
	ref := coretest.Ref(passing, only)
	return (&version.NotServedError{
		GroupKind: ref.GroupKind(), CRD: version.CRDName(ref.GroupKind()),
		Label: version.Label(version.V1Beta2), Version: named, Served: strings.Fields(serves),
	}).Error()
}

// change sets the provider ID of the object over a version that is served.
func (p *passer) change(serves, id string) {
	p.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"providerID":"`+id+`"}}`))
	p.Eventually(func() error { return p.client.Patch(p.t.Context(), p.object(serves, ""), patch) }).WithTimeout(timeout).Should(Succeed())
}

func (p *passer) uninstall() {
	p.t.Helper()
	p.Expect(p.client.Delete(p.t.Context(), p.crd("v1"))).To(Succeed())
}

// reflectors counts the goroutines that list and watch.
func reflectors() int {
	var dump bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&dump, 2)
	return strings.Count(dump.String(), "cache.(*Reflector).RunWithContext(")
}

// TestAKindThatComesAndGoes is uninstalled and installed again, also with another version, and changes which version is to be read, forth
// and back. Both controllers see it as it is after each, and of what is not there any more no watch is left that fails for ever.
func TestAKindThatComesAndGoes(t *testing.T) {
	p := newPasser(t)
	p.install("v1", "first")
	p.see("installed", "v1 first")
	with := reflectors()
	for _, step := range []struct {
		name  string
		does  func()
		see   string
		gone  int
		quiet bool
	}{
		{name: "uninstalled", does: p.uninstall, see: "no kind", gone: 1},
		{name: "installed again", does: func() { p.install("v1", "second") }, see: "v1 second"},
		{name: "replaced by one of its name", does: func() { p.uninstall(); p.install("v1", "third") }, see: "v1 third"},
		{name: "with a newer version", does: func() { p.serve("v1", "v2") }, see: "v2 third"},
		{name: "without the older version", does: func() { p.serve("v2"); p.change("v2", "fourth") }, see: "v2 fourth"},
		{name: "back to the older version", does: func() { p.serve("v1"); p.change("v1", "fifth") }, see: "v1 fifth"},
		{name: "uninstalled without a caller", does: p.uninstall, see: "v1 fifth", gone: 1, quiet: true},
		{name: "installed with the newer version alone", does: func() { p.install("v2", "sixth") }, see: "v2 sixth"},
		{name: "another version is not served any more", does: func() { p.serveNot("v1", "v2") }, see: "v2 sixth"},
		{name: "its version is not served any more", does: func() { p.serveNot("v2", "v1") }, see: notServed("v2", "v1"), gone: 1},
		{name: "no version is", does: func() { p.serveNot("v2"); p.serveNot("v1") }, see: notServed("v2", ""), gone: 1},
		{name: "served again", does: func() { p.serveNot("v1", "v2") }, see: "v2 sixth"},
		{name: "its label names another that is not", does: func() { p.label("v1") }, see: notServed("v1", "v2"), gone: 1},
		{name: "its label names one that there is not", does: func() { p.label("v3") }, see: notServed("v3", "v2"), gone: 1},
		{name: "its label is corrected", does: func() { p.label("v2") }, see: "v2 sixth"},
	} {
		p.silent.Store(step.quiet)
		step.does()
		p.see(step.name, step.see)
		p.Eventually(reflectors).WithTimeout(timeout).Should(Equal(with-step.gone), step.name)
	}

	// What a client that knows the version still asks for is answered as if there were no object.
	p.serveNot("v2", "v1")
	p.Eventually(func() error {
		return p.client.Get(t.Context(), client.ObjectKey{Name: only, Namespace: "default"}, p.object("v2", ""))
	}).
		WithTimeout(timeout).Should(SatisfyAll(Satisfy(apierrors.IsNotFound), Not(Satisfy(external.Gone))))
	p.Eventually(func() error {
		return p.client.Get(t.Context(), client.ObjectKey{Name: "no", Namespace: "default"}, p.object("v1", ""))
	}).
		WithTimeout(timeout).Should(Satisfy(external.Gone))
}
