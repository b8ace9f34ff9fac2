package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

// notInDNS fails every connection as the resolver does for a name that does not exist.
func notInDNS(t *http.Transport) {
	t.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
	}
}

// The endpoint of a region that does not exist has no address. Nothing was launched, so nothing is reported about launches.
func TestARegionThatDoesNotExist(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.gateBackoff()
	f.endpoint, f.transport = "", notInDNS
	f.start()
	f.machine("m", func(m *infrav1.AWSMachine) { m.Spec.Region = "us-nowhere-1" })
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	f.Expect(f.messages["m"]).To(And(ContainSubstring("ec2.us-nowhere-1.amazonaws.com"), ContainSubstring("its name is not in DNS"),
		ContainSubstring("check the region's name, the endpoint"), ContainSubstring("had no effect"), Not(ContainSubstring("token"))))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeFalse(), "DNS may have been at fault")
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue(), "there is nothing to look for")

	template := f.template("t", "m5.large", func(t *infrav1.AWSMachineTemplate) { t.Spec.Template.Spec.Region = "us-nowhere-1" })
	status := f.capacity(template, metav1.ConditionFalse, driverv1.CloudErrorReason)
	f.Expect(status.Conditions[0].Message).To(ContainSubstring("check the region's name"))
}

// A launch that got no connection has certainly created nothing: its deletion does not wait for an instance that might show up.
func TestDeleteAfterALaunchThatGotNoConnection(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	var refuses atomic.Bool
	f.transport = func(t *http.Transport) {
		dialer := &net.Dialer{}
		t.DisableKeepAlives = true // Each call connects.
		t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if refuses.Load() {
				return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
			}
			return dialer.DialContext(ctx, network, address)
		}
	}
	f.gateBackoff()
	f.start()
	f.machine("first")
	f.becomesReady("first") // The subnet is known from here on: the next launch begins with RunInstances.
	refuses.Store(true)
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	f.Expect(f.messages["m"]).To(And(HavePrefix("RunInstances: no connection to "), ContainSubstring("connection refused"),
		ContainSubstring("had no effect"), Not(ContainSubstring("token"))))
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue(), "there is nothing to look for")
}
