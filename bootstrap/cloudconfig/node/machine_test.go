package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

const (
	testNamespace     = "millwright-nodes"
	testSecret        = "cloud-config-00112233445566778899"
	testDownloadToken = "abcdef.0123456789abcdef"
	testJoinToken     = "joiner.0123456789abcdef"
	nodeUser          = "system:node:machine-1"
)

// machine is a machine whose disk is a directory: the scripts are run for real, with systemctl and a few
// other programs replaced by ones that keep a record.
type machine struct {
	*WithT
	t      *testing.T
	shell  []string
	root   string
	bin    string
	output string
	env    []string
}

// shells are those that are here; a machine's is dash or busybox mostly. A program of several names is run under one of them.
func shells() map[string][]string {
	found, known := map[string][]string{}, map[string]bool{}
	for _, command := range [][]string{{"sh"}, {"dash"}, {"bash", "--posix"}, {"busybox", "sh"}} {
		path, err := exec.LookPath(command[0])
		if err != nil {
			continue
		}
		// A bash behaves in its own way as sh, dash does not.
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Base(real) == "dash" {
			path = real
		}
		if !known[path] {
			found[command[0]], known[path] = command, true
		}
	}
	return found
}

// newMachine boots: it writes the files of the user data, as cloud-init would.
func newMachine(t *testing.T, shell []string, api *apiServer) *machine {
	t.Helper()
	m := &machine{WithT: NewWithT(t), t: t, shell: shell, root: t.TempDir(), bin: t.TempDir()}
	data, err := UserData(UserDataOptions{
		Server: api.URL, Authority: api.authority, SecretNamespace: testNamespace, SecretName: testSecret, DownloadToken: testDownloadToken,
	})
	m.Expect(err).NotTo(HaveOccurred())
	var config cloudConfig
	m.Expect(yaml.Unmarshal(data, &config)).To(Succeed())
	for _, f := range config.WriteFiles {
		var mode os.FileMode
		_, err := fmt.Sscanf(f.Permissions, "%o", &mode)
		m.Expect(err).NotTo(HaveOccurred())
		m.Expect(os.MkdirAll(filepath.Dir(m.root+f.Path), 0o755)).To(Succeed())
		m.Expect(os.WriteFile(m.root+f.Path, []byte(f.Content), mode)).To(Succeed())
	}
	// Nothing but what an image must have: a program that the scripts need and Programs lacks fails whatever test runs it.
	for _, name := range Programs {
		m.realProgram(name)
	}
	m.program("systemctl", `printf '%s\n' "$*" >> "$ROOT/systemctl.log"
! grep -qxF -e "$2" "$ROOT/failing" 2>/dev/null`)
	// It fails by a key of the image with --system only.
	m.program("sysctl", `if [ "$1" = --system ]; then
echo "sysctl $*" >> "$ROOT/systemctl.log"; [ ! -e "$ROOT/image-sysctl-broken" ] || exit 255
else shift; printf '%s\n' "$@" | sed "s|^$ROOT||" >> "$ROOT/sysctl-p.log"; fi
[ ! -e "$ROOT/no-sysctl" ]`)
	// The real one would have a group of processes of its own, which survives when the power is cut.
	m.program("timeout", `shift; exec "$@"`)
	// The disk of a test never loses power.
	m.program("sync", ":")
	m.limitCurl(curlLimit)
	return m
}

// curlLimit is how many seconds a request may take that ends; what hangs has a limit of its own, by limitCurl.
const curlLimit = 60

// limitCurl sets how many seconds each request may take. The last of two equal options wins.
func (m *machine) limitCurl(seconds int) {
	m.t.Helper()
	real, err := exec.LookPath("curl")
	m.Expect(err).NotTo(HaveOccurred())
	m.program("curl", fmt.Sprintf(`echo "$*" >> "$ROOT/curl.log"; exec %s "$@" --max-time %d`, real, seconds))
}

// realProgram puts a program of this host into the machine's PATH, if the host has it.
func (m *machine) realProgram(name string) {
	m.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		return
	}
	m.clear(name)
	m.Expect(os.Symlink(path, filepath.Join(m.bin, name))).To(Succeed())
}

// clear removes a program: a script would be written through a link to the real one.
func (m *machine) clear(name string) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.bin, name)); !os.IsNotExist(err) {
		m.Expect(err).NotTo(HaveOccurred())
	}
}

// program puts a shell script into the machine's PATH.
func (m *machine) program(name, body string) {
	m.t.Helper()
	m.clear(name)
	m.Expect(os.WriteFile(filepath.Join(m.bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755)).To(Succeed())
}

func (m *machine) command(args ...string) *exec.Cmd {
	words := append(append([]string{}, m.shell...), m.root+downloaderScript)
	words = append(words, args...)
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "ROOT="+m.root, "PATH="+m.bin)
	cmd.Env = append(cmd.Env, m.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// poll runs the downloader once and reports whether it has succeeded.
func (m *machine) poll() bool {
	m.t.Helper()
	out, err := m.command("once").CombinedOutput()
	m.output = string(out)
	m.t.Logf("output: %s", m.output)
	return err == nil
}

func (m *machine) read(path string) string {
	content, err := os.ReadFile(m.root + path)
	if err != nil {
		return "(" + filepath.Base(path) + " is missing)"
	}
	return string(content)
}

func (m *machine) write(path, content string) {
	m.t.Helper()
	m.Expect(os.MkdirAll(filepath.Dir(m.root+path), 0o755)).To(Succeed())
	m.Expect(os.WriteFile(m.root+path, []byte(content), 0o600)).To(Succeed())
}

func (m *machine) remove(path string) {
	m.t.Helper()
	m.Expect(os.RemoveAll(m.root + path)).To(Succeed())
}

func (m *machine) exists(path string) bool {
	_, err := os.Stat(m.root + path)
	return err == nil
}

// calls returns what systemctl was called with, and forgets it.
func (m *machine) calls() []string {
	content, _ := os.ReadFile(m.root + "/systemctl.log")
	_ = os.Remove(m.root + "/systemctl.log")
	return strings.Split(strings.TrimSpace(string(content)), "\n")
}

// tree returns the files with mode and content, without what only records and the downloader's scratch.
func (m *machine) tree() map[string]string {
	out := map[string]string{}
	m.Expect(filepath.Walk(m.root, func(path string, info os.FileInfo, err error) error {
		rel := strings.TrimPrefix(path, m.root)
		if err != nil || info.IsDir() || strings.HasSuffix(rel, ".log") || strings.HasPrefix(rel, "/counter") ||
			strings.HasPrefix(rel, downloaderDirectory+"/downloads/") {
			return err
		}
		out[rel] = fmt.Sprintf("%v %s", info.Mode(), m.read(rel))
		return nil
	})).To(Succeed())
	return out
}

// join gives the kubelet its certificate and has the API server accept it, and the token no longer.
func (m *machine) join(api *apiServer) {
	m.t.Helper()
	m.write("/var/lib/kubelet/pki/kubelet-client-current.pem", string(api.clientCertificate(m.t, nodeUser)))
	m.write("/var/lib/kubelet/kubeconfig-real", "client-certificate: pki/kubelet-client-current.pem\n")
	api.set(func(a *apiServer) { a.tokens = nil; a.users = []string{nodeUser} })
}
