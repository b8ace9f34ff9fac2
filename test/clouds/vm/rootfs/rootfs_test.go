package rootfs_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/vm/rootfs"
)

func TestMap(t *testing.T) {
	for argument, want := range map[string]string{
		"/etc/kubernetes/ca.crt":               "/r/etc/kubernetes/ca.crt",
		"/etc":                                 "/r/etc",
		"/usr/local/bin/x":                     "/r/usr/local/bin/x",
		"/usr/bin/env":                         "/usr/bin/env",
		"/etc/opt/x /opt/etc":                  "/r/etc/opt/x /r/opt/etc",
		"/etcetera":                            "/etcetera",
		"relative/etc/x":                       "relative/etc/x",
		"--kubeconfig=/var/lib/kubelet/config": "--kubeconfig=/r/var/lib/kubelet/config",
		"aws:///us-east-1a/i-1":                "aws:///us-east-1a/i-1",
		"https://host/etc/x":                   "https://host/etc/x",
		"echo a >/run/a; cat /etc/b":           "echo a >/r/run/a; cat /r/etc/b",
		"/opt/bin:/usr/local/bin:/bin":         "/r/opt/bin:/r/usr/local/bin:/bin",
		"/r/etc/x":                             "/r/etc/x",
		"$ROOT/etc/x":                          "$ROOT/etc/x",
		`--a="/var/x" --b='/opt/y'`:            `--a="/r/var/x" --b='/r/opt/y'`,
		"unix:///run/containerd.sock":          "unix:///run/containerd.sock",
	} {
		NewWithT(t).Expect(rootfs.Root("/r").Map(argument)).To(Equal(want), argument)
	}
	// A root that is itself below one of the directories is not mapped twice.
	g := NewWithT(t)
	g.Expect(rootfs.Root("/var/tmp/m").Map("/var/tmp/m/etc/x /etc/y")).To(Equal("/var/tmp/m/etc/x /var/tmp/m/etc/y"))
}

func TestMakeAndLink(t *testing.T) {
	g := NewWithT(t)
	image, path := t.TempDir(), filepath.Join(t.TempDir(), "root")
	g.Expect(os.MkdirAll(filepath.Join(image, "opt/bin"), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(image, "opt/bin/kubelet"), []byte("x"), 0o755)).To(Succeed())
	root, err := rootfs.Make(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(root.Link(image)).To(Succeed())
	raw, err := os.ReadFile(root.Path("/opt/bin/kubelet"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(raw)).To(Equal("x"))
	info, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))
	_, err = rootfs.Make(path)
	g.Expect(err).To(HaveOccurred(), "an existing directory is not used")
}
