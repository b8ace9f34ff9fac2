package node

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// apiServer answers for one Secret, as well or as badly as the test wants.
type apiServer struct {
	*httptest.Server
	authority []byte

	mutex  sync.Mutex
	tokens []string
	users  []string
	data   map[string][]byte
	// annotations are the Secret's.
	annotations map[string]string
	answer      func(w http.ResponseWriter, body []byte)
	// hangs reports that there is no answer at all.
	hangs    bool
	requests int
	// reports are the bodies of what was written to the machine's Lease.
	reports       []string
	refuseReports bool
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	api := &apiServer{tokens: []string{testDownloadToken}}
	api.Server = httptest.NewUnstartedServer(api)
	api.Server.Config.ErrorLog = log.New(io.Discard, "", 0)
	api.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	api.StartTLS()
	t.Cleanup(func() { api.CloseClientConnections(); api.Close() })
	api.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	return api
}

func (a *apiServer) set(change func(*apiServer)) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	change(a)
}

func (a *apiServer) count() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.requests
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if a.report(w, r) {
		return
	}
	a.mutex.Lock()
	a.requests++
	status, answer, hangs := a.statusFor(r), a.answer, a.hangs
	body := a.body(r.URL.Query().Get("pretty") != "")
	a.mutex.Unlock()
	if hangs {
		<-r.Context().Done() // Until the client gives up.
		return
	}
	if status != http.StatusOK {
		http.Error(w, "{}", status)
		return
	}
	if answer != nil {
		answer(w, body)
		return
	}
	_, _ = w.Write(body)
}

// report takes what is written to the machine's Lease.
func (a *apiServer) report(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPatch || r.URL.Path != "/apis/coordination.k8s.io/v1/namespaces/"+testNamespace+"/leases/"+testSecret {
		return false
	}
	body, _ := io.ReadAll(r.Body)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.refuseReports {
		http.Error(w, "{}", http.StatusForbidden)
		return true
	}
	if contains(a.tokens, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) &&
		r.Header.Get("Content-Type") == "application/merge-patch+json" {
		a.reports = append(a.reports, string(body))
	}
	return true
}

func (a *apiServer) statusFor(r *http.Request) int {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.URL.Path != "/api/v1/namespaces/"+testNamespace+"/secrets/"+testSecret:
		return http.StatusNotFound
	case len(r.TLS.PeerCertificates) > 0:
		if !contains(a.users, r.TLS.PeerCertificates[0].Subject.CommonName) {
			return http.StatusForbidden
		}
	case !contains(a.tokens, token):
		return http.StatusUnauthorized
	}
	if a.data == nil {
		return http.StatusNotFound
	}
	return http.StatusOK
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// body is the Secret as the API server prints it: with a field of everything that could be mixed up.
func (a *apiServer) body(pretty bool) []byte {
	fields := map[string]any{}
	for key := range a.data {
		fields["f:"+key] = map[string]any{}
	}
	secret := map[string]any{
		"kind": "Secret", "apiVersion": "v1",
		"metadata": map[string]any{"name": testSecret, "annotations": a.annotations, "managedFields": []any{map[string]any{"fieldsV1": map[string]any{"f:data": fields}}}},
		"data":     a.data,
		"type":     "Opaque",
	}
	if pretty {
		body, _ := json.MarshalIndent(secret, "", "  ")
		return append(body, '\n')
	}
	body, _ := json.Marshal(secret)
	return body
}

func (a *apiServer) clientCertificate(t *testing.T, user string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: user, Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: rawKey})...)
}

// serve has the API server hand out a bundle.
func (a *apiServer) serve(t *testing.T, spec bootstrapv1.CloudConfigSpec) *Payload {
	t.Helper()
	managed, err := Files(&spec, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := NewBundle(&spec, managed, KubeletOptions{NodeName: "machine-1", ProviderID: "aws:///a/i-1", Spec: spec.Kubelet})
	if err != nil {
		t.Fatal(err)
	}
	payload, err := bundle.Pack()
	if err != nil {
		t.Fatal(err)
	}
	a.set(func(a *apiServer) {
		a.data = map[string][]byte{
			PayloadKey: payload.Data, RevisionKey: []byte(payload.Revision), JoinTokenKey: []byte(testJoinToken),
			ServerKey: []byte(a.URL), AuthorityKey: a.authority, PollIntervalKey: []byte("30"),
		}
	})
	return payload
}

// repack compresses an archive again.
func repack(t *testing.T, data []byte, change func([]byte) []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	archive, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write(change(archive))
	_ = writer.Close()
	return out.Bytes()
}
