package credentials_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
	tokens := credentials.Own(http.DefaultTransport)
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
	g.Expect(credentials.Own(http.DefaultTransport).Token(t.Context())).To(Equal("given-out"))
}

// TestASourceThatHangs keeps nothing longer than its own time, is asked once for all, and its token serves those who come later.
func TestASourceThatHangs(t *testing.T) {
	g := NewWithT(t)
	calls, free := 0, make(chan struct{})
	tokens := credentials.New(func(context.Context) (*oauth2.Token, error) {
		calls++ // One at a time.
		<-free
		return &oauth2.Token{AccessToken: fmt.Sprintf("t%d", calls), Expiry: time.Now().Add(time.Hour)}, nil
	}, time.Minute)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := tokens.Token(ctx)
		g.Expect(err).To(MatchError(ContainSubstring("within the time limit")))
	}
	close(free)
	g.Expect(tokens.Token(t.Context())).To(Equal("t1"))
	g.Expect(tokens.Token(t.Context())).To(Equal("t1"))
	g.Expect(calls).To(Equal(1))

	tokens.Refused("another")
	g.Expect(tokens.Token(t.Context())).To(Equal("t1"), "that was not the one")
	tokens.Refused("t1")
	g.Expect(tokens.Token(t.Context())).To(Equal("t2"))
	tokens.Refused("t2")
	g.Expect(tokens.Token(t.Context())).To(Equal("t2"), "refusals cost a request in ten seconds at most")
	g.Expect(tokens.Renew(t.Context())).To(Succeed())
	g.Expect(tokens.Token(t.Context())).To(Equal("t3"))
}

// TestATokenOutlivesAFailedRenewal: as long as it lasts.
func TestATokenOutlivesAFailedRenewal(t *testing.T) {
	g := NewWithT(t)
	var err error
	tokens := credentials.New(func(context.Context) (*oauth2.Token, error) {
		return &oauth2.Token{AccessToken: "t", Expiry: time.Now().Add(time.Hour)}, err
	}, time.Minute)
	g.Expect(tokens.Token(t.Context())).To(Equal("t"))
	err = errors.New("no route")
	g.Expect(tokens.Renew(t.Context())).To(MatchError("no route"))
	g.Expect(tokens.Token(t.Context())).To(Equal("t"))
	panicking := credentials.New(func(context.Context) (*oauth2.Token, error) { panic("no source") }, time.Minute)
	_, err = panicking.Token(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("no source")))
	empty := credentials.New(func(context.Context) (*oauth2.Token, error) { return &oauth2.Token{}, nil }, time.Minute)
	_, err = empty.Token(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("no access token")))
}
