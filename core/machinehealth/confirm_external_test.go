package machinehealth_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/test/coretest/workers"
)

// TestALostRequestForANodeThatIsWell: a user deletes the request after a restart of the core. It is not created again, although the cache
// has the Node as it was: the Node is read once more before. That of a Node that is still ill is.
func TestALostRequestForANodeThatIsWell(t *testing.T) {
	w := newWorld(t)
	target := w.target()
	w.machine("a", "True")
	w.machine("b", "True")
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.start()
	w.check("workers", externally)
	for _, name := range []string{"a", "b"} {
		w.becomes(name, succeeded, well)
		w.reports(name, "False", 0)
		w.becomes(name, external, waiting)
	}
	w.Stop()
	w.start()
	w.looked(func() { w.touch("a", "again") })
	reads := w.counted(target, "a")
	target.Mute()
	w.reports("a", "True", 0)
	before := map[string]string{}
	for _, name := range []string{"a", "b"} {
		request, there := w.request(name)
		w.G.Expect(there).To(BeTrue())
		before[name] = string(request.GetUID())
		w.G.Expect(direct.Delete(w.Ctx, request)).To(Succeed())
	}
	w.G.Eventually(func(g Gomega) {
		request, there := w.request("b")
		g.Expect(there).To(BeTrue())
		g.Expect(string(request.GetUID())).NotTo(Equal(before["b"]))
	}).WithTimeout(workers.Timeout).Should(Succeed())
	w.becomes("a", succeeded, well)
	w.becomes("a", external, "")
	w.G.Expect(reads.Load()).To(BeNumerically(">", 0))
	w.G.Consistently(func() bool { _, there := w.request("a"); return there }).WithTimeout(time.Second).Should(BeFalse())
}
