package systemd

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
)

// The kubelet's unit of a machine starts here as on a real machine, with what it runs before and after the kubelet.
func TestStart_KubeletUnitOfMachine_RunsTheKubelet(t *testing.T) {
	bundle, err := node.NewBundle(&v1alpha1.CloudConfigSpec{}, nil, node.KubeletOptions{NodeName: "n", ProviderID: "aws:///a/i-1"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	h := newHost(t, nil)
	for _, f := range bundle.Files {
		h.Expect(os.MkdirAll(filepath.Dir(h.root.Path(f.Path)), 0o755)).To(Succeed())
		h.Expect(os.WriteFile(h.root.Path(f.Path), f.Content, 0o644)).To(Succeed())
	}
	h.Expect(os.MkdirAll(h.root.Path("/opt/bin"), 0o755)).To(Succeed())
	program := "#!/bin/sh\necho $* >\"$ROOT/run/flags\"\nexec sleep 1000\n"
	h.Expect(os.WriteFile(h.root.Path("/opt/bin/kubelet"), []byte(program), 0o755)).To(Succeed())
	h.Expect(os.MkdirAll(h.root.Path("/run"), 0o755)).To(Succeed())
	h.Expect(h.code("daemon-reload")).To(BeZero())
	h.Expect(h.code("restart kubelet.service")).To(BeZero())
	h.Eventually(func() string {
		content, _ := os.ReadFile(h.root.Path("/run/flags"))
		return string(content)
	}).Should(ContainSubstring("--provider-id=aws:///a/i-1"))
	link, err := os.Readlink(h.root.Path("/var/lib/kubelet/resolv.conf"))
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(link).To(Equal("/etc/resolv.conf"))
}
