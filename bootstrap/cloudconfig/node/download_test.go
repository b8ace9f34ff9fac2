package node

import (
	"net/http"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

const (
	bootstrapKubeconfig = "/var/lib/kubelet/kubeconfig-bootstrap"
	realKubeconfig      = "/var/lib/kubelet/kubeconfig-real"
	clientCertificate   = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	authorization       = credentialDirectory + "/authorization"
	appliedRevision     = downloaderDirectory + "/applied/revision"
	sentinel            = "/run/cluster-api/bootstrap-success.complete"
)

func inEachShell(t *testing.T, test func(t *testing.T, shell []string)) {
	for name, shell := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, shell)
		})
	}
}

func someFile(path, content string) bootstrapv1.File {
	return bootstrapv1.File{Path: path, Content: ptr.To(content)}
}

func TestAMachineJoins(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)

		m.Expect(m.poll()).To(BeFalse(), "the Secret is missing")
		m.Expect(m.output).To(ContainSubstring("awaits Secret " + testNamespace + "/" + testSecret))
		m.Expect(m.exists(bootstrapKubeconfig)).To(BeFalse())

		payload := api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{someFile("/etc/motd", "hello\n")}})
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.read(bootstrapKubeconfig)).To(And(
			ContainSubstring("token: "+testJoinToken), ContainSubstring("server: "+api.URL), ContainSubstring("certificate-authority: ca.crt")))
		m.Expect(m.read("/var/lib/kubelet/ca.crt")).To(Equal(string(api.authority)))
		m.Expect(m.read("/etc/motd")).To(Equal("hello\n"))
		m.Expect(m.read("/etc/systemd/system/kubelet.service")).To(ContainSubstring("--provider-id=aws:///a/i-1"))
		m.Expect(m.read(appliedRevision)).To(Equal(payload.Revision + "\n"))
		m.Expect(m.calls()).To(Equal([]string{"daemon-reload", "enable kubelet.service", "restart kubelet.service"}))
		info, err := os.Stat(m.root + bootstrapKubeconfig)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
		m.Expect(m.exists(sentinel)).To(BeFalse(), "it has not joined yet")
		m.Expect(m.read(downloaderDirectory + "/applied/poll-interval")).To(Equal("30\n"))

		// The certificate is there, but the Node is not linked to its Machine: only the token is accepted.
		m.write(clientCertificate, string(api.clientCertificate(t, nodeUser)))
		m.write(realKubeconfig, "client-certificate: pki/kubelet-client-current.pem\n")
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.exists(authorization)).To(BeTrue())
		m.Expect(m.exists(sentinel)).To(BeFalse())

		m.join(api)
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.exists(authorization)).To(BeFalse())
		m.Expect(m.exists(bootstrapKubeconfig)).To(BeFalse())
		m.Expect(m.exists(sentinel)).To(BeTrue())

		m.Expect(m.read("/curl.log")).NotTo(ContainSubstring(strings.Split(testDownloadToken, ".")[1]), "a token is on a command line")
	})
}

