package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	upstream "sigs.k8s.io/cluster-api/core/webhooks/admission"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"millwright.dev/core/admission"
)

// handlers are the webhooks of one core, without a server around them.
func handlers(t *testing.T, register func(ctrl.Manager) error) http.Handler {
	t.Helper()
	g := NewWithT(t)
	mgr, err := ctrl.NewManager(&rest.Config{Host: "https://127.0.0.1:1"}, ctrl.Options{
		Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(register(mgr)).To(Succeed())
	return mgr.GetWebhookServer().WebhookMux()
}

// anyVersion replaces a look at CRDs.
func anyVersion(_ context.Context, kind schema.GroupKind) (string, error) {
	return kind.Group + "/v1", nil
}

func registerUpstream(mgr ctrl.Manager) error {
	for _, setup := range []func(ctrl.Manager) error{
		(&upstream.Cluster{}).SetupWebhookWithManager, (&upstream.Machine{}).SetupWebhookWithManager,
		(&upstream.MachineSet{}).SetupWebhookWithManager, (&upstream.MachineDeployment{}).SetupWebhookWithManager,
		(&upstream.MachineHealthCheck{}).SetupWebhookWithManager, (&upstream.MachineDrainRule{}).SetupWebhookWithManager,
	} {
		if err := setup(mgr); err != nil {
			return err
		}
	}
	return nil
}

// answer is the result of a request: the object as it would be stored, or why it is refused.
type answer struct {
	allowed bool
	object  []byte
	message string
}

// admit sends an object through the webhooks as an API server does: first that of the defaults, then validation.
func admit(t *testing.T, to http.Handler, kind string, old, obj client.Object) answer {
	t.Helper()
	g := NewWithT(t)
	encode := func(o client.Object) []byte {
		o.GetObjectKind().SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
		content, err := json.Marshal(o)
		g.Expect(err).NotTo(HaveOccurred())
		return content
	}
	content := encode(obj)
	request := &admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create, Name: obj.GetName(), Namespace: obj.GetNamespace(),
		Kind: metav1.GroupVersionKind(clusterv1.GroupVersion.WithKind(kind)),
	}
	if old != nil {
		request.Operation, request.OldObject.Raw = admissionv1.Update, encode(old)
	}
	path := "-cluster-x-k8s-io-v1beta2-" + string(bytes.ToLower([]byte(kind)))
	if kind != "Cluster" && kind != "MachineDrainRule" {
		request.Object.Raw = content
		response := post(t, to, "/mutate"+path, request)
		if !response.Allowed {
			return answer{message: response.Result.Message}
		}
		if len(response.Patch) > 0 {
			patch, err := jsonpatch.DecodePatch(response.Patch)
			g.Expect(err).NotTo(HaveOccurred())
			content, err = patch.Apply(content)
			g.Expect(err).NotTo(HaveOccurred())
		}
	}
	request.Object.Raw = content
	response := post(t, to, "/validate"+path, request)
	if !response.Allowed {
		return answer{message: response.Result.Message}
	}
	return answer{allowed: true, object: content}
}

func post(t *testing.T, to http.Handler, path string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	g := NewWithT(t)
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  request,
	}
	content, err := json.Marshal(review)
	g.Expect(err).NotTo(HaveOccurred())
	r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(content))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	to.ServeHTTP(w, r)
	g.Expect(w.Code).To(Equal(http.StatusOK), "%s: %s", path, w.Body.String())
	g.Expect(json.Unmarshal(w.Body.Bytes(), &review)).To(Succeed())
	return review.Response
}

// seedsEnv says with how many seeds to compare, and firstEnv with which to begin.
const (
	seedsEnv = "ADMISSION_SEEDS"
	firstEnv = "ADMISSION_FIRST_SEED"
)

func number(t *testing.T, name string, fallback int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return n
}

