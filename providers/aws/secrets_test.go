package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	"millwright.dev/providers/driver/batch"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/orphans"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// inSecrets keeps the user data of a machine in Secrets Manager.
func inSecrets(m *infrav1.AWSMachine) {
	m.Spec.IAMInstanceProfile = "millwright-node"
	m.Spec.UserDataStorage = &infrav1.UserDataStorage{Type: infrav1.UserDataStorageSecretsManager}
}

// joins gives the Machine a Node, as the core does.
func (f *fixture) joins(name string) {
	f.t.Helper()
	m := &clusterv1.Machine{}
	f.Expect(f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, m)).To(Succeed())
	base := m.DeepCopy()
	m.Status.NodeRef = clusterv1.MachineNodeReference{Name: name}
	f.Expect(f.client.Status().Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
}

func (f *fixture) secretNames() []string {
	var names []string
	for _, s := range f.sim.Secrets() {
		names = append(names, s.Name)
	}
	return names
}

// secretCalls counts the calls of Secrets Manager.
func (f *fixture) secretCalls() int {
	n := 0
	for _, c := range f.sim.Calls() {
		if strings.Contains(c.Action, "Secret") {
			n++
		}
	}
	return n
}

func removedRecord(patch string) bool { return strings.Contains(patch, "userDataRemoved") }

func TestUserDataInSecretsManager(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machineWithData("m", []byte("#cloud-config\n# hunter2\n"), "cloud-config", inSecrets)
	m := f.becomesReady("m")
	f.Expect(f.secretNames()).To(HaveLen(1))
	f.Expect(f.secretNames()[0]).To(MatchRegexp(`^infrastructure\.millwright\.dev/[0-9a-f]{40}/1$`))
	f.Expect(string(f.userData(m.Status.InstanceID))).To(And(ContainSubstring(f.secretNames()[0][:60]), Not(ContainSubstring("hunter2"))))
	f.Expect(f.calls("CreateSecret")).To(Equal(1))
	f.Expect(f.secretCalls()).To(Equal(2), "a look before it")

	f.joins("m")
	f.Eventually(f.secretNames).Should(BeEmpty())
	f.Eventually(func() string { m, _ := f.get("m"); return m.Annotations[inframachine.LaunchAnnotation] }).Should(ContainSubstring("userDataRemoved"))
	f.stop()
	f.sim.ClearCalls()
	f.start() // It is not asked for again.
	f.touch("m")
	f.machine("plain")
	f.becomesReady("plain")
	f.Expect(f.secretCalls()).To(BeZero(), "neither for what is removed nor for one without the field")
	f.delete("m")
	f.delete("plain")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Eventually(f.gone("plain")).Should(BeTrue())
	f.Expect(f.secretCalls()).To(Equal(4), "a look at each part that there could be, before the finalizer goes")
	f.Expect(f.calls("GetSecretValue")).To(BeZero())
	events := &eventsv1.EventList{}
	f.Expect(f.client.List(f.ctx, events, client.InNamespace(f.namespace))).To(Succeed())
	f.Expect(fmt.Sprint(m, events, f.sim.Calls())).NotTo(ContainSubstring("hunter2"))
}

// That EC2 refuses what the spec asks for after the launch is no reason to keep what the instance has read.
func TestSecretsGoWhileASettingIsRefused(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{Action: "ModifyNetworkInterfaceAttribute", Error: &simapi.APIError{Code: "UnauthorizedOperation", Message: "Why."}})
	f.start()
	f.machineWithData("m", []byte("#cloud-config\n"), "cloud-config", inSecrets, router)
	f.Eventually(f.ready("m")).Should(Equal("False InstanceNotConfigured"))
	f.Expect(f.secretNames()).To(HaveLen(1))
	f.joins("m")
	f.Eventually(f.secretNames).Should(BeEmpty())
	f.Expect(f.ready("m")()).To(Equal("False InstanceNotConfigured"))
}

