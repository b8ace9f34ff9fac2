package instance

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/calls/callstest"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

func TestUserDataAreStoredAndRemoved(t *testing.T) {
	for _, test := range []struct{ size, secrets int }{{1, 1}, {partSize, 1}, {partSize + 1, 2}, {maxParts * partSize, maxParts}} {
		r := newSecretsRig(t, test.size, simulator.Options{})
		r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
		r.Expect(r.sim.Secrets()).To(HaveLen(test.secrets))
		r.Expect(r.stored()).To(Equal(r.launch.UserData))
		for _, s := range r.sim.Secrets() {
			r.Expect(s.Tags).To(HaveKeyWithValue(TagOwnerUID, "uid-1"))
			r.Expect(s.Tags).To(HaveKeyWithValue(TagMachine, "default/m"))
		}
		r.Expect(r.asked()).To(Equal(strings.TrimSpace(strings.Repeat("DescribeSecret CreateSecret ", test.secrets))))
		r.Expect(r.RemoveUserData(t.Context(), r.launch.Scope, r.handle)).To(Succeed())
		r.Expect(r.sim.Secrets()).To(BeEmpty())
		r.asked()
		r.Expect(r.RemoveUserData(t.Context(), r.launch.Scope, r.handle)).To(Succeed())
		r.Expect(r.asked()).
			To(Equal(strings.TrimSpace(strings.Repeat("DescribeSecret ", maxParts))), "what is gone costs a look at each part that there could be")
	}
	counted, err := callstest.Counted("aws", "us-east-1")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(counted["CreateSecret ok"]).To(BeNumerically(">=", 1+1+2+maxParts), "calls are measured like those of EC2")
	r := newSecretsRig(t, maxParts*partSize+1, simulator.Options{})
	r.Expect(driver.IsTerminal(r.StoreUserData(t.Context(), r.launch))).To(BeTrue())
	r.Expect(r.sim.Secrets()).To(BeEmpty())
}

// The process may die, or an answer get lost, before and after each call: repeating it leads to the same, and nothing stays.
func TestStoringAndRemovingFromAnyPoint(t *testing.T) {
	for _, cut := range []simapi.Cut{simapi.CutBefore, simapi.CutAfter} {
		for _, action := range []string{"CreateSecret", "DescribeSecret", "DeleteSecret"} {
			for skip := range 3 {
				r := newSecretsRig(t, 2*partSize+1, simulator.Options{})
				r.sim.AddFault(simapi.Fault{Action: action, Skip: skip, Count: 1, Cut: cut})
				_ = r.StoreUserData(t.Context(), r.launch)
				r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
				r.Expect(r.stored()).To(Equal(r.launch.UserData))
				for range 2 {
					if r.RemoveUserData(t.Context(), r.launch.Scope, r.handle) == nil {
						break
					}
				}
				r.Expect(r.sim.Secrets()).To(BeEmpty(), "%s %s %d", cut, action, skip)
			}
		}
	}
}

// A user may have deleted a part, and another one be created late.
func TestPartsBehindAMissingOneAreRemoved(t *testing.T) {
	r := newSecretsRig(t, 2*partSize+1, simulator.Options{})
	r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
	region, err := r.in(t.Context(), r.launch.Scope)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(region.deleteSecret(t.Context(), partName(secretID(r.launch.Owner, r.launch.OwnerUID), 1))).To(Succeed())
	r.Expect(r.sim.Secrets()).To(HaveLen(2))
	r.Expect(r.RemoveUserData(t.Context(), r.launch.Scope, r.handle)).To(Succeed())
	r.Expect(r.sim.Secrets()).To(BeEmpty())
}

func TestRenewedUserDataReplaceTheOld(t *testing.T) {
	r := newSecretsRig(t, partSize+1, simulator.Options{})
	first := r.launch.UserData
	for n, data := range [][]byte{first, first, noise(partSize+1, 2), first, noise(partSize+1, 3)} {
		r.launch.UserData = data
		r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
		r.Expect(r.stored()).To(Equal(data), "step %d", n)
		r.asked()
		r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
		r.Expect(r.asked()).To(Equal("DescribeSecret DescribeSecret"), "what is the same is not written")
	}
	r.launch.UserData = []byte("short")
	r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
	r.Expect(r.RemoveUserData(t.Context(), r.launch.Scope, r.handle)).To(Succeed())
	r.Expect(r.sim.Secrets()).To(BeEmpty(), "also the part that is not needed any more")
}

