package node

import (
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// runKubeletScript runs what the kubelet's unit runs before and after the kubelet.
func (m *machine) runKubeletScript(env []string, verb string) error {
	cmd := exec.Command(m.shell[0], append(m.shell[1:], m.root+kubeletScript, verb)...)
	cmd.Env = append([]string{"ROOT=" + m.root, "PATH=" + m.bin}, env...)
	return cmd.Run()
}

func newBootedMachine(t *testing.T, shell []string) *machine {
	t.Helper()
	api := newAPIServer(t)
	m := newMachine(t, shell, api)
	api.serve(t, bootstrapv1.CloudConfigSpec{})
	m.Expect(m.poll()).To(BeTrue())
	m.write("/opt/bin/kubelet", "")
	m.Expect(os.Chmod(m.root+"/opt/bin/kubelet", 0o755)).To(Succeed())
	m.write("/dev/console", "")
	return m
}

// Pods get the servers that systemd-resolved asks, and not its stub, which they cannot reach and by which CoreDNS asks itself
// (kubeadm #273, #1162; coredns #2790). The machine decides, at each start of the kubelet.
func TestKubeletScript_Kubeadm273_SystemdResolved_ChoosesItsServers(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		m := newBootedMachine(t, shell)
		config := kubeletConfig(t, KubeletOptions{NodeName: "n"})
		m.Expect(config.ResolverConfig).To(HaveValue(Equal("/var/lib/kubelet/resolv.conf")))
		target := func() string {
			link, err := os.Readlink(m.root + "/var/lib/kubelet/resolv.conf")
			m.Expect(err).NotTo(HaveOccurred())
			return link
		}
		m.Expect(m.runKubeletScript(nil, "prepare")).To(Succeed())
		m.Expect(target()).To(Equal("/etc/resolv.conf"))
		m.write("/run/systemd/resolve/resolv.conf", "nameserver 10.0.0.2")
		m.Expect(m.runKubeletScript(nil, "prepare")).To(Succeed())
		m.Expect(target()).To(Equal("/run/systemd/resolve/resolv.conf"))
		m.Expect(m.runKubeletScript(nil, "prepare")).To(Succeed())
		m.remove("/run/systemd/resolve/resolv.conf")
		m.Expect(m.runKubeletScript(nil, "prepare")).To(Succeed())
		m.Expect(target()).To(Equal("/etc/resolv.conf"))

		given := kubeletConfig(t, KubeletOptions{NodeName: "n", Spec: given(`resolvConf: /etc/my-resolv.conf`)})
		m.Expect(given.ResolverConfig).To(HaveValue(Equal("/etc/my-resolv.conf")))
		none := kubeletConfig(t, KubeletOptions{NodeName: "n", Spec: bootstrapv1.KubeletSpec{Config: rawConfig(`{"resolvConf":""}`)}})
		m.Expect(none.ResolverConfig).To(HaveValue(BeEmpty()))
	})
}

// A kubelet of a package is used where there is none in /opt/bin.
func TestKubeletScript_KubeletOfPackage_IsLinked(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		m := newBootedMachine(t, shell)
		m.Expect(m.runKubeletScript(nil, "prepare")).To(Succeed())
		m.Expect(m.read("/opt/bin/kubelet")).To(BeEmpty(), "the one of the image stays")

		m.remove("/opt")
		m.Expect(m.runKubeletScript(nil, "prepare")).NotTo(Succeed())
		m.Expect(m.read("/dev/console")).To(ContainSubstring("there is no kubelet in /opt/bin, /usr/local/bin or /usr/bin"))
		m.write("/usr/bin/kubelet", "")
		m.Expect(os.Chmod(m.root+"/usr/bin/kubelet", 0o755)).To(Succeed())
		m.Expect(m.runKubeletScript(nil, "prepare")).To(Succeed())
		link, err := os.Readlink(m.root + "/opt/bin/kubelet")
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(link).To(Equal("/usr/bin/kubelet"))
	})
}

// The last lines of a kubelet that fails are on the console: often no user can log in to read the journal.
func TestKubeletScript_KubeletFails_ConsoleHasItsLastLines(t *testing.T) {
	inEachShell(t, func(t *testing.T, shell []string) {
		m := newBootedMachine(t, shell)
		m.program("journalctl", `[ "$1" = --unit=kubelet.service ] && echo 'failed to validate kubelet flags'`)
		m.Expect(m.runKubeletScript([]string{"SERVICE_RESULT=success"}, "stopped")).To(Succeed())
		m.Expect(m.read("/dev/console")).To(BeEmpty())
		m.Expect(m.runKubeletScript([]string{"SERVICE_RESULT=exit-code"}, "stopped")).To(Succeed())
		m.Expect(m.read("/dev/console")).To(Equal("failed to validate kubelet flags\n"))
		m.write("/dev/console", "")
		m.Expect(m.runKubeletScript([]string{"SERVICE_RESULT=exit-code"}, "stopped")).To(Succeed())
		m.Expect(m.read("/dev/console")).To(BeEmpty(), "a kubelet that fails every two seconds does not fill the console")
	})
}

// kubeadm's packages bring 10-kubeadm.conf, which replaces the command of kubelet.service: images of image-builder and each
// "apt install kubelet" have it. A file of the same name in /etc hides it, unless the user has one.
func TestNewBundle_KubeadmDropIn_IsMasked(t *testing.T) {
	g := NewWithT(t)
	const path = "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf"
	contents := func(spec *bootstrapv1.CloudConfigSpec) (found []string) {
		bundle, err := NewBundle(spec, nil, KubeletOptions{NodeName: "n"})
		g.Expect(err).NotTo(HaveOccurred())
		for _, f := range bundle.Files {
			if f.Path == path {
				found = append(found, string(f.Content))
			}
		}
		return found
	}
	masked := contents(&bootstrapv1.CloudConfigSpec{})
	g.Expect(masked).To(HaveLen(1))
	g.Expect(masked[0]).NotTo(ContainSubstring("ExecStart"))
	g.Expect(contents(&bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{
		{Name: KubeletUnit, DropIns: []bootstrapv1.DropIn{{Name: "10-kubeadm.conf", Content: "[Service]\nExecStart=\n"}}},
	}})).To(Equal([]string{"[Service]\nExecStart=\n"}))
}
