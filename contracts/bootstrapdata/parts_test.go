package bootstrapdata

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func noise(size int) string {
	data := make([]byte, size)
	_, _ = rand.Read(data)
	return base64.StdEncoding.EncodeToString(data)
}

// cloudConfig has as many users, and as many files with a content of their own, as are given.
func cloudConfig(users int, key func() string, files int, content func() string) []byte {
	var out strings.Builder
	out.WriteString("#cloud-config\nusers:\n- default\n")
	for i := range users {
		fmt.Fprintf(&out, "- name: admin-%d\n  ssh_authorized_keys: [%q]\n", i, key())
	}
	out.WriteString("write_files:\n- {path: /opt/start.sh, content: \"#!/bin/sh\\n\"}\n")
	for i := range files {
		fmt.Fprintf(&out, "- path: /etc/file-%d\n  content: %q\n", i, content())
	}
	out.WriteString("runcmd:\n- [systemctl, start, x]\n")
	return []byte(out.String())
}

// The advice fits what the most of the data is: files that do not exist are never to be moved.
func TestExplain_RemedyFitsTheLargestParts(t *testing.T) {
	rsa := func() string { return "ssh-rsa " + noise(535) + " someone@example.com" }
	ed25519 := func() string { return "ssh-ed25519 " + noise(51) + " someone@example.com" }
	file := func() string { return noise(4000) }
	certificate := func() string {
		return "-----BEGIN CERTIFICATE-----\n" + noise(1200) + "\n-----END CERTIFICATE-----\n"
	}
	for name, test := range map[string]struct {
		data     []byte
		contains []string
		lacks    []string
	}{
		"users with RSA keys":   {cloudConfig(20, rsa, 0, nil), []string{"user admin-", "18 more", "Ed25519"}, []string{"stage"}},
		"users with short keys": {cloudConfig(30, ed25519, 0, nil), []string{"user admin-", "users"}, []string{"stage", "Use Ed25519"}},
		"files": {
			cloudConfig(2, rsa, 2, file), []string{"file /etc/file-0 (4", "user admin-1", "stage Managed"}, []string{"Ed25519", "0 more"},
		},
		"certificates": {cloudConfig(1, rsa, 6, certificate), []string{"/etc/file-0", "certificates"}, []string{"Ed25519", "stage"}},
		"commands":     {[]byte("#cloud-config\nruncmd: [" + noise(400) + "]\n"), []string{"runcmd (", "smaller"}, []string{"stage"}},
		"a template": {
			append([]byte("## template: jinja\n"), cloudConfig(0, nil, 2, file)...), []string{"/etc/file-1"}, nil,
		},
		"a script":                   {[]byte("#!/bin/sh\n" + noise(20)), []string{"Make it smaller"}, []string{"parts"}},
		"entries of unexpected type": {[]byte("#cloud-config\nusers: [1, null, {x: y}]\nwrite_files: {a: b}\n"), []string{"user 2"}, nil},
		"no YAML":                    {[]byte("#cloud-config\n\t{"), []string{"Make it smaller"}, []string{"parts"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			message := Explain(test.data)
			t.Log(message)
			for _, part := range test.contains {
				g.Expect(message).To(ContainSubstring(part))
			}
			for _, part := range test.lacks {
				g.Expect(message).NotTo(ContainSubstring(part))
			}
			g.Expect(message).To(Equal(Explain(test.data)), "conditions must not change")
		})
	}
}

// Whatever names a user or a file has, the message is short and has nothing of the content.
func TestExplain_MessageHasNoContent(t *testing.T) {
	g := NewWithT(t)
	data := fmt.Sprintf("#cloud-config\nwrite_files:\n- {path: /etc/%s, content: secret-token}\n", strings.Repeat("long", 5000))
	message := Explain([]byte(data))
	g.Expect(len(message)).To(BeNumerically("<", 500))
	g.Expect(message).NotTo(ContainSubstring("secret-token"))
}
