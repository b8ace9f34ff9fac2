package curl_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/vm/curl"
)

// program runs a curl in a directory and returns the exit code and the standard output.
type program func(t *testing.T, directory string, arguments ...string) (int, string)

// ours is the stand-in; it runs in this process, so relative paths are made absolute by the tests.
func ours(t *testing.T, _ string, arguments ...string) (int, string) {
	var out, problem bytes.Buffer
	code := curl.Main(t.Context(), arguments, strings.NewReader("stdin"), &out, &problem)
	if code != 0 {
		t.Log(problem.String())
	}
	return code, out.String()
}

// real is the host's curl, with which the same table must hold.
func real(t *testing.T, directory string, arguments ...string) (int, string) {
	cmd := exec.Command("curl", append([]string{"-q"}, arguments...)...)
	cmd.Dir, cmd.Stdin = directory, strings.NewReader("stdin")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(out)
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return 0, string(out)
}

// site is a TLS server that asks for client certificates, with the files of a client.
type site struct {
	directory, url, plain, closed string
}

func newSite(t *testing.T) *site {
	g := NewWithT(t)
	s := &site{directory: t.TempDir()}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	mux.HandleFunc("/missing", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such thing", http.StatusNotFound) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Reply", "yes")
		_, _ = io.WriteString(w, r.Method+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Content-Type")+" "+string(body))
	})
	mux.HandleFunc("/who", func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) > 0 {
			_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
		}
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	plain := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		plain.Close()
	})
	s.url, s.plain = server.URL, plain.URL
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	s.closed = "http://" + listener.Addr().String()
	g.Expect(listener.Close()).To(Succeed())

	s.write(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	s.client(t)
	s.write(t, "header", []byte("Authorization: Bearer from-file\n"))
	s.write(t, "body", []byte("line one\nline two\n"))
	s.write(t, "garbage", []byte("garbage"))
	s.write(
		t,
		"config",
		[]byte(
			"# options\nurl = \""+s.url+"/echo\"\nheader = \"Authorization: Bearer \\\"quoted\\\"\"\ncacert = "+s.path("ca.pem")+"\nsilent\n-f\n",
		),
	)
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.directory, name) }

func (s *site) write(t *testing.T, name string, content []byte) {
	NewWithT(t).Expect(os.WriteFile(s.path(name), content, 0o600)).To(Succeed())
}

// client creates a self-signed certificate.
func (s *site) client(t *testing.T) {
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:one"}, NotAfter: time.Now().Add(time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())
	raw, err := x509.MarshalECPrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	private := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
	s.write(t, "client.crt", chain)
	s.write(t, "client.key", private)
	s.write(t, "client.pem", append(chain, private...))
}

func TestCurl(t *testing.T) {
	programs := map[string]program{"ours": ours}
	if _, err := exec.LookPath("curl"); err == nil {
		programs["real"] = real
	}
	for name, run := range programs {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			for _, test := range s.table() {
				t.Run(test.name, func(t *testing.T) {
					g := NewWithT(t)
					code, out := run(t, s.directory, test.arguments...)
					g.Expect(code).To(Equal(test.code))
					g.Expect(out).To(test.out)
					if test.file != "" {
						raw, err := os.ReadFile(s.path("out"))
						g.Expect(err).NotTo(HaveOccurred())
						g.Expect(string(raw)).To(ContainSubstring(test.file))
					}
				})
			}
		})
	}
}

type row struct {
	name      string
	arguments []string
	code      int
	out       OmegaMatcher
	file      string
}

func (s *site) table() []row {
	ca, out := s.path("ca.pem"), s.path("out")
	none := BeEmpty()
	return []row{
		{"plain", []string{"-s", s.plain + "/hello"}, 0, Equal("hello"), ""},
		{"letters together", []string{"-fsS", "--cacert", ca, s.url + "/hello"}, 0, Equal("hello"), ""},
		{"untrusted", []string{"-s", s.url + "/hello"}, 60, none, ""},
		{"other authority", []string{"-s", "--cacert", s.path("client.crt"), s.url + "/hello"}, 60, none, ""},
		{"no authority", []string{"-s", "--cacert", s.path("absent"), s.url + "/hello"}, 77, none, ""},
		{"client certificate", []string{"-s", "--cacert", ca, "--cert", s.path("client.crt"), "--key", s.path("client.key"), s.url + "/who"}, 0,
			Equal("system:node:one"), ""},
		{"certificate and key in one", []string{"-s", "--cacert", ca, "--cert", s.path("client.pem"), s.url + "/who"}, 0, Equal("system:node:one"), ""},
		{"bad certificate", []string{"-s", "--cacert", ca, "--cert", s.path("garbage"), s.url + "/who"}, 58, none, ""},
		{"error status", []string{"-s", s.plain + "/missing"}, 0, Equal("no such thing\n"), ""},
		{"error status with -f", []string{"-sf", s.plain + "/missing"}, 22, none, ""},
		{"status wanted", []string{"-s", "-o", out, "-w", "%{http_code}", s.plain + "/missing"}, 0, Equal("404"), "no such thing"},
		{"status of no answer", []string{"-s", "-w", `%{http_code}\n`, s.closed}, 7, Equal("000\n"), ""},
		{"header", []string{"-s", "-H", "Authorization: Bearer x", s.plain + "/echo"}, 0, Equal("GET Bearer x  "), ""},
		{"header from a file", []string{"-s", "-H", "@" + s.path("header"), s.plain + "/echo"}, 0, Equal("GET Bearer from-file  "), ""},
		{"data", []string{"-s", "--data", "a=b", s.plain + "/echo"}, 0, Equal("POST  application/x-www-form-urlencoded a=b"), ""},
		{"data of a file", []string{"-s", "-d", "@" + s.path("body"), "-X", "PUT", s.plain + "/echo"}, 0,
			Equal("PUT  application/x-www-form-urlencoded line oneline two"), ""},
		{"binary data from standard input", []string{"-s", "--data-binary", "@-", "-H", "Content-Type: text/x", s.plain + "/echo"}, 0,
			Equal("POST  text/x stdin"), ""},
		{"configuration file", []string{"--config", s.path("config")}, 0, Equal(`GET Bearer "quoted"  `), ""},
		{"headers to a file", []string{"-s", "-D", out, s.plain + "/echo"}, 0, HavePrefix("GET"), "X-Reply: yes\r\n"},
		{"attached value", []string{"-s", "-XDELETE", s.plain + "/echo"}, 0, HavePrefix("DELETE"), ""},
		{"too slow", []string{"-s", "--max-time", "0.2", s.plain + "/slow"}, 28, none, ""},
		{"nothing listens", []string{"-s", "--connect-timeout", "2", s.closed}, 7, none, ""},
		{"unknown host", []string{"-s", "http://nowhere.invalid/"}, 6, none, ""},
		{"unknown option", []string{"--nonsense", s.plain}, 2, none, ""},
		{"no URL", []string{"-s"}, 2, none, ""},
		{"no directory for the output", []string{"-s", "-o", s.path("absent/out"), s.plain + "/hello"}, 23, none, ""},
	}
}
