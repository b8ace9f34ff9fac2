package approval

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// TestARequestOutlivesItsToken: the token expires between request and approval, and the machine is given others. The kubelet
// does not ask again.
func TestARequestOutlivesItsToken(t *testing.T) {
	f := newFixture(t, "outlives")
	f.ask("outlives-1")
	m := &nodeaccess.Machine{Client: f.remote, Names: f.names, Config: "outlives/config"}
	give := func(id string) {
		t.Helper()
		_, err := m.WriteNodeSecret(t.Context(), f.nodeSecret(), map[string][]byte{node.JoinTokenKey: []byte(id + ".0123456789abcdef")}, id)
		f.Expect(err).NotTo(HaveOccurred())
	}
	give("abcdef")
	give("second")
	give("third3")
	f.Expect(f.reconcile("outlives-1")).To(Succeed())
	f.Expect(f.approved("outlives-1")).To(BeTrue())
}

// TestATokenThatTheMachineWasNotGiven: to be in the group of a machine's tokens is not enough.
func TestATokenThatTheMachineWasNotGiven(t *testing.T) {
	f := newFixture(t, "stranger")
	f.ask("stranger-1")
	m := &nodeaccess.Machine{Client: f.remote, Names: f.names, Config: "stranger/config"}
	for i := range 40 {
		id := fmt.Sprintf("tokn%02d", i)
		_, err := m.WriteNodeSecret(t.Context(), f.nodeSecret(), map[string][]byte{node.JoinTokenKey: []byte(id + ".0123456789abcdef")}, id)
		f.Expect(err).NotTo(HaveOccurred())
	}
	f.Expect(len(nodeaccess.JoinTokens(f.nodeSecret()))).To(BeNumerically("<", 40), "they are bounded")
	f.Expect(nodeaccess.JoinTokens(f.nodeSecret())).To(ContainElement("tokn39"))
	f.Expect(f.reconcile("stranger-1")).To(Succeed())
	f.Expect(f.approved("stranger-1")).To(BeFalse())
}