func TestSecretsOfOthersAreLeftAlone(t *testing.T) {
	for name, tags := range map[string]map[string]string{
		"no tags":               nil,
		"another UID":           {TagOwnerUID: "uid-2", TagMachine: "default/m"},
		"another object":        {TagOwnerUID: "uid-1", TagMachine: "default/other"},
		"half of the mark":      {TagOwnerUID: "uid-1"},
		"the other half of it ": {TagMachine: "default/m"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newSecretsRig(t, 10, simulator.Options{})
			id := partName(secretID("default/m", "uid-1"), 1)
			r.sim.PutSecret(id, []byte("theirs"), tags)
			err := r.StoreUserData(t.Context(), r.launch)
			r.Expect(driver.IsConflict(err)).To(BeTrue())
			r.Expect(err).To(MatchError(ContainSubstring(id + " is not marked as this object's")))
			r.Expect(r.RemoveUserData(t.Context(), r.launch.Scope, r.handle)).To(Succeed(), "nothing of ours is there")
			r.sim.ScheduleSecret(id)
			r.Expect(driver.IsConflict(r.StoreUserData(t.Context(), r.launch))).To(BeTrue())
			r.Expect(string(r.sim.SecretValue(id))).To(Equal("theirs"))
			r.Expect(r.asked()).NotTo(Or(ContainSubstring("PutSecretValue"), ContainSubstring("DeleteSecret")))
		})
	}
	r := newSecretsRig(t, 10, simulator.Options{})
	r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
	r.Expect(r.RemoveUserData(t.Context(), r.launch.Scope, driver.Handle{Owner: "default/m"})).To(Succeed())
	r.Expect(r.sim.Secrets()).To(HaveLen(1), "a handle without a UID owns nothing")
}

// A name that is being deleted is waited for; what a user has scheduled for a month is ended, if it is ours.
func TestASecretThatIsBeingDeleted(t *testing.T) {
	r := newSecretsRig(t, 10, simulator.Options{SecretDeletion: time.Minute})
	r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
	r.sim.ScheduleSecret(partName(secretID("default/m", "uid-1"), 1))
	for range 2 {
		err := r.StoreUserData(t.Context(), r.launch)
		r.Expect(driver.IsRefused(err)).To(BeTrue(), "it is tried again")
		r.Expect(err).To(MatchError(ContainSubstring("already scheduled for deletion")))
	}
	r.clock.Step(time.Minute)
	r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
	r.Expect(r.stored()).To(Equal(r.launch.UserData))
}

func TestErrorsOfSecretsManager(t *testing.T) {
	for code, class := range map[string]driver.Class{
		"AccessDeniedException": driver.ClassAuth, "LimitExceededException": driver.ClassQuota, "ThrottlingException": driver.ClassThrottle,
		"InternalServiceError": driver.ClassUnknown, "EncryptionFailure": driver.ClassUnresolved, "InvalidParameterException": driver.ClassTerminal,
	} {
		for _, action := range []string{"CreateSecret", "PutSecretValue", "DescribeSecret", "DeleteSecret"} {
			r := newSecretsRig(t, 10, simulator.Options{})
			if action != "CreateSecret" {
				r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
			}
			r.launch.UserData = []byte("hunter2")
			status := 400
			if class == driver.ClassUnknown {
				status = 500
			}
			r.sim.AddFault(simapi.Fault{Action: action, Error: &simapi.APIError{Code: code, Message: "Not you.", Status: status}})
			err := r.StoreUserData(t.Context(), r.launch)
			if action == "DeleteSecret" {
				err = r.RemoveUserData(t.Context(), r.launch.Scope, r.handle)
			}
			r.Expect(driver.ClassOf(err)).To(Equal(class), code+" "+action)
			r.Expect(err).To(MatchError(action + ": " + code + ": Not you."))
			r.Expect(err.Error()).NotTo(ContainSubstring("hunter2"))
		}
	}
}

