package remote

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestSecretsOfKubeconfigs: what is wrong with the Secret of a Cluster is named, and nothing of its content.
func TestSecretsOfKubeconfigs(t *testing.T) {
	const usable = `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"https://h"}}],"users":[{"name":"x","user":{"token":"t"}}]}`
	secret := func(data, cluster string) *corev1.Secret {
		made := &corev1.Secret{Data: map[string][]byte{"value": []byte(data)}}
		made.Namespace, made.Name = "ns", "c-kubeconfig"
		made.Labels = map[string]string{"cluster.x-k8s.io/cluster-name": cluster}
		return made
	}
	hangs := errors.New("no answer")
	for name, test := range map[string]struct {
		secret          *corev1.Secret
		err             error
		reason, wantErr string
		cause           error
	}{
		"usable":                     {secret: secret(usable, "c")},
		"none":                       {reason: KubeconfigMissing, wantErr: "Secret c-kubeconfig does not exist"},
		"it cannot be read":          {err: hangs, reason: KubeconfigMissing, wantErr: "Secret c-kubeconfig could not be read", cause: hangs},
		"another Cluster's":          {secret: secret(usable, "d"), reason: KubeconfigInvalid, wantErr: `it is labelled as one of Cluster "d"`},
		"without the key":            {secret: secret("", "c"), reason: KubeconfigInvalid, wantErr: `has no key "value"`},
		"with what is no kubeconfig": {secret: secret("hidden", "c"), reason: KubeconfigInvalid, wantErr: "Secret c-kubeconfig: "},
	} {
		t.Run(name, func(t *testing.T) {
			g, builder := NewWithT(t), fake.NewClientBuilder()
			if test.secret != nil {
				builder = builder.WithObjects(test.secret)
			}
			reader := interceptor.NewClient(builder.Build(), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if test.err != nil {
						return test.err
					}
					return c.Get(ctx, key, o, options...)
				},
			})
			options := Options{Secrets: reader, RequestTimeout: time.Minute}
			from, err := options.kubeconfigOf(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c"})
			if test.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(from.config.Host).To(Equal("https://h"))
				return
			}
			var not *NotConnectedError
			g.Expect(errors.As(err, &not)).To(BeTrue())
			g.Expect(not.Reason).To(Equal(test.reason))
			g.Expect(not.Message).To(And(ContainSubstring(test.wantErr), Not(ContainSubstring("hidden"))))
			if test.cause == nil {
				g.Expect(not.cause).To(BeNil())
			} else {
				g.Expect(not.cause).To(MatchError(test.cause))
			}
		})
	}
}

// TestSuspicions: of a connection that is in use, and has not ended, each unanswered request that its caller has not cancelled is one.
func TestSuspicions(t *testing.T) {
	open, over := make(chan struct{}), make(chan struct{})
	close(over)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		handedOut, ended chan struct{}
		ctx              context.Context
		err              error
		want             int
	}{
		"no answer":                {over, open, t.Context(), errors.New("reset"), 1},
		"an answer":                {over, open, t.Context(), nil, 0},
		"who has asked gave up":    {over, open, canceled, errors.New("reset"), 0},
		"it is not handed out yet": {open, open, t.Context(), errors.New("reset"), 0},
		"it has ended":             {over, over, t.Context(), errors.New("reset"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := &Connection{runner: &runner{suspected: make(chan struct{}, 1)}, handedOut: test.handedOut, ended: test.ended}
			transport := noticing(c.suspect)(answer(func(*http.Request) (*http.Response, error) { return nil, test.err }))
			request, err := http.NewRequestWithContext(test.ctx, http.MethodGet, "https://h", nil)
			g.Expect(err).NotTo(HaveOccurred())
			for range 2 {
				_, _ = transport.RoundTrip(request)
			}
			g.Expect(c.runner.suspected).To(HaveLen(test.want))
		})
	}
	(&Connection{handedOut: over, ended: open}).suspect() // one that no runner keeps
}

// TestBoundsOfOddAnswers: either spelling of a watch has its window, a redirect is bounded like an error, and a connection that is upgraded
// has no bound.
func TestBoundsOfOddAnswers(t *testing.T) {
	g := NewWithT(t)
	body := http.NoBody
	bound := func(code int, query string) *http.Response {
		transport := bounded(maxAnswer, time.Minute)(answer(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Body: body}, nil
		}))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://h/api/v1/nodes?"+query, nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := transport.RoundTrip(request)
		g.Expect(err).NotTo(HaveOccurred())
		return response
	}
	for query, window := range map[string]time.Duration{"watch=true": time.Minute, "watch=1": time.Minute, "watch=0": 0, "": 0} {
		g.Expect(bound(http.StatusOK, query).Body.(*boundedBody).window).To(Equal(window), query)
	}
	g.Expect(bound(http.StatusMultipleChoices, "").Body.(*boundedBody).limit).To(BeEquivalentTo(maxRefusal))
	g.Expect(bound(http.StatusSwitchingProtocols, "").Body).To(BeIdenticalTo(body))
}

// TestAlarmOfAKubeconfig: without an interval it is never due.
func TestAlarmOfAKubeconfig(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakeClock(time.Unix(1000, 0))
	g.Expect((&runner{options: Options{Clock: now}}).nextLook().at).To(BeZero())
	g.Expect((&runner{options: Options{Clock: now, KubeconfigInterval: time.Minute}}).nextLook().at).To(Equal(now.Now().Add(time.Minute)))
}

// TestUnansweredWithoutAConnection: then Get says since when.
func TestUnansweredWithoutAConnection(t *testing.T) {
	g := NewWithT(t)
	r := &runner{unanswered: "503", asked: time.Unix(1000, 0)}
	since, why := r.unansweredSince()
	g.Expect(since).To(BeZero())
	g.Expect(why).To(BeEmpty())
	r.connection = &Connection{}
	since, why = r.unansweredSince()
	g.Expect(since).To(Equal(time.Unix(1000, 0)))
	g.Expect(why).To(Equal("503"))
}
