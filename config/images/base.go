package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/pkg/errors"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the one that the managers run as, by number, so that a kubelet can see that it is not root.
const user = "65532:65532"

// passwd gives the user its name.
const passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"

// certificates is where Go's programs look for certificate authorities.
const certificates = "etc/ssl/certs/ca-certificates.crt"

// file is one of an image.
type file struct {
	name    string
	mode    int64
	content []byte
}

// baseLayer has what a manager needs beside its program: certificate authorities and the name of its user. There is no shell, no
// C library and no directory that can be written to.
func baseLayer(created time.Time) (v1.Layer, error) {
	return layerOf(created,
		file{name: "etc/passwd", mode: 0o444, content: []byte(passwd)},
		file{name: "etc/group", mode: 0o444, content: []byte("root:x:0:\nnonroot:x:65532:\n")},
		file{name: certificates, mode: 0o444, content: authorities()},
	)
}

// authorities are those of Mozilla's list, as the Go team publishes it, that are trusted without conditions: a file of
// certificates cannot say that one is trusted for certificates of before some day alone.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}

// layerOf is a layer of the files and the directories that they are in. The same files are the same layer.
func layerOf(created time.Time, files ...file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	made := map[string]bool{}
	for _, f := range files {
		for i, c := range f.name {
			if dir := f.name[:i+1]; c == '/' && !made[dir] {
				made[dir] = true
				if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: created}); err != nil {
					return nil, errors.Wrap(err, "writing a layer")
				}
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: created}
		if err := w.WriteHeader(header); err != nil {
			return nil, errors.Wrap(err, "writing a layer")
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, errors.Wrap(err, "writing a layer")
		}
	}
	if err := w.Close(); err != nil {
		return nil, errors.Wrap(err, "writing a layer")
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	layer, err := tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	return layer, errors.Wrap(err, "compressing a layer")
}
