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
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

const (
	testSecret        = "cloud-config-00112233445566778899"
	testDownloadToken = "abcdef.0123456789abcdef"
	testJoinToken     = "joiner.0123456789abcdef"
	nodeUser          = "system:node:machine-1"
)

// machine is a machine whose disk is a folder: the scripts are run for real, with systemctl and a few
// other programs replaced by ones that keep a record.
type machine struct {
	*WithT
	t      *testing.T
	shell  []string
	root   string
	bin    string
	output string
	env    []string
}

// shells are those that are here; a machine's is dash or busybox mostly.
func shells() map[string][]string {
	found := map[string][]string{}
	for name, command := range map[string][]string{"sh": {"sh"}, "dash": {"dash"}, "bash": {"bash", "--posix"}, "busybox": {"busybox", "sh"}} {
		if _, err := exec.LookPath(command[0]); err == nil {
			found[name] = command
		}
	}
	return found
}

// newMachine boots: it writes the files of the user data, as cloud-init would.
func newMachine(t *testing.T, shell []string, api *apiServer) *machine {
	t.Helper()
	m := &machine{WithT: NewWithT(t), t: t, shell: shell, root: t.TempDir(), bin: t.TempDir()}
	data, err := UserData(UserDataOptions{
		Server: api.URL, Authority: api.authority, SecretName: testSecret, DownloadToken: testDownloadToken,
	})
	m.Expect(err).NotTo(HaveOccurred())
	var config cloudConfig
	m.Expect(yaml.Unmarshal(data, &config)).To(Succeed())
	for _, f := range config.WriteFiles {
		var mode os.FileMode
		_, err := fmt.Sscanf(f.Permissions, "%o", &mode)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(os.MkdirAll(filepath.Dir(m.root+f.Path), 0o755)).To(Succeed())
		m.Expect(os.WriteFile(m.root+f.Path, []byte(f.Content), mode)).To(Succeed())
	}
	m.program("systemctl", `echo "$*" >> "$ROOT/systemctl.log"
! grep -qxF -e "$2" "$ROOT/failing" 2>/dev/null`)
	// The disk of a test never loses power.
	m.program("sync", ":")
	real, err := exec.LookPath("curl")
	m.Expect(err).NotTo(HaveOccurred())
	// The last of two equal options wins: a hanging server costs four seconds, not twenty.
	m.program("curl", `echo "$*" >> "$ROOT/curl.log"; exec `+real+` "$@" --max-time 4`)
	return m
}

// program puts a shell script into the machine's PATH.
func (m *machine) program(name, body string) {
	m.t.Helper()
	m.Expect(os.WriteFile(filepath.Join(m.bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755)).To(Succeed())
}

func (m *machine) command(args ...string) *exec.Cmd {
	words := append(append([]string{}, m.shell...), m.root+downloaderScript)
	words = append(words, args...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "ROOT="+m.root, "PATH="+m.bin+":"+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, m.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// poll runs the downloader once and says whether it has succeeded.
func (m *machine) poll() bool {
	m.t.Helper()
	out, err := m.command("once").CombinedOutput()
	m.output = string(out)
	m.t.Logf("output: %s", m.output)
	return err == nil
}

func (m *machine) read(path string) string {
	content, err := os.ReadFile(m.root + path)
	if err != nil {
		return "(" + filepath.Base(path) + " is missing)"
	}
	return string(content)
}

func (m *machine) write(path, content string) {
	m.t.Helper()
	m.Expect(os.MkdirAll(filepath.Dir(m.root+path), 0o755)).To(Succeed())
	m.Expect(os.WriteFile(m.root+path, []byte(content), 0o600)).To(Succeed())
}

func (m *machine) remove(path string) {
	m.t.Helper()
	m.Expect(os.RemoveAll(m.root + path)).To(Succeed())
}

func (m *machine) exists(path string) bool {
	_, err := os.Stat(m.root + path)
	return err == nil
}

// calls returns what systemctl was called with, and forgets it.
func (m *machine) calls() []string {
	content, _ := os.ReadFile(m.root + "/systemctl.log")
	_ = os.Remove(m.root + "/systemctl.log")
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// tree returns the files with mode and content, without what only records and the downloader's scratch.
func (m *machine) tree() map[string]string {
	out := map[string]string{}
	m.Expect(filepath.Walk(m.root, func(path string, info os.FileInfo, err error) error {
		rel := strings.TrimPrefix(path, m.root)
		if err != nil || info.IsDir() || strings.HasSuffix(rel, ".log") || strings.HasPrefix(rel, "/counter") ||
			strings.HasPrefix(rel, downloaderFolder+"/downloads/") {
			return err
		}
		out[rel] = fmt.Sprintf("%v %s", info.Mode(), m.read(rel))
		return nil
	})).To(Succeed())
	return out
}

// join gives the kubelet its certificate and has the API server accept it, and the token no longer.
func (m *machine) join(api *apiServer) {
	m.t.Helper()
	m.write("/var/lib/kubelet/pki/kubelet-client-current.pem", string(api.clientCertificate(m.t, nodeUser)))
	m.write("/var/lib/kubelet/kubeconfig-real", "client-certificate: pki/kubelet-client-current.pem\n")
	api.set(func(a *apiServer) { a.tokens = nil; a.users = []string{nodeUser} })
}

// apiServer answers for one Secret, as well or as badly as it is told.
type apiServer struct {
	*httptest.Server
	authority []byte

	mutex    sync.Mutex
	tokens   []string
	users    []string
	data     map[string][]byte
	answer   func(w http.ResponseWriter, body []byte)
	requests int
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
	a.mutex.Lock()
	a.requests++
	status, answer := a.statusFor(r), a.answer
	body := a.body(r.URL.Query().Get("pretty") != "")
	a.mutex.Unlock()
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

func (a *apiServer) statusFor(r *http.Request) int {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case r.URL.Path != "/api/v1/namespaces/kube-system/secrets/"+testSecret:
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
		"metadata": map[string]any{"name": testSecret, "managedFields": []any{map[string]any{"fieldsV1": map[string]any{"f:data": fields}}}},
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
