package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/aws/instance"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

// EC2 takes 256 characters in the value of a tag; a namespace and a name can have more.
func TestNamesThatAreTooLongForATag(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	prefix := strings.Repeat("n", 252)
	marks := map[string]bool{}
	for _, name := range []string{prefix + "a", prefix + "b"} {
		f.machine(name)
		f.becomesReady(name)
	}
	for _, i := range f.instances() {
		marks[i.Tags[instance.TagMachine]] = true
		f.Expect(i.Tags[instance.TagMachine]).To(HavePrefix(f.namespace + "/nnn"))
	}
	f.Expect(marks).To(HaveLen(2), "no two objects have the same mark")
	f.delete(prefix + "a")
	f.Eventually(f.gone(prefix + "a")).Should(BeTrue())
	f.Expect(f.live()).To(Equal(1))
	f.delete(prefix + "b")
	f.Eventually(f.gone(prefix + "b")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
}
