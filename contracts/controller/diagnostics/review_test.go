package diagnostics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// reviewer knows one user, who may do all, and counts how often it is asked about rights.
type reviewer struct {
	authenticationclient.TokenReviewInterface
	asked authorizationv1.SubjectAccessReviewSpec
	times int
	err   error
}

func (r *reviewer) Create(
	_ context.Context, review *authenticationv1.TokenReview, _ metav1.CreateOptions,
) (*authenticationv1.TokenReview, error) {
	review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
		Username: "u", UID: "1", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}},
	}}
	return review, nil
}

// rights is the part of a reviewer that is asked about them.
type rights struct {
	authorizationclient.SubjectAccessReviewInterface
	*reviewer
}

// Create implements SubjectAccessReviewInterface.
func (r rights) Create(
	_ context.Context, review *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SubjectAccessReview, error) {
	r.asked = review.Spec
	r.times++
	review.Status.Allowed = true
	return review, r.err
}

// TestWhoIsAskedAbout: all that the API server says about who has a token counts for what that user may do. The page is served to who may,
// for a minute without another question, and a question that fails is asked again.
func TestWhoIsAskedAbout(t *testing.T) {
	g := NewWithT(t)
	known, now := &reviewer{}, clocktesting.NewFakePassiveClock(time.Now())
	a := &access{tokens: known, rights: rights{reviewer: known}, answers: cache.NewLRUExpireCacheWithClock(maxAnswers, now)}
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	page, err := a.filter(logr.Discard(), served)
	g.Expect(err).NotTo(HaveOccurred())
	get := func(path string) int { return status(page, http.MethodGet, path, "Bearer token") }

	known.err = errors.New("no answer")
	g.Expect(get("/metrics")).To(Equal(http.StatusInternalServerError))
	known.err = nil
	g.Expect(get("/metrics")).To(Equal(http.StatusAccepted))
	g.Expect(known.times).To(Equal(2))
	g.Expect(known.asked).To(Equal(authorizationv1.SubjectAccessReviewSpec{
		User: "u", UID: "1", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"scopes": {"a", "b"}},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
	}))
	g.Expect(get("/debug/pprof/")).To(Equal(http.StatusAccepted))
	now.SetTime(now.Now().Add(allowedFor))
	g.Expect(get("/metrics")).To(Equal(http.StatusAccepted))
	g.Expect(known.times).To(Equal(3), "one answer replaces no other")
	now.SetTime(now.Now().Add(1))
	g.Expect(get("/metrics")).To(Equal(http.StatusAccepted))
	g.Expect(known.times).To(Equal(4))
}

// TestBearer: a token is taken from no other scheme.
func TestBearer(t *testing.T) {
	for header, want := range map[string]string{
		"Bearer t": "t", "bearer  t ": "t", "Basic t": "", "Bearer": "", "Bearer  ": "", "t": "", "": "",
	} {
		g, request := NewWithT(t), httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Authorization", header)
		token, found := bearer(request)
		g.Expect(found).To(Equal(want != ""), header)
		if found {
			g.Expect(token).To(Equal(want), header)
		}
	}
}
