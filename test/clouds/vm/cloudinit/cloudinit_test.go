package cloudinit_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/vm/cloudinit"
	"millwright.dev/test/clouds/vm/rootfs"
)

func TestWriteFiles(t *testing.T) {
	g := NewWithT(t)
	root, err := rootfs.Make(filepath.Join(t.TempDir(), "root"))
	g.Expect(err).NotTo(HaveOccurred())
	config, err := cloudinit.Parse([]byte(`#cloud-config
users: []
write_files:
- {path: /etc/plain, content: "a\n"}
- {path: /etc/plain, content: "b\n", append: true, owner: "root:root"}
- {path: /etc/b64, content: Yg==, encoding: b64, permissions: "0600"}
- {path: /etc/octal, content: x, permissions: 0750}
- path: /srv/deep/er
  encoding: base64
  content: |
    aGVsbG8g
    d29ybGQ=
`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Ignored).To(Equal([]string{"users"}))
	for _, f := range config.WriteFiles {
		g.Expect(f.Write(root)).To(Succeed())
	}
	for path, want := range map[string]struct {
		content string
		mode    os.FileMode
	}{
		"/etc/plain": {"a\nb\n", 0o644}, "/etc/b64": {"b", 0o600}, "/etc/octal": {"x", 0o750}, "/srv/deep/er": {"hello world", 0o644},
	} {
		raw, err := os.ReadFile(root.Path(path))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(raw)).To(Equal(want.content), path)
		info, err := os.Stat(root.Path(path))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).To(Equal(want.mode), path)
	}
	for _, bad := range []cloudinit.File{
		{Path: "relative"}, {Path: "/x", Encoding: "rot13"}, {Path: "/x", Encoding: "b64", Content: "!"},
		{Path: "/x", Permissions: []byte(`"rw"`)},
	} {
		g.Expect(bad.Write(root)).NotTo(Succeed())
	}
}

func TestRunScript(t *testing.T) {
	g := NewWithT(t)
	config, err := cloudinit.Parse([]byte("#cloud-config\nruncmd:\n- [cp, /etc/a, \"it's\", 7]\n- cat /etc/a | sh\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.RunScript("/r")).To(Equal("#!/bin/sh\n'cp' '/r/etc/a' 'it'\\''s' '7'\ncat /r/etc/a | sh\n"))
}

func TestUserDataForms(t *testing.T) {
	g := NewWithT(t)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte("#cloud-config\nruncmd: [ls]\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(w.Close()).To(Succeed())
	config, err := cloudinit.Parse(packed.Bytes())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.RunCmd).To(Equal([]cloudinit.Command{{Line: "ls"}}))
	for _, bad := range []string{"", "runcmd: []", "#cloud-config\nruncmd: {a: b}\n", "#cloud-config\n\t-", "\x1f\x8bnot"} {
		_, err := cloudinit.Parse([]byte(bad))
		g.Expect(err).To(HaveOccurred(), bad)
	}
	script, err := cloudinit.Parse([]byte("#!/bin/sh\nls\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(script.Script)).To(HavePrefix("#!/bin/sh"))
}