// Wherever the process dies, there is one VM, then none, and no secret is left.
func TestCrashesWithSecrets(t *testing.T) {
	held := func(action string, after bool) func(*fixture) {
		return func(f *fixture) {
			f.sim.AddFault(simapi.Fault{ID: "hold", Action: action, HoldBefore: !after, HoldAfter: after})
		}
	}
	holding := func(f *fixture) { f.Eventually(f.holding("hold")).Should(Equal(1)) }
	refused := func(matches func(string) bool) (func(*fixture), func(*fixture)) {
		var tried atomic.Int32
		return func(f *fixture) {
				f.intercept.Patch = patchFault(matches, func() error {
					tried.Add(1)
					return errors.New("the process is about to die")
				})
			}, func(f *fixture) {
				f.Eventually(tried.Load).Should(BeNumerically(">", 0))
			}
	}
	firstWrite, firstTried := refused(func(patch string) bool { return strings.Contains(patch, inframachine.LaunchAnnotation) })
	callWrite, callTried := refused(func(patch string) bool { return strings.Contains(patch, "lastCall") })
	idWrite, idTried := refused(recordsProviderID)
	doneWrite, doneTried := refused(removedRecord)
	for _, test := range []struct {
		name string
		// stage is when the fault comes: 0 before the launch, 1 before the join, 2 before the deletion.
		stage        int
		fault, await func(*fixture)
	}{
		{"before the first record", 0, firstWrite, firstTried},
		{"before CreateSecret", 0, held("CreateSecret", false), holding},
		{"after CreateSecret", 0, held("CreateSecret", true), holding},
		{"before the record of the launch", 0, callWrite, callTried},
		{"before RunInstances", 0, held("RunInstances", false), holding},
		{"after RunInstances", 0, held("RunInstances", true), holding},
		{"before the provider ID", 0, idWrite, idTried},
		{"after DescribeSecret at the join", 1, held("DescribeSecret", true), holding},
		{"after DeleteSecret at the join", 1, held("DeleteSecret", true), holding},
		{"before the record of the removal", 1, doneWrite, doneTried},
		{"after TerminateInstances", 2, held("TerminateInstances", true), holding},
		{"before DeleteSecret at the deletion", 2, held("DeleteSecret", false), holding},
		{"after DeleteSecret at the deletion", 2, held("DeleteSecret", true), holding},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.batch = batch.Options{Gather: time.Millisecond, Interval: -1, Linger: -1} // Nothing else is deleted together with it.
			joins := test.stage < 2
			crash := func(stage int, trigger func()) {
				if stage == test.stage {
					test.fault(f)
					f.stop()
					f.start()
				}
				trigger()
				if stage == test.stage {
					test.await(f)
					f.stop()
					f.sim.ClearFaults()
					f.intercept.Patch = nil
					f.start()
				}
			}
			f.start()
			crash(0, func() { f.machine("m", inSecrets) })
			f.becomesReady("m")
			f.Expect(f.instances()).To(HaveLen(1), "exactly one instance")
			f.Expect(f.secretNames()).To(HaveLen(1))
			if joins {
				crash(1, func() { f.joins("m") })
				f.Eventually(f.secretNames).Should(BeEmpty())
				f.Expect(f.live()).To(Equal(1))
			}
			crash(2, func() { f.delete("m") })
			f.Eventually(f.gone("m")).Should(BeTrue())
			f.Expect(f.live()).To(BeZero())
			f.Expect(f.secretNames()).To(BeEmpty())
		})
	}
}

