package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// longData is bootstrap data that EC2 takes only when it is compressed.
var longData = []byte("#cloud-config\n# " + strings.Repeat("long ", 8000))

func compression(c driverv1.UserDataCompression) func(*infrav1.AWSMachine) {
	return func(m *infrav1.AWSMachine) { m.Spec.UserDataCompression = c }
}

// manyUsers is a cloud-config whose users have RSA keys of 4096 bits.
func manyUsers(n int) []byte {
	var out strings.Builder
	out.WriteString("#cloud-config\nusers:\n")
	source := rand.NewChaCha8([32]byte{2})
	for i := range n {
		key := make([]byte, 535)
		_, _ = source.Read(key)
		fmt.Fprintf(&out, "- {name: operator-%d, ssh_authorized_keys: [ssh-rsa %s]}\n", i, base64.StdEncoding.EncodeToString(key))
	}
	return []byte(out.String())
}

// userData returns what the instance reads as its user data.
func (f *fixture) userData(id string) []byte {
	f.t.Helper()
	service := f.sim.Metadata(id)
	ask := func(method, path, header, value string) []byte {
		request := httptest.NewRequest(method, path, nil)
		request.Header.Set("X-aws-ec2-metadata-"+header, value)
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, request)
		f.Expect(answer.Code).To(Equal(http.StatusOK))
		return answer.Body.Bytes()
	}
	token := ask(http.MethodPut, "/latest/api/token", "token-ttl-seconds", "60")
	return ask(http.MethodGet, "/latest/user-data", "token", string(token))
}

// What EC2 does not take as it is, is compressed without being asked for, and unpacks to the same.
func TestCAPA705UserDataThatIsTooLargeIsCompressed(t *testing.T) {
	for name, adjust := range map[string][]func(*infrav1.AWSMachine){
		"by default": nil,
		"Gzip":       {compression(driverv1.UserDataCompressionGzip)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.start()
			f.machineWithData("m", longData, "", adjust...)
			f.becomesReady("m")
			r, err := gzip.NewReader(bytes.NewReader(f.userData(f.instances()[0].ID)))
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(io.ReadAll(r)).To(Equal(longData))
		})
	}
}

// A repeated launch must be the same request to the byte: EC2 refuses a token with other user data.
func TestCompressedUserDataIsTheSameAfterALostAnswer(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Consistency: time.Hour}})
	gate := f.gateBackoff()
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Count: 1, Cut: simapi.CutAfter})
	f.start()
	f.machineWithData("m", longData, "cloud-config")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	f.stop()
	f.start() // Nothing is left of the first one's memory.
	gate.open(f, "m")
	f.Eventually(func() string { m, _ := f.get("m"); return m.Spec.ProviderID }).ShouldNot(BeEmpty())
	var sent []string
	for _, c := range f.sim.Calls() {
		if c.Action == "RunInstances" {
			sent = append(sent, c.Parameters["UserData.SHA256"])
		}
	}
	f.Expect(sent).To(HaveLen(2))
	f.Expect(sent[0]).To(Equal(sent[1]))
	f.Expect(f.instances()).To(HaveLen(1))
}

// What EC2 cannot take in any form is found before anything is asked of it.
func TestCAPA1639UserDataThatCannotBeTaken(t *testing.T) {
	noise := make([]byte, 20*1024)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(noise)
	for name, test := range map[string]struct {
		data        []byte
		format      string
		compression driverv1.UserDataCompression
		contains    []string
	}{
		"None":                          {longData, "cloud-config", driverv1.UserDataCompressionNone, []string{"40016 bytes", "16384", "userDataCompression to Auto"}},
		"too large when compressed":     {noise, "cloud-config", "", []string{"20480 bytes", "when compressed", "16384"}},
		"too many users":                {manyUsers(30), "cloud-config", "", []string{"16384", "user operator-", "25 more (", "Use Ed25519 keys"}},
		"Ignition":                      {longData, "ignition", "", []string{"40016 bytes", "16384", "Ignition", "does not read gzip"}},
		"Ignition that would be packed": {[]byte("{}"), "ignition", driverv1.UserDataCompressionGzip, []string{"Ignition", "does not read gzip"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.start()
			f.machineWithData("m", test.data, test.format, compression(test.compression))
			f.Eventually(f.ready("m")).Should(Equal("False InvalidConfiguration"))
			m, err := f.get("m")
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(m.Status.HasFailed()).To(BeTrue())
			for _, part := range test.contains {
				f.Expect(*m.Status.FailureMessage).To(ContainSubstring(part))
			}
			t.Log(*m.Status.FailureMessage)
			f.Expect(f.sim.Calls()).To(BeEmpty(), "nothing is asked of EC2")
			f.delete("m")
			f.Eventually(f.gone("m")).Should(BeTrue())
		})
	}
}
