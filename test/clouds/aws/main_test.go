package main_test

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	. "github.com/onsi/gomega"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simclient"
	"millwright.dev/test/testinputs"
)

var binaries string

func TestMain(m *testing.M) {
	os.Exit(childprocess.Run(m.Run, &binaries, map[string]string{"ec2-simulator": ".", "sim-machine": "../vm"}))
}

// simulator is the program with a client of either interface.
type simulator struct {
	*WithT
	ctx     context.Context
	state   string
	process *childprocess.Process
	client  *sdk.Client
	sim     *simclient.Client
}

func start(t *testing.T, arguments ...string) *simulator {
	t.Helper()
	testinputs.Repository(t) // TestMain has built the programs.
	s := &simulator{WithT: NewWithT(t), ctx: t.Context(), state: filepath.Join(t.TempDir(), "state")}
	ready := filepath.Join(t.TempDir(), "ready")
	var err error
	s.process, err = childprocess.Start(context.Background(), childprocess.Spec{
		Name: "ec2-simulator", Path: filepath.Join(binaries, "ec2-simulator"), Log: filepath.Join(t.TempDir(), "log"),
		Args: append([]string{
			"--ready-file=" + ready, "--state-dir=" + s.state, "--boot", "--machine-binary=" + filepath.Join(binaries, "sim-machine"),
			"--pending-delay=100ms", "--shutting-down-delay=100ms",
		}, arguments...),
	})
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { s.process.Stop(10 * time.Second) })
	s.Eventually(func() ([]byte, error) { return os.ReadFile(ready) }, "30s").ShouldNot(BeEmpty())
	endpoint, err := os.ReadFile(ready)
	s.Expect(err).NotTo(HaveOccurred())
	s.sim = simclient.New(string(endpoint))
	s.client = sdk.New(sdk.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(string(endpoint)),
		Credentials: credentials.NewStaticCredentialsProvider("AKIASIMULATED", "secret", ""),
	})
	return s
}

const userData = `#cloud-config
write_files:
- path: /etc/systemd/system/sleeper.service
  content: |
    [Service]
    ExecStart=/bin/sh -c 'setsid sleep 1000 & echo up > /run/up; wait'
runcmd:
- systemctl start sleeper.service
- echo hello from the console
`

// launch boots a machine and returns its ID when its service is up.
func (s *simulator) launch() string {
	out, err := s.client.RunInstances(s.ctx, &sdk.RunInstancesInput{
		ImageId: aws.String(ec2.DefaultImage), InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		SubnetId: aws.String(ec2.DefaultSubnetA), UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(userData))),
	})
	s.Expect(err).NotTo(HaveOccurred())
	id := aws.ToString(out.Instances[0].InstanceId)
	s.Eventually(filepath.Join(s.root(id), "run/up"), "30s").Should(BeARegularFile())
	s.Eventually(func() (string, error) { return s.sim.ConsoleOutput(s.ctx, id) }, "30s").Should(ContainSubstring("hello from the console"))
	return id
}

func (s *simulator) root(id string) string { return filepath.Join(s.state, id, "root") }

// processes are the programs that have to do with the machine.
func (s *simulator) processes(id string) func() []string {
	return func() []string {
		found, _ := filepath.Glob("/proc/[0-9]*")
		var out []string
		for _, directory := range found {
			line, _ := os.ReadFile(filepath.Join(directory, "cmdline"))
			env, _ := os.ReadFile(filepath.Join(directory, "environ"))
			if strings.Contains(string(line)+string(env), s.root(id)) {
				out = append(out, string(line))
			}
		}
		return out
	}
}

func TestMachinesFollowTheirInstances(t *testing.T) {
	s := start(t)
	one, two := s.launch(), s.launch()
	s.Expect(s.processes(one)()).NotTo(BeEmpty())

	_, err := s.client.TerminateInstances(s.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{one}})
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(s.processes(one), "30s").Should(BeEmpty())
	s.Eventually(s.root(one), "30s").ShouldNot(BeAnExistingFile())
	s.Expect(s.processes(two)()).NotTo(BeEmpty())
	s.Expect(s.sim.ConsoleOutput(s.ctx, one)).To(ContainSubstring("hello from the console"), "the console stays")

	s.Expect(s.sim.Vanish(s.ctx, two)).To(Succeed())
	s.Eventually(s.processes(two), "30s").Should(BeEmpty())
}

func TestNothingOutlivesTheSimulator(t *testing.T) {
	t.Run("asked to end", func(t *testing.T) {
		s := start(t)
		id := s.launch()
		s.process.Stop(time.Minute)
		s.Expect(s.process.Err()).NotTo(HaveOccurred())
		s.Expect(s.processes(id)()).To(BeEmpty())
		s.Expect(s.root(id)).NotTo(BeAnExistingFile())
	})
	t.Run("killed", func(t *testing.T) {
		s := start(t)
		id := s.launch()
		s.Expect(syscall.Kill(s.process.PID(), syscall.SIGKILL)).To(Succeed())
		s.Eventually(s.processes(id), "30s").Should(BeEmpty())
		s.Eventually(s.root(id), "30s").ShouldNot(BeAnExistingFile())
	})
}
