package diagnostics

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/test/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, testenv.Options{}, func(e *testenv.Env) (func() error, error) {
		env = e
		return nil, nil
	}))
}

// served is a filter before a page that answers 200.
func served(g *WithT, config *rest.Config) http.Handler {
	client, err := rest.HTTPClientFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	filter, err := Filter(config, client)
	g.Expect(err).NotTo(HaveOccurred())
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	g.Expect(err).NotTo(HaveOccurred())
	return handler
}

func status(handler http.Handler, method, path, authorization string) int {
	request := httptest.NewRequest(method, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Code
}

// token makes a ServiceAccount and a token of it.
func token(ctx context.Context, g *WithT, clientset kubernetes.Interface, name string) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := clientset.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	issued, err := clientset.CoreV1().
		ServiceAccounts("default").
		CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return issued.Status.Token
}

// Tokens and rights are those of a real API server.
func TestFilter(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	clientset, err := kubernetes.NewForConfig(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	reader, stranger := token(ctx, g, clientset, "reader"), token(ctx, g, clientset, "stranger")
	_, err = clientset.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = clientset.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "metrics"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	// A binding counts once the API server has seen it; each look is by a filter that remembers nothing.
	g.Eventually(func() int {
		return status(served(g, env.Config), http.MethodGet, "/metrics", "Bearer "+reader)
	}, 20*time.Second).Should(Equal(http.StatusOK))
	handler := served(g, env.Config)
	for name, test := range map[string]struct {
		method, path, authorization string
		want                        int
	}{
		"with the right":             {http.MethodGet, "/metrics", "Bearer " + reader, http.StatusOK},
		"whatever the scheme's case": {http.MethodGet, "/metrics", "bearer " + reader, http.StatusOK},
		"with it, but to read":       {http.MethodPut, "/metrics", "Bearer " + reader, http.StatusForbidden},
		"with it, but elsewhere":     {http.MethodGet, "/debug/pprof/heap", "Bearer " + reader, http.StatusForbidden},
		"without the right":          {http.MethodGet, "/metrics", "Bearer " + stranger, http.StatusForbidden},
		"with an invented token":     {http.MethodGet, "/metrics", "Bearer invented", http.StatusUnauthorized},
		"without a token":            {http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		"with an empty token":        {http.MethodGet, "/metrics", "Bearer ", http.StatusUnauthorized},
		"with a password":            {http.MethodGet, "/metrics", "Basic dXNlcjpwYXNz", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(status(handler, test.method, test.path, test.authorization)).To(Equal(test.want))
		})
	}
}

// Who cannot ask does not let in.
func TestFilterWithoutAnAPIServer(t *testing.T) {
	g := NewWithT(t)
	handler := served(g, &rest.Config{Host: "http://127.0.0.1:1"})
	g.Expect(status(handler, http.MethodGet, "/metrics", "Bearer any")).To(Equal(http.StatusInternalServerError))
}

// counting answers that no user has the token, and counts how often it is asked.
type counting struct {
	authenticationclient.TokenReviewInterface
	asked int
}

func (c *counting) Create(
	_ context.Context,
	review *authenticationv1.TokenReview,
	_ metav1.CreateOptions,
) (*authenticationv1.TokenReview, error) {
	c.asked++
	return review, nil
}

func TestAnswersAreRememberedForAWhile(t *testing.T) {
	g := NewWithT(t)
	tokens, now := &counting{}, clocktesting.NewFakePassiveClock(time.Now())
	a := &access{tokens: tokens, answers: cache.NewLRUExpireCacheWithClock(maxAnswers, now)}
	ask := func(path string) {
		request := httptest.NewRequest(http.MethodGet, path, nil)
		request.Header.Set("Authorization", "Bearer token")
		code, err := a.decide(request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(code).To(Equal(http.StatusUnauthorized))
	}
	ask("/metrics")
	ask("/metrics")
	g.Expect(tokens.asked).To(Equal(1))
	ask("/debug/pprof/")
	g.Expect(tokens.asked).To(Equal(2), "an answer is about one path")
	now.SetTime(now.Now().Add(refusedFor + 1))
	ask("/metrics")
	g.Expect(tokens.asked).To(Equal(3), "a refusal does not hold for ever")
}
