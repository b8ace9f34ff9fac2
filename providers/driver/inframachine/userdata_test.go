package inframachine

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	. "github.com/onsi/gomega"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func TestPack(t *testing.T) {
	g := NewWithT(t)
	data := bytes.Repeat([]byte("#cloud-config\n"), 1000)
	for _, none := range []driverv1.UserDataCompression{"", driverv1.UserDataCompressionNone} {
		plain, err := pack(data, none)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(plain).To(Equal(data))
	}
	packed, err := pack(data, driverv1.UserDataCompressionGzip)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(packed)).To(BeNumerically("<", 500))
	again, err := pack(data, driverv1.UserDataCompressionGzip)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(packed), "the same token comes with the same user data")
	r, err := gzip.NewReader(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(io.ReadAll(r)).To(Equal(data))
}
