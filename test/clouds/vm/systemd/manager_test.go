package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/vm/rootfs"
	"millwright.dev/test/clouds/vm/spawn"
)

// spawner is the one of this process.
var spawner = sync.OnceValues(spawn.New)

// host is a machine's service manager with systemctl in front of it.
type host struct {
	*WithT
	root    rootfs.Root
	mu      sync.Mutex
	console []string
}

func newHost(t *testing.T, units map[string]string) *host {
	t.Helper()
	h := &host{WithT: NewWithT(t)}
	root, err := rootfs.Make(filepath.Join(t.TempDir(), strings.Repeat("long", 20)))
	h.Expect(err).NotTo(HaveOccurred())
	h.root = root
	for name, content := range units {
		h.write(name, content)
	}
	s, err := spawner()
	h.Expect(err).NotTo(HaveOccurred())
	marker := "SIM_MACHINE=" + t.Name()
	m := New(root, s, []string{"PATH=" + os.Getenv("PATH"), "ROOT=" + string(root), marker}, func(format string, args ...any) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.console = append(h.console, fmt.Sprintf(format, args...))
	})
	listener, err := m.Serve()
	h.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		_ = listener.Close()
		for name := range units {
			_ = m.Stop(filepath.Base(name), false)
		}
		spawn.KillMarked(marker)
	})
	return h
}