// Every fault leaves a machine as it is, before and after it has joined.
func TestFaultsChangeNothing(t *testing.T) {
	payloadOf := func(a *apiServer, change func([]byte) []byte) { a.data[PayloadKey] = change(a.data[PayloadKey]) }
	faults := map[string]struct {
		fault func(*testing.T, *apiServer)
		says  string
	}{
		"the Secret is missing":   {func(_ *testing.T, a *apiServer) { a.data = nil }, "awaits Secret"},
		"forbidden":               {func(_ *testing.T, a *apiServer) { a.answer = status(http.StatusForbidden) }, "awaits permission"},
		"unauthorized":            {func(_ *testing.T, a *apiServer) { a.answer = status(http.StatusUnauthorized) }, "awaits a valid credential"},
		"an error of the server":  {func(_ *testing.T, a *apiServer) { a.answer = status(http.StatusInternalServerError) }, "status 500"},
		"an empty answer":         {func(_ *testing.T, a *apiServer) { a.answer = func(http.ResponseWriter, []byte) {} }, "refuses"},
		"no data in the Secret":   {func(_ *testing.T, a *apiServer) { a.data = map[string][]byte{} }, "refuses"},
		"an answer that is cut":   {func(_ *testing.T, a *apiServer) { a.answer = cutOff }, "awaits the API server"},
		"compact JSON":            {func(_ *testing.T, a *apiServer) { a.answer = compactJSON(a) }, "refuses"},
		"a payload that is cut":   {func(_ *testing.T, a *apiServer) { payloadOf(a, func(p []byte) []byte { return p[:len(p)/2] }) }, "refuses"},
		"an empty payload":        {func(_ *testing.T, a *apiServer) { payloadOf(a, func([]byte) []byte { return nil }) }, "refuses"},
		"a payload of zeros":      {func(_ *testing.T, a *apiServer) { payloadOf(a, func([]byte) []byte { return make([]byte, 100) }) }, "refuses"},
		"a bit that has flipped":  {func(t *testing.T, a *apiServer) { payloadOf(a, flip(t)) }, "refuses"},
		"another checksum":        {func(_ *testing.T, a *apiServer) { a.data[RevisionKey] = []byte(strings.Repeat("0", 64)) }, "refuses"},
		"no checksum":             {func(_ *testing.T, a *apiServer) { delete(a.data, RevisionKey) }, "refuses"},
		"a server that hangs":     {func(_ *testing.T, a *apiServer) { a.hangs = true }, "awaits the API server"},
		"a connection that drops": {func(_ *testing.T, a *apiServer) { a.answer = drop }, "awaits the API server"},
	}
	for name, tc := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, joined := range []bool{false, true} {
				hangs := false
				api := newAPIServer(t)
				m := newMachine(t, []string{"sh"}, api)
				api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{someFile("/etc/a", "1")}})
				m.Expect(m.poll()).To(BeTrue())
				if joined {
					m.join(api)
					m.Expect(m.poll()).To(BeTrue())
				}
				m.calls()
				before := m.tree()
				api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{someFile("/etc/a", "2")}})
				api.set(func(a *apiServer) { tc.fault(t, a); hangs = a.hangs })
				if hangs {
					m.limitCurl(1)
				}
				m.Expect(m.poll()).To(BeFalse())
				m.limitCurl(curlLimit)
				m.Expect(m.output).To(ContainSubstring(tc.says))
				m.Expect(m.tree()).To(Equal(before))
				m.Expect(m.exists("/systemctl.log")).To(BeFalse())

				api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{someFile("/etc/a", "2")}})
				api.set(func(a *apiServer) { a.answer, a.hangs = nil, false })
				m.Expect(m.poll()).To(BeTrue(), "it continues when the fault is over")
				m.Expect(m.read("/etc/a")).To(Equal("2"))
			}
		})
	}
}

func status(code int) func(http.ResponseWriter, []byte) {
	return func(w http.ResponseWriter, _ []byte) { http.Error(w, "{}", code) }
}

func cutOff(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Length", "1000000")
	_, _ = w.Write(body[:len(body)/2])
	panic(http.ErrAbortHandler)
}

func compactJSON(a *apiServer) func(http.ResponseWriter, []byte) {
	body := a.body(false)
	return func(w http.ResponseWriter, _ []byte) { _, _ = w.Write(body) }
}

func flip(t *testing.T) func([]byte) []byte {
	return func(p []byte) []byte {
		return repack(t, p, func(archive []byte) []byte { archive[600] ^= 1; return archive })
	}
}

func drop(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) }

func TestAnAuthorityThatIsNotTrusted(t *testing.T) {
	api, other := newAPIServer(t), newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	m.write(credentialDirectory+"/server", other.URL+"\n")
	key := selfSigned(t)
	m.write(credentialDirectory+"/ca.crt", string(key))
	m.Expect(m.poll()).To(BeFalse())
	m.Expect(m.output).To(ContainSubstring("awaits the API server"))
	m.Expect(other.count()).To(BeZero(), "a token was sent to a server that is not trusted")
}

func TestAnotherEndpointIsAdoptedWhenItWorks(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	api.set(func(a *apiServer) { a.data[ServerKey] = []byte("https://127.0.0.1:1") })
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read(credentialDirectory + "/server")).To(Equal(api.URL + "\n"))
	m.Expect(m.output).To(ContainSubstring("stays with the API server"))

	elsewhere := strings.Replace(api.URL, "127.0.0.1", "localhost", 1)
	api.set(func(a *apiServer) { a.data[ServerKey] = []byte(elsewhere) })
	// httptest's certificate is for 127.0.0.1 and example.com.
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read(credentialDirectory + "/server")).To(Equal(api.URL + "\n"))

	api.set(func(a *apiServer) {
		a.data[ServerKey] = []byte(api.URL)
		a.data[AuthorityKey] = append(append([]byte{}, selfSigned(t)...), api.authority...)
	})
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read(credentialDirectory + "/ca.crt")).To(HaveSuffix(string(api.authority)))
	m.Expect(len(m.read(credentialDirectory + "/ca.crt"))).To(BeNumerically(">", len(api.authority)))
	m.Expect(m.read("/var/lib/kubelet/ca.crt")).To(Equal(m.read(credentialDirectory + "/ca.crt")))
}

