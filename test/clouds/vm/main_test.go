package main_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/testinputs"
)

var binaries string

func TestMain(m *testing.M) {
	os.Exit(childprocess.Run(m.Run, &binaries, map[string]string{"sim-machine": "."}))
}

// vm is a machine under test.
type vm struct {
	*WithT
	root, console string
	process       *childprocess.Process
}

// boot starts a machine with the user data.
func boot(t *testing.T, userData string) *vm {
	t.Helper()
	testinputs.Repository(t) // TestMain has built the program.
	v := &vm{WithT: NewWithT(t)}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			_, _ = w.Write([]byte("session"))
		case r.Header.Get("X-aws-ec2-metadata-token") != "session":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/latest/user-data":
			_, _ = w.Write([]byte(userData))
		case r.URL.Path == "/latest/meta-data/instance-id":
			_, _ = w.Write([]byte("i-test"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(service.Close)
	directory := t.TempDir()
	v.root, v.console = filepath.Join(directory, "root"), filepath.Join(directory, "console.log")
	image := filepath.Join(directory, "image")
	v.Expect(os.MkdirAll(filepath.Join(image, "opt/bin"), 0o755)).To(Succeed())
	v.Expect(os.WriteFile(filepath.Join(image, "opt/bin/agent"), []byte(agent), 0o755)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var err error
	v.process, err = childprocess.Start(ctx, childprocess.Spec{
		Name: "machine", Path: filepath.Join(binaries, "sim-machine"), Log: v.console,
		Args: []string{"--metadata-endpoint=" + service.URL, "--root=" + v.root, "--image=" + image},
	})
	v.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		v.process.Stop(5 * time.Second)
		if t.Failed() {
			t.Log(v.read(v.console))
		}
	})
	return v
}

// agent leaves a child in a session of its own, which no signal to the process group reaches.
const agent = `#!/bin/sh
setsid sleep 1000 &
echo $! > "$ROOT/run/child.pid"
echo $$ > "$ROOT/run/agent.pid"
echo "agent $*"
while :; do sleep 1; done
`

func (v *vm) read(path string) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// file is the content of a file of the machine.
func (v *vm) file(path string) func() string {
	return func() string { return v.read(filepath.Join(v.root, path)) }
}

// pid is what a file of the machine has, and 0 before its service has written it.
func (v *vm) pid(path string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(v.file(path)()))
	return n
}

// pids awaits the processes of the service: it is active as soon as its program is started, before that has written anything.
func (v *vm) pids() (agent, child int) {
	v.Eventually(func() int { return v.pid("run/agent.pid") }, "30s").ShouldNot(BeZero())
	return v.pid("run/agent.pid"), v.pid("run/child.pid")
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	state := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))[0]
	return state != "Z" && state != "X"
}

const userData = `#cloud-config
hostname: ignored
write_files:
- path: /etc/agent/args
  permissions: '0600'
  content: ARGS=one two
- path: /etc/agent/packed
  encoding: gz+b64
  content: H4sIAAAAAAACA8tIzcnJVyjPL8pJ4QIALTsIrwwAAAA=
- path: /etc/systemd/system/agent.service
  content: |
    [Unit]
    Description=A test
    [Service]
    Environment="WHERE=/var/lib/agent"
    EnvironmentFile=/etc/agent/args
    ExecStartPre=/bin/mkdir -p /var/lib/agent
    ExecStart=/opt/bin/agent --config=/etc/agent/args $ARGS ${WHERE}
    Restart=always
    RestartSec=100ms
    [Install]
    WantedBy=multi-user.target
runcmd:
- [sh, -c, "echo 'it''s' > /etc/agent/first"]
- "false"
- echo $ROOT > /etc/agent/root
- [systemctl, daemon-reload]
- systemctl enable --now agent
- systemctl is-active agent.service > /run/state
`

