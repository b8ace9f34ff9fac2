package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver/batch"
	"millwright.dev/providers/driver/inframachine"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

func removedRecord(patch string) bool { return strings.Contains(patch, "userDataRemoved") }

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
		f.Expect(f.messages[name]).
			To(And(HavePrefix("Nothing has been launched: the user data cannot be stored: "), ContainSubstring(test.code+": Not you")))
		f.Expect(f.calls("RunInstances")).To(Equal(launched), "one part is there, the other is not")
		f.sim.RemoveFault(fault)
		gate.open(f, name)
		f.becomesReady(name)
	}
	// The same for their removal: the machine stays ready meanwhile, and says so.
	f.sim.AddFault(simapi.Fault{Action: "DeleteSecret", Error: &simapi.APIError{Code: "AccessDeniedException", Message: "Not you."}})
	f.joins("m0")
	f.Eventually(func() string { f.ready("m0")(); return f.messages["m0"] }).
		Should(ContainSubstring("user data cannot be removed: DeleteSecret: AccessDeniedException: Not you"))
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

// An attempt that EC2 refused leaves its secret to the next one; of a machine that has failed permanently it is deleted.
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