// selfSigned is the certificate of some other authority.
func selfSigned(t *testing.T) []byte {
	pair := (&apiServer{}).clientCertificate(t, "another authority")
	return []byte(strings.SplitAfter(string(pair), "-----END CERTIFICATE-----\n")[0])
}

func TestBootstrapKubeconfig(t *testing.T) {
	const refers = "client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n"
	for name, tc := range map[string]struct {
		kubeconfig, certificate string
		written                 bool
	}{
		"neither":                           {"", "", true},
		"kubeconfig of its own":             {"token: x\n", "", false},
		"kubeconfig before the certificate": {refers, "", true},
		"both":                              {refers, "certificate", false},
		"certificate alone":                 {"", "certificate", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := newAPIServer(t)
			m := newMachine(t, []string{"sh"}, api)
			api.serve(t, bootstrapv1.CloudConfigSpec{})
			if tc.kubeconfig != "" {
				m.write(realKubeconfig, tc.kubeconfig)
			}
			if tc.certificate != "" {
				m.write(clientCertificate, string(api.clientCertificate(t, nodeUser)))
			}
			m.Expect(m.poll()).To(BeTrue())
			m.Expect(m.exists(bootstrapKubeconfig)).To(Equal(tc.written))
			if tc.certificate != "" {
				m.Expect(m.read(realKubeconfig)).To(ContainSubstring("kubelet-client-current.pem"), "a kubelet with a certificate needs a kubeconfig")
			}
		})
	}
}

func TestAJoinTokenIsReplaced(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	m.Expect(m.poll()).To(BeTrue())
	m.calls()
	api.set(func(a *apiServer) { a.data[JoinTokenKey] = []byte("second.0123456789abcdef") })
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read(bootstrapKubeconfig)).To(ContainSubstring("token: second."))
	m.Expect(m.calls()).To(ContainElement("restart kubelet.service --no-block"))

	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.exists("/systemctl.log")).To(BeFalse(), "once")

	api.set(func(a *apiServer) { a.data[JoinTokenKey] = []byte("not a token: $(reboot)") })
	m.remove(bootstrapKubeconfig)
	m.Expect(m.poll()).To(BeFalse())
	m.Expect(m.output).To(ContainSubstring("awaits a token to join with"))
}

func TestAReboot(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)
		api.serve(t, bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{
			{Name: "a.service", Content: "x"}, {Name: "b.service", Content: "x", Enable: ptr.To(false)},
			{Name: "c.service", Content: "x", Command: bootstrapv1.UnitCommandStop},
		}})
		m.Expect(m.poll()).To(BeTrue())
		m.join(api)
		m.Expect(m.poll()).To(BeTrue())
		m.calls()

		m.remove("/run")
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.exists(sentinel)).To(BeTrue(), "/run is empty after a boot")
		m.Expect(m.calls()).To(Equal([]string{"start a.service --no-block", "start kubelet.service --no-block"}))
	})
}

// curl explains an error of TLS in five lines, of which the first one says what is wrong.
func TestComplain_TLSError_SaysWhatCurlFound(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		m := newMachine(t, shell, newAPIServer(t))
		m.program("curl", `cat >&2 <<'END'
curl: (60) SSL: no alternative certificate subject name matches target host name 'api.example.com'
More details here: https://curl.se/docs/sslcerts.html

curl failed to verify the legitimacy of the server and therefore could not
establish a secure connection to it. To learn more about this situation and
how to fix it, please visit the web page mentioned above.
END
exit 60`)
		m.Expect(m.poll()).To(BeFalse())
		m.Expect(m.output).To(ContainSubstring("no alternative certificate subject name matches target host name 'api.example.com'"))
		m.Expect(m.output).NotTo(ContainSubstring("web page"))
	})
}