// Nothing is launched before all parts exist; what refuses it is heard, and it is tried again.
func TestRefusalsOfSecretsManager(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	gate := f.gateBackoff()
	f.start()
	data := make([]byte, 100_000)
	_, _ = rand.NewChaCha8([32]byte{9}).Read(data)
	for n, test := range []struct{ code, want string }{
		{"AccessDeniedException", "False Unauthorized"}, {"LimitExceededException", "False QuotaExceeded"},
		{"ThrottlingException", "False Throttled"}, {"InvalidRequestException", "False CloudError"}, {"InternalServiceError", "False CloudError"},
	} {
		name := fmt.Sprintf("m%d", n)
		fault := f.sim.AddFault(simapi.Fault{Action: "CreateSecret", Parameters: map[string]string{"Name": "*/2"},
			Error: &simapi.APIError{Code: test.code, Message: "Not you."}})
		launched := f.calls("RunInstances")
		f.machineWithData(name, data, "cloud-config", inSecrets)
		f.Eventually(f.ready(name)).Should(Equal(test.want))
		f.Expect(f.messages[name]).To(And(HavePrefix("Nothing has been launched: the user data cannot be stored: "), ContainSubstring(test.code+": Not you")))
		f.Expect(f.calls("RunInstances")).To(Equal(launched), "one part is there, the other is not")
		f.sim.RemoveFault(fault)
		gate.open(f, name)
		f.becomesReady(name)
	}
	// The same for their removal: the machine stays ready meanwhile, and says so.
	f.sim.AddFault(simapi.Fault{Action: "DeleteSecret", Error: &simapi.APIError{Code: "AccessDeniedException", Message: "Not you."}})
	f.joins("m0")
	f.Eventually(func() string { f.ready("m0")(); return f.messages["m0"] }).Should(ContainSubstring("user data cannot be removed: DeleteSecret: AccessDeniedException: Not you"))
	f.Expect(f.ready("m0")()).To(Equal("True InstanceRunning"))
	f.Eventually(f.events).Should(ContainElement("UserDataKept"))
	f.delete("m1")
	f.Eventually(f.ready("m1")).Should(Equal("False Unauthorized"))
	f.Expect(f.messages["m1"]).To(ContainSubstring("user data cannot be removed: DeleteSecret: AccessDeniedException: Not you"))
	f.sim.ClearFaults()
	gate.open(f, "m0")
	gate.open(f, "m1")
	f.Eventually(f.gone("m1")).Should(BeTrue())
	f.Eventually(f.secretNames).Should(HaveLen(6), "of three machines, two parts each")
}

func TestASecretOfSomebodyElse(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "CreateSecret", HoldBefore: true})
	f.start()
	f.machine("m", inSecrets)
	f.Eventually(f.holding("hold")).Should(Equal(1))
	name := ""
	for _, c := range f.sim.Calls() {
		if c.Action == "CreateSecret" {
			name = c.Parameters["Name"]
		}
	}
	f.sim.PutSecret(name, []byte("theirs"), map[string]string{instance.TagMachine: f.namespace + "/m", instance.TagOwnerUID: "other"})
	f.sim.ClearFaults()
	f.Eventually(f.ready("m")).Should(Equal("False ForeignInstance"))
	f.Expect(f.messages["m"]).To(ContainSubstring(name + " is not marked as this object's and is left alone"))
	f.Expect(f.instances()).To(BeEmpty())
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(string(f.sim.SecretValue(name))).To(Equal("theirs"))
	f.Expect(f.calls("PutSecretValue") + f.calls("DeleteSecret")).To(BeZero())
}

// Secrets Manager takes the machines that need it, and no other.
func TestSecretsManagerHangs(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.CloudTimeout = time.Second
	f.start()
	f.machine("old", inSecrets)
	f.becomesReady("old")
	f.machine("plain1")
	f.becomesReady("plain1")
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "DescribeSecret", HoldBefore: true})
	f.joins("old")
	f.Eventually(f.holding("hold")).Should(Equal(1))
	f.machine("m", inSecrets)
	f.Eventually(f.holding("hold")).Should(Equal(2))
	f.machine("plain2")
	f.becomesReady("plain2")
	f.delete("plain1")
	f.Eventually(f.gone("plain1")).Should(BeTrue())
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	f.Expect(f.messages["m"]).To(ContainSubstring("DescribeSecret: no answer within the time limit"))
	f.sim.ClearFaults()
	f.becomesReady("m")
	f.Eventually(f.secretNames).Should(HaveLen(1), "that of m")
}

// An attempt that EC2 refused leaves its secret to the next one; of a machine that has failed for good it is deleted.
func TestSecretsBetweenAttempts(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(apiFault("InsufficientInstanceCapacity", 2))
	f.start()
	f.machine("m", inSecrets)
	m := f.becomesReady("m")
	f.Expect(f.tokens()).To(HaveLen(3))
	f.Expect(f.secretNames()).To(HaveLen(1), "of three attempts")
	f.Expect(f.calls("CreateSecret")).To(Equal(1))
	f.Expect(f.sim.Vanish(m.Status.InstanceID)).To(Succeed())
	f.clock.step(10 * time.Minute)
	f.Eventually(func() bool { m, _ := f.get("m"); return m.Status.HasFailed() }).Should(BeTrue())
	f.Eventually(f.secretNames).Should(BeEmpty())
	f.Expect(f.ready("m")()).To(Equal("False InstanceVanished"))
	f.sim.AddFault(apiFault("InvalidParameterValue", 1))
	f.machine("refused", inSecrets)
	f.Eventually(f.ready("refused")).Should(Equal("False InvalidConfiguration"))
	f.Eventually(f.secretNames).Should(BeEmpty())
}

