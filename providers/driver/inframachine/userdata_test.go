package inframachine

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"testing"

	. "github.com/onsi/gomega"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

const testLimit = 16 * 1024

// bootstrapData makes data of a size: text that compresses well, or noise that does not compress at all.
func bootstrapData(size int, compressible bool) []byte {
	if compressible {
		return bytes.Repeat([]byte("#cloud-config\n"), size/14+1)[:size]
	}
	source := rand.NewChaCha8([32]byte{1})
	data := make([]byte, size)
	_, _ = source.Read(data)
	copy(data, "#cloud-config\n")
	return data
}

func TestPack(t *testing.T) {
	const (
		auto, none, always = driverv1.UserDataCompressionAuto, driverv1.UserDataCompressionNone, driverv1.UserDataCompressionGzip
		cloudConfig        = "cloud-config"
	)
	small, large, huge := bootstrapData(testLimit, true), bootstrapData(testLimit+1, true), bootstrapData(2*testLimit, false)
	packedAlready, err := compress(huge)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, test := range map[string]struct {
		data        []byte
		format      string
		compression driverv1.UserDataCompression
		// packed is true if the result is compressed; refused is in the error.
		packed  bool
		refused []string
	}{
		"None, and it fits":              {small, cloudConfig, none, false, nil},
		"None, too large":                {large, cloudConfig, none, false, []string{"16385 bytes", "at most 16384", "compressed it would have", "Auto"}},
		"None, too large in any case":    {huge, cloudConfig, none, false, []string{"32768 bytes", "when compressed", "Make it smaller"}},
		"Auto, and it fits":              {small, cloudConfig, auto, false, nil},
		"Auto, too large":                {large, cloudConfig, auto, true, nil},
		"Auto, too large, no format":     {large, "", auto, true, nil},
		"Auto, too large in any case":    {huge, cloudConfig, auto, false, []string{"32768 bytes", "when compressed", "at most 16384"}},
		"Auto, compressed already":       {packedAlready, cloudConfig, auto, false, []string{"at most 16384"}},
		"Auto, Ignition that fits":       {small, "ignition", auto, false, nil},
		"Auto, Ignition too large":       {large, "ignition", auto, false, []string{"16385 bytes", "Ignition, which does not read gzip", "smaller"}},
		"Auto, a format that is unknown": {large, "powershell", auto, false, []string{"powershell", "Gzip"}},
		"unset is Auto":                  {large, cloudConfig, "", true, nil},
		"Gzip":                           {small, cloudConfig, always, true, nil},
		"Gzip, too large":                {large, cloudConfig, always, true, nil},
		"Gzip, an unknown format":        {large, "powershell", always, true, nil},
		"Gzip, Ignition":                 {small, "ignition", always, false, []string{"Ignition, which does not read gzip", "Auto or None"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := pack(test.data, test.format, test.compression, testLimit)
			if len(test.refused) > 0 {
				g.Expect(err).To(HaveOccurred())
				for _, part := range test.refused {
					g.Expect(err.Error()).To(ContainSubstring(part))
				}
				g.Expect(err.Error()).NotTo(ContainSubstring("#cloud-config"), "the data is secret")
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			if !test.packed {
				g.Expect(got).To(Equal(test.data))
				return
			}
			g.Expect(len(got)).To(BeNumerically("<", 500))
			r, err := gzip.NewReader(bytes.NewReader(got))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.ModTime.IsZero()).To(BeTrue())
			g.Expect(io.ReadAll(r)).To(Equal(test.data))
			again, err := pack(test.data, test.format, test.compression, testLimit)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again).To(Equal(got), "the same token comes with the same user data")
		})
	}
	unlimited, err := pack(huge, cloudConfig, auto, 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(unlimited).To(Equal(huge))
}
