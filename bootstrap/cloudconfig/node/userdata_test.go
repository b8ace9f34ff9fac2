package node

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

func userDataOptions() UserDataOptions {
	return UserDataOptions{
		Server:          "https://10.0.0.1:6443",
		Authority:       selfSigned(&testing.T{}),
		SecretNamespace: testNamespace,
		SecretName:      testSecret,
		DownloadToken:   testDownloadToken,
	}
}

func TestUserData(t *testing.T) {
	g := NewWithT(t)
	o := userDataOptions()
	o.Files = []File{
		{Path: "/etc/text", Mode: "0600", Content: []byte("a: \"b\"\n# {{ c }}\n")},
		{Path: "/etc/binary", Mode: "0644", Content: []byte{0xff, 0x00}},
	}
	o.Users = []bootstrapv1.User{
		{Name: "ops", Groups: []string{"wheel"}, Sudo: "ALL=(ALL) NOPASSWD:ALL", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA"}},
	}
	data, err := UserData(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).To(HavePrefix("#cloud-config\n"), "cloud-init knows the format by the first line")
	t.Logf("%d bytes", len(data))
	g.Expect(len(data)).To(BeNumerically("<", 12<<10), "it is passed to most clouds as it is")

	var config cloudConfig
	g.Expect(yaml.Unmarshal(data, &config)).To(Succeed())
	byPath := map[string]writeFile{}
	for _, f := range config.WriteFiles {
		byPath[f.Path] = f
	}
	g.Expect(byPath[authorization]).To(Equal(writeFile{
		Path: authorization, Permissions: "0600", Content: "Authorization: Bearer " + testDownloadToken + "\n",
	}))
	g.Expect(byPath["/etc/text"].Content).To(Equal("a: \"b\"\n# {{ c }}\n"))
	g.Expect(byPath["/etc/binary"].Encoding).To(Equal("b64"))
	g.Expect(base64.StdEncoding.DecodeString(byPath["/etc/binary"].Content)).To(Equal([]byte{0xff, 0x00}))
	g.Expect(config.RunCmd).To(HaveLen(3))
	g.Expect(config.Users[0]).To(Equal("default"))
	g.Expect(config.Users[1]).To(HaveKeyWithValue("ssh_authorized_keys", []any{"ssh-ed25519 AAAA"}))
	for path, f := range byPath {
		if strings.HasPrefix(path, credentialDirectory) || path == downloaderScript {
			g.Expect(f.Permissions).To(BeElementOf("0600", "0700"), path)
		}
	}
}

// User data that no Secret can hold are refused, and the error names what is large.
func TestUserData_TooLarge_NamesTheLargestParts(t *testing.T) {
	g := NewWithT(t)
	o := userDataOptions()
	content := make([]byte, MaxUserData)
	_, _ = rand.Read(content)
	o.Files = []File{{Path: "/etc/large", Mode: "0644", Content: content}}
	_, err := UserData(o)
	var tooLarge *TooLargeError
	g.Expect(errors.As(err, &tooLarge)).To(BeTrue())
	g.Expect(tooLarge.Limit).To(Equal(921600))
	g.Expect(tooLarge.Size).To(BeNumerically(">", 921600))
	g.Expect(err.Error()).To(And(ContainSubstring("file /etc/large ("), ContainSubstring("stage Managed")))
}

// Compaction must not change what a script means, and each script must be read by a shell at all.
func TestScripts(t *testing.T) {
	for name, script := range map[string]string{"download": downloadScript, "apply": applyScript} {
		for shell, command := range shells() {
			for form, text := range map[string]string{"source": script, "compact": compact(script)} {
				cmd := exec.Command(command[0], append(append([]string{}, command[1:]...), "-n")...)
				cmd.Stdin = strings.NewReader(text)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s %s in %s: %v: %s", form, name, shell, err, out)
				}
			}
		}
		if strings.Contains(script, "<<") {
			t.Errorf("%s has a here-document, which compaction would break", name)
		}
		if !strings.HasSuffix(strings.TrimSpace(script), "exit\n}") && !strings.HasSuffix(strings.TrimSpace(script), "exit 0\n}") {
			t.Errorf("%s must end by exit in braces: a shell reads its script while it runs", name)
		}
	}
}

func TestBundle(t *testing.T) {
	g := NewWithT(t)
	spec := &bootstrapv1.CloudConfigSpec{Units: []bootstrapv1.Unit{
		{Name: KubeletUnit, DropIns: []bootstrapv1.DropIn{{Name: "10.conf", Content: "x"}}},
		{Name: "own.service", Content: "x", Command: bootstrapv1.UnitCommandRestart},
		{Name: "image.service"},
	}}
	managed := []File{{Path: "/etc/a", Mode: "0600", Content: []byte("a")}}
	bundleFor := func(providerID string) *Bundle {
		bundle, err := NewBundle(spec, managed, KubeletOptions{NodeName: "n", ProviderID: providerID})
		g.Expect(err).NotTo(HaveOccurred())
		return bundle
	}
	bundle := bundleFor("p")
	g.Expect(bundle.Manifest()).To(Equal(`file 0 0600 - /etc/a
file 1 0644 kubelet.service /etc/systemd/system/kubelet.service.d/10.conf
file 2 0644 own.service /etc/systemd/system/own.service
file 3 0644 kubelet.service /etc/systemd/system/kubelet.service.d/10-kubeadm.conf
file 4 0644 kubelet.service /var/lib/cloud-config-downloader/kubelet.sh
file 5 0644 kubelet.service /var/lib/kubelet/config.yaml
file 6 0644 kubelet.service /etc/systemd/system/kubelet.service
unit own.service yes restart own
unit image.service yes start image
unit kubelet.service yes start own
`))
	one, err := bundle.Pack()
	g.Expect(err).NotTo(HaveOccurred())
	two, err := bundleFor("p").Pack()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two).To(Equal(one), "the same content has the same revision")
	three, err := bundleFor("q").Pack()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(three.Revision).NotTo(Equal(one.Revision))

	noise := make([]byte, MaxPayload+1)
	_, _ = rand.Read(noise)
	_, err = (&Bundle{Files: []File{{Path: "/a", Mode: "0644", Content: noise}}}).Pack()
	var tooLarge *TooLargeError
	g.Expect(errors.As(err, &tooLarge)).To(BeTrue())
	g.Expect(err.Error()).To(ContainSubstring("file /a (92"))
}