// TestAnswersAreThoseOfClusterAPI sends generated objects, as creations and as updates, to the webhooks of this core
// and to those of Cluster API's. What is stored and what is refused must be equal, except for the
// differences that are listed and documented, each of which must have occurred.
func TestAnswersAreThoseOfClusterAPI(t *testing.T) {
	g := NewWithT(t)
	ours := handlers(t, func(mgr ctrl.Manager) error { return admission.Register(mgr, anyVersion) })
	theirs := handlers(t, registerUpstream)
	met, answers := map[string]int{}, map[string]int{}
	first := number(t, firstEnv, 1)
	for seed := first; seed < first+number(t, seedsEnv, 4000); seed++ {
		c := generate(rand.New(rand.NewPCG(uint64(seed), 0))) // Cases are to be replayed.
		a, b := admit(t, ours, c.kind, c.old, c.obj), admit(t, theirs, c.kind, c.old, c.obj)
		answers[fmt.Sprintf("%s: ours %t, theirs %t", c.kind, a.allowed, b.allowed)]++
		if a.allowed == b.allowed {
			// Where the old object would be refused here, an update may leave open what could not be filled in before.
			if a.allowed && (c.old == nil || admit(t, ours, c.kind, nil, c.old).allowed) {
				g.Expect(string(a.object)).To(MatchJSON(b.object), "seed %d: %v", seed, c.steps)
			}
			continue
		}
		if c.old != nil {
			c.oldRefused = !admit(t, theirs, c.kind, nil, c.old).allowed
		}
		because := c.explain(a, b)
		g.Expect(because).NotTo(BeEmpty(), "seed %d: %s, %v\nours:   %t %s\ntheirs: %t %s\nobject: %s\nold: %s",
			seed, c.kind, c.steps, a.allowed, a.message, b.allowed, b.message, text(c.obj), text(c.old))
		for _, name := range because {
			met[name]++
		}
	}
	for _, line := range slices.Sorted(maps.Keys(answers)) {
		t.Logf("%s: %d", line, answers[line])
	}
	for _, d := range differences {
		t.Logf("difference %q: %d", d.name, met[d.name])
		if os.Getenv(seedsEnv) == "" {
			g.Expect(met[d.name]).NotTo(BeZero(), "the difference %q did not occur: is it still one?", d.name)
		}
	}
}

func text(o client.Object) string {
	content, _ := json.Marshal(o)
	return string(content)
}

// difference is one in which this core means to differ; core/admission/README.md has them all.
type difference struct {
	name string
	// stricter refuses what Cluster API's core allows; else the other way round.
	stricter bool
	// steps of the generator that lead to it.
	steps []string
}

var differences = []difference{
	{"negative amounts are refused", true, []string{"negative replicas", "negative surge", "negative unavailable", "negative in flight", "negative unhealthy"}},
	{"negative limits of the autoscaler are refused", true, []string{"negative limit"}},
	{"references to what is no template are refused", true, []string{"infrastructure is no template", "bootstrap is no template"}},
	{"own annotations have values", true, []string{"bad force deletion", "bad priority", "bad rollback", "bad history", "bad deadline"}},
	{"a selector stays", true, []string{"selector", "expression", "no selector", "long name"}},
	{"a selector selects what its controller creates", true, []string{"selector of a set"}},
	{"names must differ in truth", true, []string{"random in a comment"}},
	{"{{.random}} needs no spaces", false, []string{"random without spaces"}},
	{"a Cluster may refer to nothing", false, []string{"no references", "no infrastructure", "no control plane"}},
	{"a MachineDrainRule may order what it waits for", false, []string{"wait in order"}},
	{"a topology may be given up", false, []string{"topology given up"}},
	{"old problems do not stop an update", false, nil},
}

// explain names the differences that a case shows.
func (c *generated) explain(ours, theirs answer) []string {
	var names []string
	for _, d := range differences {
		if d.stricter == ours.allowed {
			continue
		}
		if d.steps == nil {
			// Ratcheting: what Cluster API complains about was in the old object already.
			if c.old != nil && c.oldRefused {
				names = append(names, d.name)
			}
			continue
		}
		if slices.ContainsFunc(d.steps, func(step string) bool { return slices.Contains(c.steps, step) }) {
			names = append(names, d.name)
		}
	}
	return names
}
