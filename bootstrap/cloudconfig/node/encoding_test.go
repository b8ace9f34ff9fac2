package node

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

func compressed(content string) string {
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	_, _ = writer.Write([]byte(content))
	_ = writer.Close()
	return out.String()
}

// Files have the encodings of KubeadmConfig, from the spec and from a Secret; what cannot be decoded is named by its path.
func TestFiles_Encoding_IsDecoded(t *testing.T) {
	base64Of := func(content string) string { return base64.StdEncoding.EncodeToString([]byte(content)) }
	const text = "Grüße\n"
	for name, tc := range map[string]struct {
		encoding bootstrapv1.FileEncoding
		content  string
		problem  string
	}{
		"plain":                   {"", text, ""},
		"base64":                  {bootstrapv1.FileEncodingBase64, base64Of(text), ""},
		"base64 in lines":         {bootstrapv1.FileEncodingBase64, base64Of(text)[:4] + "\r\n" + base64Of(text)[4:] + "\n", ""},
		"gzip":                    {bootstrapv1.FileEncodingGzip, compressed(text), ""},
		"gzip and base64":         {bootstrapv1.FileEncodingGzipBase64, base64Of(compressed(text)) + "\n", ""},
		"two members of gzip":     {bootstrapv1.FileEncodingGzip, compressed(text[:2]) + compressed(text[2:]), ""},
		"text as base64":          {bootstrapv1.FileEncodingBase64, "secret!", "file /etc/f is not valid base64"},
		"text as gzip":            {bootstrapv1.FileEncodingGzip, "secret!", "file /etc/f is not compressed by gzip"},
		"text as gzip and base64": {bootstrapv1.FileEncodingGzipBase64, "secret!", "file /etc/f is not valid base64"},
		"base64 of text":          {bootstrapv1.FileEncodingGzipBase64, base64Of("secret!"), "file /etc/f is not compressed by gzip"},
		"gzip that is cut":        {bootstrapv1.FileEncodingGzip, compressed(text)[:15], "is compressed by gzip, and damaged or cut short"},
		"gzip with another sum":   {bootstrapv1.FileEncodingGzip, strings.TrimSuffix(compressed(text), "\x00\x00") + "\x01\x00", "damaged"},
		"ten megabytes":           {bootstrapv1.FileEncodingGzip, compressed(strings.Repeat("\x00", 10<<20)), "has more than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			spec := &bootstrapv1.CloudConfigSpec{Files: []bootstrapv1.File{
				{Path: "/etc/f", Content: ptr.To(tc.content), Encoding: tc.encoding},
				{Path: "/etc/f", ContentFrom: &bootstrapv1.FileSource{}, Encoding: tc.encoding},
			}}
			for i := range spec.Files {
				one := &bootstrapv1.CloudConfigSpec{Files: spec.Files[i : i+1]}
				files, err := Files(one, false, func(bootstrapv1.SecretKeyReference) ([]byte, error) { return []byte(tc.content), nil })
				if tc.problem == "" {
					g.Expect(err).NotTo(HaveOccurred())
					g.Expect(string(files[0].Content)).To(Equal(text))
					continue
				}
				var invalid *InvalidContentError
				g.Expect(errors.As(err, &invalid)).To(BeTrue())
				g.Expect(err.Error()).To(And(ContainSubstring(tc.problem), Not(ContainSubstring("secret"))))
			}
		})
	}
}