func (h *host) write(name, content string) {
	path := h.root.Path("etc/systemd/system/" + name)
	h.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	h.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

// systemctl runs the command and returns the exit code and the output.
func (h *host) systemctl(line string) (int, string) {
	code, output, problem := Systemctl(string(h.root), strings.Fields(line))
	return code, output + problem
}

func (h *host) code(line string) int {
	code, _ := h.systemctl(line)
	return code
}

func (h *host) state(name string) func() string {
	return func() string {
		_, output := h.systemctl("is-active " + name)
		return strings.TrimSpace(output)
	}
}

func (h *host) file(path string) func() string {
	return func() string {
		raw, err := os.ReadFile(h.root.Path(path))
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
}

const loop = "[Service]\nExecStart=/bin/sh -c 'echo $$$$ >> /run/pids; while :; do sleep 1; done'\nRestart=always\nRestartSec=10ms\n" +
	"[Install]\nWantedBy=multi-user.target\n"

func (h *host) pids() []int {
	var out []int
	for _, word := range strings.Fields(h.file("run/pids")()) {
		if n, err := strconv.Atoi(word); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func TestServiceLife(t *testing.T) {
	h := newHost(t, map[string]string{"loop.service": loop})
	h.Expect(h.code("is-active loop")).To(Equal(3))
	h.Expect(h.code("start loop")).To(BeZero())
	h.Expect(h.state("loop")()).To(Equal("active"))
	h.Eventually(h.pids, "30s").Should(HaveLen(1))
	h.Expect(h.code("start loop.service")).To(BeZero(), "starting twice does nothing")
	h.Expect(h.pids()).To(HaveLen(1))

	h.Expect(syscall.Kill(h.pids()[0], syscall.SIGKILL)).To(Succeed())
	h.Eventually(h.pids, "30s").Should(HaveLen(2), "Restart=always")
	h.Expect(h.code("restart --no-block loop")).To(BeZero())
	h.Eventually(h.pids, "30s").Should(HaveLen(3))
	h.Eventually(h.state("loop"), "30s").Should(Equal("active"))
	code, output := h.systemctl("status loop")
	h.Expect(code).To(BeZero())
	h.Expect(output).To(ContainSubstring("Active: active"))

	h.Expect(h.code("stop loop")).To(BeZero())
	h.Expect(h.state("loop")()).To(Equal("inactive"))
	h.Expect(syscall.Kill(h.pids()[2], 0)).NotTo(Succeed())
	h.Expect(h.code("try-restart loop")).To(BeZero())
	h.Expect(h.state("loop")()).To(Equal("inactive"), "try-restart leaves a stopped unit alone")
	h.Expect(h.code("--quiet is-active loop")).To(Equal(3))
}

func TestEnable(t *testing.T) {
	h := newHost(t, map[string]string{"loop.service": loop})
	link := h.root.Path("etc/systemd/system/multi-user.target.wants/loop.service")
	h.Expect(h.code("enable loop")).To(BeZero())
	h.Expect(link).To(BeAnExistingFile())
	h.Expect(h.code("is-enabled loop")).To(BeZero())
	h.Expect(h.state("loop")()).To(Equal("inactive"))
	h.Expect(h.code("enable --now loop")).To(BeZero())
	h.Expect(h.state("loop")()).To(Equal("active"))
	h.Expect(h.code("disable --now loop")).To(BeZero())
	h.Expect(h.state("loop")()).To(Equal("inactive"))
	h.Expect(link).NotTo(BeAnExistingFile())
}

func TestUnknownUnitsAndVerbs(t *testing.T) {
	h := newHost(t, nil)
	h.Expect(h.code("start missing")).To(Equal(5))
	h.Expect(h.code("enable missing")).To(Equal(1))
	h.Expect(h.code("status missing")).To(Equal(4))
	h.Expect(h.code("is-active missing")).To(Equal(3))
	h.Expect(h.code("daemon-reload")).To(BeZero())
	for _, line := range []string{"mask missing", "start --nonsense missing", "start", ""} {
		h.Expect(h.code(line)).To(Equal(1), line)
	}
}

func TestChangesCountAfterDaemonReload(t *testing.T) {
	unit := func(word string) string {
		return "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo " + word + " > /run/word'\n"
	}
	h := newHost(t, map[string]string{"a.service": unit("one")})
	h.Expect(h.code("start a")).To(BeZero())
	h.Expect(h.file("run/word")()).To(Equal("one\n"), "start of a oneshot waits for its end")
	h.write("a.service", unit("two"))
	h.Expect(h.code("start a")).To(BeZero())
	h.Expect(h.file("run/word")()).To(Equal("one\n"))
	h.Expect(h.code("daemon-reload")).To(BeZero())
	h.Expect(h.code("start a")).To(BeZero())
	h.Expect(h.file("run/word")()).To(Equal("two\n"))
	h.Expect(h.state("a")()).To(Equal("inactive"))
}

func TestFailures(t *testing.T) {
	h := newHost(t, map[string]string{
		"once.service":   "[Service]\nType=oneshot\nExecStart=/bin/false\n",
		"pre.service":    "[Service]\nExecStartPre=/bin/false\nExecStart=/bin/sh -c 'echo > /run/never'\n",
		"dash.service":   "[Service]\nType=oneshot\nExecStartPre=-/bin/false\nExecStart=/bin/true\nRemainAfterExit=yes\n",
		"loop.service":   "[Unit]\nStartLimitIntervalSec=1h\n[Service]\nExecStart=/bin/false\nRestart=on-failure\nRestartSec=10ms\n",
		"calm.service":   "[Service]\nExecStart=/bin/true\nRestart=on-failure\n",
		"absent.service": "[Service]\nExecStart=/opt/bin/absent\n",
		"env.service":    "[Service]\nEnvironmentFile=/etc/absent\nExecStart=/bin/true\n",
		"long.service":   "[Service]\nExecStart=/bin/sleep 1000\nRuntimeMaxSec=100ms\n",
	})
	h.Expect(h.code("start once")).To(Equal(1))
	h.Expect(h.code("is-failed once")).To(BeZero())
	h.Expect(h.code("reset-failed once")).To(BeZero())
	h.Expect(h.code("is-failed once")).To(Equal(1))
	h.Expect(h.code("start pre")).To(Equal(1))
	h.Expect(h.root.Path("run/never")).NotTo(BeAnExistingFile())
	h.Expect(h.code("start dash")).To(BeZero())
	h.Expect(h.state("dash")()).To(Equal("active"), "RemainAfterExit")
	h.Expect(h.code("start --no-block loop")).To(BeZero())
	h.Eventually(h.state("loop"), "30s").Should(Equal("failed"), "the start limit")
	h.Expect(h.code("start calm")).To(BeZero())
	h.Eventually(h.state("calm"), "30s").Should(Equal("inactive"))
	h.Expect(h.code("start absent")).To(Equal(1))
	h.Expect(h.code("start env")).To(Equal(1))
	h.Expect(h.code("start long")).To(BeZero())
	h.Eventually(h.state("long"), "30s").Should(Equal("failed"))
	_, output := h.systemctl("status long")
	h.Expect(output).To(ContainSubstring("timeout"))
}

// A mount has no command, and an instance has the file of its template.
func TestStart_MountAndInstance_AreActive(t *testing.T) {
	h := newHost(t, map[string]string{
		`mnt-local\x2dssd.mount`: "[Mount]\nWhat=/dev/nvme1n1\nWhere=/mnt/local-ssd\n",
		"say@.service":           "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sh -c 'echo %i > /run/said'\n",
	})
	h.Expect(h.code(`restart mnt-local\x2dssd.mount`)).To(BeZero())
	h.Expect(h.code(`is-active mnt-local\x2dssd.mount`)).To(BeZero())
	h.Expect(h.code("start say@hello.service")).To(BeZero())
	content, err := os.ReadFile(h.root.Path("/run/said"))
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(string(content)).To(Equal("hello\n"))
}
