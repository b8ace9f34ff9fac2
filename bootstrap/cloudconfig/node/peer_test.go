package node

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// Whatever the annotations of the Secret, the machine follows what is in its data alone.
func TestAnAnnotationIsNotTheData(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	payload := api.serve(t, bootstrapv1.CloudConfigSpec{})
	api.set(func(a *apiServer) {
		a.annotations = map[string]string{"revision": "eHh4", "payload": "eHh4", "server": "aHR0cHM6Ly9ldmls", "data": "x"}
	})
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read(appliedRevision)).To(Equal(payload.Revision + "\n"))
}

func TestAFullDiskIsNotTheAPIServersFault(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	m.program("curl", `echo "curl: (23) Failure writing output to destination" >&2; printf 200; exit 23`)
	m.Expect(m.poll()).To(BeFalse())
	m.Expect(m.output).To(And(ContainSubstring("cannot write to"), Not(ContainSubstring("awaits the API server"))))
}

func TestAnAnswerThatIsTooLarge(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)
		api.serve(t, bootstrapv1.CloudConfigSpec{})
		api.set(func(a *apiServer) {
			a.answer = func(w http.ResponseWriter, _ []byte) {
				for range 32 {
					if _, err := w.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			}
		})
		m.Expect(m.poll()).To(BeFalse())
		m.Expect(m.output).To(ContainSubstring("too large"))
		m.Expect(m.exists(downloaderDirectory+"/downloads/answer")).To(BeFalse(), "it stays on the disk")
	})
}

// sleeps runs the loop to its end, with sleeps that take no time, and returns how long they would have taken.
func (m *machine) sleeps() []int {
	m.t.Helper()
	m.program("sleep", `echo "$1" >> "$ROOT/sleeps.log"`)
	out, err := m.command().CombinedOutput()
	m.Expect(err).NotTo(HaveOccurred(), string(out))
	content, err := os.ReadFile(m.root + "/sleeps.log")
	m.Expect(err).NotTo(HaveOccurred())
	var all []int
	for _, line := range strings.Fields(string(content)) {
		seconds, err := strconv.Atoi(line)
		m.Expect(err).NotTo(HaveOccurred())
		all = append(all, seconds)
	}
	return all
}

func TestAMachineWaitsAsLongAsItsSpecAsks(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)
		api.serve(t, bootstrapv1.CloudConfigSpec{})
		api.set(func(a *apiServer) {
			a.answer = func(w http.ResponseWriter, _ []byte) {
				w.Header().Set("Retry-After", "120")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		for _, seconds := range m.sleeps() {
			m.Expect(seconds).To(BeNumerically("~", 135, 15))
		}
	})
}

func TestMachinesDoNotPollAtOnce(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	api.set(func(a *apiServer) { a.data[PollIntervalKey] = []byte("60") })
	m.Expect(m.poll()).To(BeTrue())
	m.join(api)
	m.Expect(m.poll()).To(BeTrue())
	different := map[int]bool{}
	for _, seconds := range m.sleeps() {
		m.Expect(seconds).To(And(BeNumerically(">=", 60), BeNumerically("<=", 75)))
		different[seconds] = true
	}
	m.Expect(len(different)).To(BeNumerically(">", 2), "%v", different)
}

// A kubelet keeps its own kubeconfig; when the API server has moved, it needs the new address.
func TestAnEndpointThatMovedReachesTheKubelet(t *testing.T) {
	api, moved := newAPIServer(t), newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	m.Expect(m.poll()).To(BeTrue())
	m.join(api)
	m.write(
		realKubeconfig,
		"clusters:\n- cluster:\n    server: "+api.URL+"\nusers:\n- user:\n    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem\n",
	)
	m.Expect(m.poll()).To(BeTrue())
	before := m.read(realKubeconfig)
	m.Expect(before).To(ContainSubstring("clusters:\n- cluster:"), "what is right is left alone")
	m.calls()

	moved.serve(t, bootstrapv1.CloudConfigSpec{})
	moved.set(func(a *apiServer) { a.users, a.tokens = []string{nodeUser}, nil })
	api.set(func(a *apiServer) { a.data[ServerKey], a.data[AuthorityKey] = []byte(moved.URL), moved.authority })
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read(realKubeconfig)).To(And(ContainSubstring("server: "+moved.URL+"\n"), ContainSubstring("kubelet-client-current.pem")))
	m.Expect(m.calls()).To(ContainElement("restart kubelet.service --no-block"))
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).NotTo(ContainElement(HavePrefix("restart")), "once")

	own := "server: https://elsewhere\ntoken: x\n"
	m.write(realKubeconfig, own)
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read(realKubeconfig)).To(Equal(own), "the certificate is another's")
}

// A kubelet reads the authority of the API server when it starts: before 1.36 it learns of another one by a restart only.
func TestAnAuthorityThatChangedReachesTheKubelet(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).NotTo(ContainElement("restart kubelet.service --no-block"), "it has not run before")
	m.join(api)
	m.Expect(m.poll()).To(BeTrue())
	m.calls()

	api.set(func(a *apiServer) { a.data[AuthorityKey] = append(selfSigned(t), api.authority...) })
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.read("/var/lib/kubelet/ca.crt")).To(HaveSuffix(string(api.authority)))
	m.Expect(m.calls()).To(ContainElement("restart kubelet.service --no-block"))
	m.Expect(m.poll()).To(BeTrue())
	m.Expect(m.calls()).NotTo(ContainElement(HavePrefix("restart")), "once")
}

// What the kubelet is to be restarted for is written already when the downloader ends before it has restarted it.
func TestARestartOfTheKubeletIsNotForgotten(t *testing.T) {
	api := newAPIServer(t)
	m := newMachine(t, []string{"sh"}, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	m.Expect(m.poll()).To(BeTrue())
	m.program("systemctl", `echo "$*" >> "$ROOT/systemctl.log"; [ "$1" != restart ] || kill -9 $PPID`)
	api.set(func(a *apiServer) { a.data[JoinTokenKey] = []byte("second.0123456789abcdef") })
	m.Expect(m.poll()).To(BeFalse(), "it was killed")
	m.Expect(m.read(bootstrapKubeconfig)).To(ContainSubstring("token: second."))
	m.program("systemctl", `echo "$*" >> "$ROOT/systemctl.log"; [ "$1" != restart ]`)
	m.calls()
	m.poll()
	m.Expect(m.calls()).To(ContainElement("restart kubelet.service --no-block"))

	m.program("systemctl", `echo "$*" >> "$ROOT/systemctl.log"`)
	m.poll()
	m.Expect(m.calls()).To(ContainElement("restart kubelet.service --no-block"), "systemd has refused")
	m.poll()
	m.Expect(m.calls()).NotTo(ContainElement("restart kubelet.service --no-block"), "once")
}