// Secrets are found by the mark of the object: without a record of them, while it is paused, and after a move.
func TestSecretsAreFoundWithoutARecord(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("lost", inSecrets)
	f.machine("moved", inSecrets)
	f.machine("paused", inSecrets)
	for _, name := range []string{"lost", "moved", "paused"} {
		f.becomesReady(name)
	}
	f.pauseObject("paused", true)
	f.joins("paused")
	f.stop()
	f.patch("lost", func(m *infrav1.AWSMachine) { delete(m.Annotations, inframachine.LaunchAnnotation) })
	f.start()
	f.moved("moved")
	f.becomesReady("moved")
	for _, name := range []string{"lost", "moved", "paused"} {
		f.delete(name)
	}
	f.pauseObject("paused", false)
	for _, name := range []string{"lost", "moved", "paused"} {
		f.Eventually(f.gone(name)).Should(BeTrue())
	}
	f.Expect(f.secretNames()).To(BeEmpty())
}

func TestSecretsOfOrphansAreDeleted(t *testing.T) {
	f := collecting(t, orphans.PolicyDelete)
	f.start()
	f.machine("kept", inSecrets)
	f.becomesReady("kept")
	kept := f.secretNames()
	f.machine("m", inSecrets)
	m := f.becomesReady("m")
	f.Expect(f.secretNames()).To(HaveLen(2))
	foreign := map[string]string{instance.TagOwnerUID: "x", instance.TagMachine: f.namespace + "/x", instance.TagLineage: "other_epoch_0"}
	f.sim.PutSecret("infrastructure.millwright.dev/x/1", []byte("theirs"), foreign)
	f.scanned()
	f.stop()
	f.expunge(m)
	f.start()
	f.Eventually(func() []string { f.scanned(); return f.secretNames() }).Should(ConsistOf(kept[0], "infrastructure.millwright.dev/x/1"))
	f.Eventually(f.events).Should(ContainElement(orphans.EventDeleted))
	f.Expect(f.alive(m.Status.InstanceID)).To(BeFalse())
}

func TestUserDataThatCannotBeStored(t *testing.T) {
	noise := make([]byte, 245_000)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(noise)
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machineWithData("large", noise, "cloud-config", inSecrets)
	f.machineWithData("ignition", []byte("{}"), "ignition", inSecrets)
	for name, parts := range map[string][]string{
		"large":    {"245000 bytes", "spec.userDataStorage takes at most 240000 compressed", "Make it smaller"},
		"ignition": {"Ignition", "spec.userDataStorage.type to Inline in a new template"},
	} {
		f.Eventually(f.ready(name)).Should(Equal("False InvalidConfiguration"))
		for _, part := range parts {
			f.Expect(f.messages[name]).To(ContainSubstring(part))
		}
	}
	f.Expect(f.calls("RunInstances") + f.calls("CreateSecret")).To(BeZero())
}

// The finalizer and the UID are there before the first secret is.
func TestNothingIsStoredWithoutAFinalizer(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "CreateSecret", HoldBefore: true})
	f.start()
	f.machine("m", inSecrets)
	f.Eventually(f.holding("hold")).Should(Equal(1))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(controllerutil.ContainsFinalizer(m, inframachine.Finalizer)).To(BeTrue())
	f.Expect(m.Annotations[inframachine.LaunchAnnotation]).To(ContainSubstring(string(m.UID)))
}

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
	for _, name := range append(programs, "base64", "gzip", "sed", "sha256sum", "tail", "tr", "cat", "mkdir", "dirname", "mktemp", "rm", "mv", "sleep") {
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

	// Parts of different data are not mixed, and a role that may not read is told of.
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
