package node

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strings"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// maxFile is the size of a file that is still decompressed, in bytes. A bundle has room for less of what cannot be compressed.
const maxFile = 4 << 20

// Content yields the content of a file whose source is a Secret.
type Content func(bootstrapv1.SecretKeyReference) ([]byte, error)

// Files returns the files of the spec that belong to one stage, decoded. An error of content is
// returned as it is; content that cannot be decoded is an *InvalidContentError.
func Files(spec *bootstrapv1.CloudConfigSpec, atBoot bool, content Content) ([]File, error) {
	var out []File
	for i := range spec.Files {
		f := &spec.Files[i]
		if f.AtBoot() != atBoot {
			continue
		}
		data, err := read(f, content)
		if err != nil {
			return nil, err
		}
		out = append(out, File{Path: f.Path, Mode: f.Mode(), Readers: readers(f), Content: data})
	}
	return out, nil
}

func read(f *bootstrapv1.File, content Content) ([]byte, error) {
	var data []byte
	switch {
	case f.ContentFrom != nil:
		var err error
		if data, err = content(f.ContentFrom.Secret); err != nil {
			return nil, err
		}
	case f.Content != nil:
		data = []byte(*f.Content)
	}
	if f.Encoding == bootstrapv1.FileEncodingBase64 || f.Encoding == bootstrapv1.FileEncodingGzipBase64 {
		decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), ""))
		if err != nil {
			return nil, &InvalidContentError{Path: f.Path, Message: "is not valid base64"}
		}
		data = decoded
	}
	if f.Encoding == bootstrapv1.FileEncodingGzip || f.Encoding == bootstrapv1.FileEncodingGzipBase64 {
		return decompress(f.Path, data)
	}
	return data, nil
}

// decompress returns what gzip has compressed. A few kilobytes can become gigabytes, so it stops at maxFile.
func decompress(path string, data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, &InvalidContentError{Path: path, Message: "is not compressed by gzip"}
	}
	out, err := io.ReadAll(io.LimitReader(reader, maxFile+1))
	switch {
	case err != nil:
		return nil, &InvalidContentError{Path: path, Message: "is compressed by gzip, and damaged or cut short"}
	case len(out) > maxFile:
		return nil, &InvalidContentError{Path: path, Message: fmt.Sprintf("has more than %d bytes after decompression", maxFile)}
	}
	return out, nil
}

// InvalidContentError means that a file's content is not what its encoding requires. It does not repeat
// the content, which may be confidential.
type InvalidContentError struct {
	// Path of the file.
	Path string
	// Message is what is wrong.
	Message string
}

// Error implements error.
func (e *InvalidContentError) Error() string {
	return fmt.Sprintf("the content of file %s %s", e.Path, e.Message)
}

// NewBundle puts together what a machine downloads: the managed files, the units with their drop-ins,
// and the kubelet's unit, last, so that it starts when everything that it may need is there. It fails
// with an *InvalidLabelError or an *InvalidKubeletConfigError only.
func NewBundle(spec *bootstrapv1.CloudConfigSpec, managed []File, kubelet KubeletOptions) (*Bundle, error) {
	if err := checkLabels(kubelet.Spec.NodeLabels); err != nil {
		return nil, err
	}
	kubelet.HasKubeadmAuthority = slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return f.Path == kubeadmAuthority })
	config, err := KubeletConfigFile(kubelet)
	if err != nil {
		return nil, err
	}
	bundle := &Bundle{Files: append([]File{}, managed...)}
	last := Unit{Name: KubeletUnit, Enable: true, Command: string(bootstrapv1.UnitCommandStart), Own: true}
	const mask = unitDirectory + "/" + KubeletUnit + ".d/" + kubeadmDropIn
	masked := slices.ContainsFunc(spec.Files, func(f bootstrapv1.File) bool { return f.Path == mask })
	for i := range spec.Units {
		u := &spec.Units[i]
		bundle.Files = append(bundle.Files, unitFiles(spec, u)...)
		if u.Name == KubeletUnit {
			last.Enable, last.Command = u.Enabled(), string(u.CommandOrDefault())
			masked = masked || slices.ContainsFunc(u.DropIns, func(d bootstrapv1.DropIn) bool { return d.Name == kubeadmDropIn })
		} else if !onlyWritten(u.Name) {
			template := templateOf(spec, u.Name)
			bundle.Units = append(bundle.Units, Unit{
				Name: u.Name, Enable: u.Enabled(), Command: string(u.CommandOrDefault()),
				Own: u.Content != "" || (template != nil && template.Content != ""),
			})
		}
	}
	ofKubelet := func(path string, content []byte) File {
		return File{Path: path, Mode: bootstrapv1.DefaultPermissions, Unit: KubeletUnit, Content: content}
	}
	if !masked {
		bundle.Files = append(bundle.Files, ofKubelet(mask, []byte("# This masks the file of kubeadm's packages.\n")))
	}
	bundle.Files = append(bundle.Files, ofKubelet(kubeletScript, []byte(compact(kubeletUnitScript))), ofKubelet(kubeletConfigFile, config),
		ofKubelet(unitDirectory+"/"+KubeletUnit, KubeletUnitFile(kubelet)))
	bundle.Units = append(bundle.Units, last)
	return bundle, nil
}
