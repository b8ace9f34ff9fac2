package machinehealth_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// remedies installs a kind of requests that only this test has, with its template, and returns how a MachineHealthCheck asks for it.
func (w *world) remedies(kind string) (*apiextensionsv1.CustomResourceDefinition, func(*clusterv1.MachineHealthCheck)) {
	w.t.Helper()
	definition := coretest.CRD(kind, version.V1Beta2)
	for _, crd := range []*apiextensionsv1.CustomResourceDefinition{definition.DeepCopy(),
		coretest.CRD(kind+clusterv1.TemplateSuffix, version.V1Beta2)} {
		w.Create(crd)
		w.established(crd.Name)
	}
	w.Eventually(func(g Gomega) {
		err := direct.Create(w.Ctx, w.Template(kind+clusterv1.TemplateSuffix, "remedy"))
		g.Expect(client.IgnoreAlreadyExists(err)).To(Succeed())
	})
	return definition, func(c *clusterv1.MachineHealthCheck) {
		externally(c)
		c.Spec.Remediation.TemplateRef.Kind = kind + clusterv1.TemplateSuffix
	}
}

func (w *world) established(name string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(direct.Get(w.Ctx, client.ObjectKey{Name: name}, crd)).To(Succeed())
		g.Expect(crd.Status.Conditions).
			To(ContainElement(And(HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue))))
	})
}

// made waits for the request for a Machine that is none of those before, and returns its UID.
func (w *world) made(kind, name string, before ...types.UID) types.UID {
	w.t.Helper()
	found := coretest.Object(kind, w.Namespace, name)
	w.Eventually(func(g Gomega) {
		g.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(found), found)).To(Succeed())
		for _, uid := range before {
			g.Expect(found.GetUID()).NotTo(Equal(uid))
		}
	})
	return found.GetUID()
}

// message is that of RemediationAllowed.
func (w *world) message(check string) string {
	c := meta.FindStatusCondition(w.current(check).Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	if c == nil {
		return ""
	}
	return c.Message
}

// TestAWatchedRequestThatIsDeleted is created again by that event, also after its kind was gone for a while. Nothing is polled.
func TestAWatchedRequestThatIsDeleted(t *testing.T) {
	w := newWorld(t)
	w.recheck = 24 * time.Hour
	const kind = "WatchedRemedy"
	definition, asked := w.remedies(kind)
	w.machine("a", "False")
	w.start()
	w.check("workers", asked)
	w.becomes("a", external, waiting)
	uid := w.made(kind, "a")
	remove := func() {
		w.G.Expect(direct.Delete(w.Ctx, coretest.Object(kind, w.Namespace, "a"))).To(Succeed())
		uid = w.made(kind, "a", uid)
	}
	remove()
	remove()
	w.becomes("a", external, waiting)
	w.G.Expect(w.message("workers")).To(BeEmpty())
	w.atRest()

	w.G.Expect(direct.Delete(w.Ctx, definition)).To(Succeed())
	w.Eventually(func(g Gomega) {
		err := direct.Get(w.Ctx, client.ObjectKeyFromObject(definition), &apiextensionsv1.CustomResourceDefinition{})
		g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})
	w.becomes("a", external, "False/"+clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason)
	w.Create(definition.DeepCopy())
	w.becomes("a", external, waiting)
	uid = w.made(kind, "a", uid)
	remove()
}

// TestRequestsThatCannotBeWatched are looked for once in a while, and the MachineHealthCheck reports it; once they can, it does not.
func TestRequestsThatCannotBeWatched(t *testing.T) {
	w := newWorld(t)
	w.recheck = 200 * time.Millisecond
	const kind = "HiddenRemedy"
	definition, asked := w.remedies(kind)
	var open atomic.Bool
	w.transport = func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			path := strings.Split(request.URL.Path, "/")
			if path[len(path)-1] != definition.Spec.Names.Plural || request.Method != http.MethodGet || open.Load() {
				return next.RoundTrip(request)
			}
			return &http.Response{StatusCode: http.StatusForbidden, Status: "403 Forbidden", Header: http.Header{}, Request: request,
				Body: io.NopCloser(strings.NewReader(""))}, nil
		})
	}
	w.machine("a", "False")
	w.start()
	w.check("workers", asked)
	w.becomes("a", external, waiting)
	uid := w.made(kind, "a")
	for range 2 {
		w.G.Expect(direct.Delete(w.Ctx, coretest.Object(kind, w.Namespace, "a"))).To(Succeed())
		uid = w.made(kind, "a", uid)
	}
	w.G.Eventually(func() string { return w.message("workers") }).WithTimeout(workers.Timeout).
		Should(And(HavePrefix(kind+" cannot be watched"), ContainSubstring("200ms"), ContainSubstring("may list and watch them")))
	w.counts("workers", 1, 0, 0, "True/RemediationAllowed")
	open.Store(true)
	w.G.Eventually(func() string { return w.message("workers") }).WithTimeout(2 * workers.Timeout).Should(BeEmpty())
	w.atRest()
	w.G.Expect(direct.Delete(w.Ctx, coretest.Object(kind, w.Namespace, "a"))).To(Succeed())
	w.made(kind, "a", uid)
}

// roundTrip is a function that sends requests.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