// The stub holds nothing of the data, does not change with them, and has room in EC2's user data.
func TestTheStub(t *testing.T) {
	r := newSecretsRig(t, 10, simulator.Options{})
	r.launch.UserData = []byte("hunter2")
	first := userData(r.launch)
	r.launch.UserData = []byte("renewed")
	r.launch.Attempt, r.launch.Token = 7, "another"
	g := r.WithT
	g.Expect(userData(r.launch)).To(Equal(first))
	g.Expect(string(first)).NotTo(ContainSubstring("hunter2"))
	g.Expect(string(first)).NotTo(ContainSubstring("@"+"REGION"), "all is filled in")
	g.Expect(string(first)).To(ContainSubstring("secret='" + secretID("default/m", "uid-1") + "'"))
	g.Expect(len(first)).To(BeNumerically("<", Traits().UserDataLimit/2))
	r.launch.OwnerUID = "uid-2"
	g.Expect(userData(r.launch)).NotTo(Equal(first))
	r.launch.Object.Spec.UserDataStorage.Type = infrav1.UserDataStorageInline
	g.Expect(string(userData(r.launch))).To(Equal("renewed"))
}

func TestLeftSecrets(t *testing.T) {
	r := newSecretsRig(t, partSize+1, simulator.Options{})
	r.launch.Lineage = "uid_epoch_0"
	r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
	r.sim.PutSecret("database", []byte("theirs"), map[string]string{TagOwnerUID: "uid-1"})
	r.sim.PutSecret(secretPrefix+"x/1", []byte("theirs"), nil)
	found, err := r.ListLeftovers(t.Context(), r.launch.Scope)
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(found).To(HaveLen(2))
	for n, l := range found {
		r.Expect(l.Kind).To(Equal(driver.LeftoverUserData))
		r.Expect(l.ID).To(Equal(partName(secretID("default/m", "uid-1"), n+1)))
		r.Expect([]string{string(l.OwnerUID), l.Owner, l.Lineage}).To(Equal([]string{"uid-1", "default/m", "uid_epoch_0"}))
		r.Expect(l.Created.Unix()).To(Equal(r.clock.Now().Unix()))
	}
	// Cleanup leaves secrets to those who are sent for them: it runs for all machines.
	r.asked()
	r.Expect(r.Cleanup(t.Context(), r.launch.Scope, []driver.Handle{r.handle})[0].Err).NotTo(HaveOccurred())
	r.Expect(r.asked()).NotTo(ContainSubstring("Secret"))
	r.handle.Stored = true
	r.Expect(r.Cleanup(t.Context(), r.launch.Scope, []driver.Handle{r.handle})[0].Err).NotTo(HaveOccurred())
	r.Expect(r.sim.Secrets()).To(HaveLen(2), "those of others")
}

// Where the provider may not list secrets, or Secrets Manager fails, volumes and interfaces are found as ever, and it is not asked all the
// time.
func TestSecretsThatCannotBeListed(t *testing.T) {
	r := newSecretsRig(t, 10, simulator.Options{})
	denied := r.sim.AddFault(simapi.Fault{Action: "ListSecrets", Error: &simapi.APIError{Code: "AccessDeniedException"}})
	for range 3 {
		_, err := r.ListLeftovers(t.Context(), r.launch.Scope)
		r.Expect(err).NotTo(HaveOccurred())
	}
	r.Expect(strings.Count(r.asked(), "ListSecrets")).To(Equal(1))
	r.sim.RemoveFault(denied)
	r.clock.Step(deniedFor)
	r.Expect(r.StoreUserData(t.Context(), r.launch)).To(Succeed())
	r.Expect(r.ListLeftovers(t.Context(), r.launch.Scope)).To(HaveLen(1))
	r.sim.AddFault(simapi.Fault{Action: "ListSecrets", Error: &simapi.APIError{Code: "InternalServiceError", Status: 500}})
	_, err := r.ListLeftovers(t.Context(), r.launch.Scope)
	r.Expect(err).NotTo(HaveOccurred())
}

func TestPartsKnowTheWhole(t *testing.T) {
	g := NewWithT(t)
	data := noise(partSize+5, 4)
	list, err := parts(data)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(list[1])).To(HavePrefix(fmt.Sprintf("2 2 %x\n", sha256.Sum256(data))))
	for _, part := range list {
		g.Expect(len(part)).To(BeNumerically("<=", 65536))
	}
}
