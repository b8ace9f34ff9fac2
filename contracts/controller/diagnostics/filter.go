package diagnostics

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/pkg/errors"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// allowedFor and refusedFor are how long an answer of the API server holds.
	allowedFor = time.Minute
	refusedFor = 10 * time.Second
	// reviewTimeout bounds the two questions about one request.
	reviewTimeout = 10 * time.Second
	// maxAnswers bounds the memory that strangers can make the cache take.
	maxAnswers = 1000
)

// Filter lets those requests pass whose bearer token belongs to a user who may use the path with the method.
// Both is asked from the API server that the configuration reaches, by TokenReview and SubjectAccessReview.
func Filter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, errors.Wrap(err, "creating a client for token reviews")
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, errors.Wrap(err, "creating a client for access reviews")
	}
	a := &access{
		tokens: authentication.TokenReviews(), rights: authorization.SubjectAccessReviews(),
		answers: cache.NewLRUExpireCache(maxAnswers),
	}
	return a.filter, nil
}

// access decides about requests and remembers what it has decided.
type access struct {
	tokens authenticationclient.TokenReviewInterface
	rights authorizationclient.SubjectAccessReviewInterface
	// answers are HTTP statuses, 200 for those who may, by a hash of token, method and path: no token is kept.
	answers *cache.LRUExpireCache
}

func (a *access) filter(log logr.Logger, handler http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		status, err := a.decide(request)
		if err != nil {
			log.Error(err, "Deciding about a request for diagnostics")
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		handler.ServeHTTP(w, request)
	}), nil
}

// decide returns the status for a request. Failures to ask are refusals, and are not remembered.
func (a *access) decide(request *http.Request) (int, error) {
	token, found := bearer(request)
	if !found {
		return http.StatusUnauthorized, nil
	}
	verb := strings.ToLower(request.Method)
	question := sha256.Sum256([]byte(verb + "\x00" + request.URL.Path + "\x00" + token))
	if status, known := a.answers.Get(question); known {
		return status.(int), nil
	}
	ctx, cancel := context.WithTimeout(request.Context(), reviewTimeout)
	defer cancel()
	status, err := a.review(ctx, token, verb, request.URL.Path)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	holds := refusedFor
	if status == http.StatusOK {
		holds = allowedFor
	}
	a.answers.Add(question, status, holds)
	return status, nil
}

// review asks the API server who has the token, and whether they may.
func (a *access) review(ctx context.Context, token, verb, path string) (int, error) {
	who, err := a.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return 0, errors.Wrap(err, "reviewing a token")
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may, err := a.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, errors.Wrapf(err, "reviewing the access of %s", user.Username)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

// bearer is the token of the Authorization header.
func bearer(request *http.Request) (string, bool) {
	scheme, token, found := strings.Cut(request.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	return token, found && strings.EqualFold(scheme, "Bearer") && token != ""
}
