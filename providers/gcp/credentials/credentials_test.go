package credentials_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	"golang.org/x/oauth2"

	"millwright.dev/providers/gcp/credentials"
	"millwright.dev/test/clouds/gcp/compute"
)

// TestAServiceAccount: its key leads to a token, by which Compute Engine lets the provider in.
func TestAServiceAccount(t *testing.T) {
	g := NewWithT(t)
	cloud := compute.New(compute.Options{Tokens: []string{"given-out"}})
	defer cloud.Close()
	server := httptest.NewServer(cloud)
	defer server.Close()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "key.json"))
	tokens := credentials.Default(http.DefaultTransport)
	_, err := tokens.Token(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("application default credentials cannot be read")))

	key, err := rsa.GenerateKey(rand.Reader, 2048)
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	content, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "provider@p.iam.gserviceaccount.com", "private_key_id": "k", "token_uri": server.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(os.Getenv("GOOGLE_APPLICATION_CREDENTIALS"), content, 0o600)).To(Succeed())
	g.Expect(tokens.Token(t.Context())).To(Equal("given-out"), "credentials that come later are found")

	// Where the Deployment has the Secret.
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	directory := filepath.Join(home, ".config/gcloud")
	g.Expect(os.MkdirAll(directory, 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(directory, "application_default_credentials.json"), content, 0o600)).To(Succeed())
	g.Expect(credentials.Default(http.DefaultTransport).Token(t.Context())).To(Equal("given-out"))
}

// source answers once it is let go.
type source struct {
	mu    sync.Mutex
	calls int
	free  chan struct{}
	err   error
}

func (s *source) Token() (*oauth2.Token, error) {
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	<-s.free
	return &oauth2.Token{AccessToken: "t", Expiry: time.Now().Add(time.Hour)}, s.err
}

// TestASourceThatHangs keeps nobody longer than its own time, is asked once for all, and its token serves those who come later.
func TestASourceThatHangs(t *testing.T) {
	g := NewWithT(t)
	s := &source{free: make(chan struct{})}
	tokens := credentials.New(func() (oauth2.TokenSource, error) { return s, nil })
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := tokens.Token(ctx)
		g.Expect(err).To(MatchError(ContainSubstring("within the time limit")))
	}
	close(s.free)
	g.Expect(tokens.Token(t.Context())).To(Equal("t"))
	g.Expect(tokens.Token(t.Context())).To(Equal("t"))
	g.Expect(s.calls).To(Equal(1))
}

// TestRefusedTokens: the message has the status and the code, and not the body; the next call tries again.
func TestRefusedTokens(t *testing.T) {
	g := NewWithT(t)
	s := &source{free: make(chan struct{}), err: &oauth2.RetrieveError{
		Response: &http.Response{Status: "400 Bad Request"}, Body: []byte("secret"), ErrorCode: "invalid_grant", ErrorDescription: "Account not found"}}
	close(s.free)
	tokens := credentials.New(func() (oauth2.TokenSource, error) { return s, nil })
	_, err := tokens.Token(t.Context())
	g.Expect(err).To(MatchError("Google Cloud has refused an access token: 400 Bad Request invalid_grant Account not found"))
	s.err = errors.New("Post https://token?secret: no route")
	_, err = tokens.Token(t.Context())
	g.Expect(err).To(MatchError(And(ContainSubstring("check the network"), Not(ContainSubstring("secret")))))
	s.err = nil
	g.Expect(tokens.Token(t.Context())).To(Equal("t"))
	panicking := credentials.New(func() (oauth2.TokenSource, error) { panic("no source") })
	_, err = panicking.Token(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("no source")))
}
