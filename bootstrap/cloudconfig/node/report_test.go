package node

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// reported returns what the machine has reported of itself, in order.
func (a *apiServer) reported(g Gomega) []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	var lines []string
	for _, body := range a.reports {
		report := struct {
			Spec struct {
				HolderIdentity string
				RenewTime      time.Time
			}
		}{}
		g.Expect(json.Unmarshal([]byte(body), &report)).To(Succeed(), body)
		g.Expect(report.Spec.RenewTime).To(BeTemporally("~", time.Now(), time.Minute))
		g.Expect(len(report.Spec.HolderIdentity)).To(BeNumerically("<=", 200))
		lines = append(lines, report.Spec.HolderIdentity)
	}
	return lines
}

func TestAMachineReportsHowFarItHasCome(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)
		api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{someFile("/etc/motd", "hello\n")}})
		m.write("/failing", "kubelet.service\n")
		m.Expect(m.poll()).To(BeFalse())
		m.Expect(m.poll()).To(BeFalse())
		m.Expect(api.reported(m)).
			To(Equal([]string{"has downloaded its configuration", "these units failed, or are not done yet: kubelet.service"}))
		m.remove("/failing")
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.poll()).To(BeTrue())
		lines := api.reported(m)
		m.Expect(lines[2:]).To(HaveExactElements("has applied its configuration and started the kubelet"), "each line once")

		// Who has joined says nothing more.
		m.join(api)
		m.Expect(m.poll()).To(BeTrue())
		api.serve(t, bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{someFile("/etc/motd", "changed\n")}})
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.read("/etc/motd")).To(Equal("changed\n"))
		m.Expect(api.reported(m)).To(HaveLen(len(lines)))
	})
}

// A report changes nothing about a join, wherever it is not taken.
func TestAMachineJoinsWithoutReports(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		api := newAPIServer(t)
		m := newMachine(t, shell, api)
		api.serve(t, bootstrapv1.CloudConfigSpec{})
		api.set(func(a *apiServer) { a.refuseReports = true })
		m.Expect(m.poll()).To(BeTrue())
		m.Expect(m.exists(bootstrapKubeconfig)).To(BeTrue())
		m.Expect(m.output).NotTo(ContainSubstring(http.StatusText(http.StatusForbidden)))
		m.Expect(api.reported(m)).To(BeEmpty())
	})
}
