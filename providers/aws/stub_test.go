package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// runStub runs the program of the stub that EC2 has for an instance, as cloud-init would, with these programs alone.
func (f *fixture) runStub(id string, programs ...string) (written []byte, output string, err error) {
	f.t.Helper()
	stub := string(f.userData(id))
	_, rest, _ := strings.Cut(stub, "#!/bin/sh\n")
	program, rest, _ := strings.Cut(rest, "\n--millwright-user-data")
	_, include, _ := strings.Cut(rest, "file://")
	include, _, _ = strings.Cut(include, "\n")
	metadata := httptest.NewServer(f.sim.Metadata(id))
	defer metadata.Close()
	root, bin := f.t.TempDir(), f.t.TempDir()
	for _, name := range append(programs, "base64", "gzip", "sed", "sha256sum", "tail", "tr", "cat", "mkdir", "dirname", "mktemp", "rm", "mv",
		"sleep") {
		path, err := exec.LookPath(name)
		if err != nil {
			f.t.Skipf("this machine has no %s", name)
		}
		f.Expect(os.Symlink(path, filepath.Join(bin, name))).To(Succeed())
	}
	if slices.Contains(programs, "aws") { // What it is itself may need other programs.
		wrapper := fmt.Sprintf("#!/bin/sh\nPATH='%s' HOME='%s' AWS_CONFIG_FILE=/dev/null AWS_SHARED_CREDENTIALS_FILE=/dev/null exec aws \"$@\"\n",
			os.Getenv("PATH"), os.Getenv("HOME"))
		f.Expect(os.Remove(filepath.Join(bin, "aws"))).To(Succeed())
		f.Expect(os.WriteFile(filepath.Join(bin, "aws"), []byte(wrapper), 0o755)).To(Succeed())
	}
	f.Expect(os.WriteFile(filepath.Join(bin, "systemctl"), []byte("#!/bin/sh\necho systemctl \"$@\" >&2\n"), 0o755)).To(Succeed())
	script := filepath.Join(root, "boothook")
	f.Expect(os.WriteFile(script, []byte("#!/bin/sh\n"+program), 0o700)).To(Succeed())
	ctx, cancel := context.WithTimeout(f.ctx, time.Minute)
	defer cancel()
	shell, err := exec.LookPath("sh")
	f.Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, shell, script)
	command.Env = []string{
		"PATH=" + bin, "ROOT=" + root, "MILLWRIGHT_FETCH_LIMIT=0", "AWS_EC2_METADATA_SERVICE_ENDPOINT=" + metadata.URL + "/",
		"AWS_ENDPOINT_URL_SECRETS_MANAGER=" + f.endpoint,
	}
	var all bytes.Buffer
	command.Stdout, command.Stderr = &all, &all
	err = command.Run()
	written, _ = os.ReadFile(filepath.Join(root, include))
	if info, statErr := os.Stat(filepath.Join(root, include)); statErr == nil {
		f.Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o600)))
	}
	return written, all.String(), err
}

// An instance with curl fetches what was stored, by the credentials of its role.
func TestTheStubFetchesTheUserData(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	noise := make([]byte, 150_000)
	_, _ = rand.NewChaCha8([32]byte{5}).Read(noise)
	f.machineWithData("m", noise, "", inSecrets)
	f.machine("other", inSecrets)
	m := f.becomesReady("m")
	f.becomesReady("other")
	f.Expect(f.secretNames()).To(HaveLen(4), "three of one, one of the other")
	written, output, err := f.runStub(m.Status.InstanceID, "curl")
	f.Expect(err).NotTo(HaveOccurred(), output)
	f.Expect(bytes.Equal(written, noise)).To(BeTrue())
	f.Expect(output).To(And(ContainSubstring("systemctl restart cloud-init.service"), Not(ContainSubstring("simulated/"))))
	f.Expect(f.calls("GetSecretValue")).To(Equal(3))
	for _, c := range f.sim.Calls() {
		if c.Action == "GetSecretValue" {
			f.Expect(c.Caller).To(Equal("ASIASIMULATEDNODE"))
		}
	}

	t.Run("with the AWS CLI", func(t *testing.T) {
		other, err := f.get("other")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		if exec.Command("aws", "--version").Run() != nil {
			t.Skip("this machine has no AWS CLI")
		}
		written, output, err := f.runStub(other.Status.InstanceID, "aws")
		NewWithT(t).Expect(err).NotTo(HaveOccurred(), output)
		NewWithT(t).Expect(string(written)).To(Equal("#cloud-config\n"))
	})

	// Parts of different data are not mixed, and a role that may not read is reported.
	for _, name := range f.secretNames() {
		if strings.HasSuffix(name, "/2") {
			f.sim.PutSecret(name, []byte("2 3 0000\nother"), nil)
		}
	}
	written, output, err = f.runStub(m.Status.InstanceID, "curl")
	f.Expect(err).To(HaveOccurred())
	f.Expect(written).To(BeEmpty())
	f.Expect(output).To(ContainSubstring("do not belong together"))
	f.sim.AddFault(simapi.Fault{Action: "GetSecretValue", Error: &simapi.APIError{Code: "AccessDeniedException"}})
	written, output, err = f.runStub(m.Status.InstanceID, "curl")
	f.Expect(err).To(HaveOccurred())
	f.Expect(written).To(BeEmpty())
	f.Expect(output).To(ContainSubstring("AccessDeniedException"))
}