func TestBoot(t *testing.T) {
	v := boot(t, userData)
	v.Eventually(v.file("run/state"), "30s").Should(Equal("active\n"))
	v.Expect(v.file("etc/agent/first")()).To(Equal("its\n"))
	v.Expect(v.file("etc/agent/packed")()).To(Equal("hello world\n"))
	v.Expect(v.file("etc/agent/root")()).To(Equal(v.root + "\n"))
	v.Eventually(v.file("var/log/agent.service.log"), "30s").Should(Equal(
		fmt.Sprintf("agent --config=%s/etc/agent/args one two %s/var/lib/agent\n", v.root, v.root)))
	v.Expect(filepath.Join(v.root, "var/lib/agent")).To(BeADirectory())
	info, err := os.Stat(v.root)
	v.Expect(err).NotTo(HaveOccurred())
	v.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))
	info, err = os.Stat(filepath.Join(v.root, "etc/agent/args"))
	v.Expect(err).NotTo(HaveOccurred())
	v.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	_, err = os.Lstat(filepath.Join(v.root, "etc/systemd/system/multi-user.target.wants/agent.service"))
	v.Expect(err).NotTo(HaveOccurred())
	console := v.read(v.console)
	v.Expect(console).To(ContainSubstring("boot: instance i-test"))
	v.Expect(console).To(ContainSubstring("not simulated: hostname"))
	v.Expect(console).To(ContainSubstring("agent.service: agent --config"))

	// A service that is killed is restarted, and nothing of its first run is left.
	first, child := v.pids()
	v.Expect(syscall.Kill(first, syscall.SIGKILL)).To(Succeed())
	v.Eventually(func() int { return v.pid("run/agent.pid") }, "30s").ShouldNot(Or(BeZero(), Equal(first)))
	v.Eventually(func() bool { return alive(child) }, "30s").Should(BeFalse())
}

func TestNothingOutlivesTheMachine(t *testing.T) {
	for name, end := range map[string]func(*vm){
		"switched off": func(v *vm) { v.process.Stop(time.Minute) },
		"killed":       func(v *vm) { v.Expect(syscall.Kill(v.process.PID(), syscall.SIGKILL)).To(Succeed()) },
	} {
		t.Run(name, func(t *testing.T) {
			v := boot(t, userData)
			v.Eventually(v.file("run/state"), "30s").Should(Equal("active\n"))
			agent, child := v.pids()
			pids := []int{v.process.PID(), agent, child}
			for _, pid := range pids {
				v.Expect(alive(pid)).To(BeTrue())
			}
			end(v)
			v.Eventually(v.process.Done(), "30s").Should(BeClosed())
			for _, pid := range pids {
				v.Eventually(func() bool { return alive(pid) }, "30s").Should(BeFalse())
			}
			v.Eventually(func() []string { return commandsWith(v.root) }, "30s").Should(BeEmpty())
			v.Eventually(v.root, "30s").ShouldNot(BeAnExistingFile(), "it holds credentials")
		})
	}
}

// commandsWith are the processes whose command line or environment names the root, the guard's among
// them.
func commandsWith(root string) []string {
	found, _ := filepath.Glob("/proc/[0-9]*")
	var out []string
	for _, directory := range found {
		line, _ := os.ReadFile(filepath.Join(directory, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(directory, "environ"))
		if strings.Contains(string(line)+string(env), root) {
			out = append(out, directory+" "+string(line))
		}
	}
	return out
}

func TestUserDataThatIsAScript(t *testing.T) {
	v := boot(t, "#!/bin/sh\necho script > $ROOT/run/out\n")
	v.Eventually(v.file("run/out"), "30s").Should(Equal("script\n"))
}

func TestUserDataThatIsNothing(t *testing.T) {
	v := boot(t, "Content-Type: multipart/mixed")
	v.Eventually(func() string { return v.read(v.console) }, "30s").Should(ContainSubstring("neither #cloud-config nor a script"))
	v.Expect(v.process.Running()).To(BeTrue())
}
