package node

import (
	"encoding/base64"
	"fmt"
	"strings"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

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
		out = append(out, File{Path: f.Path, Mode: f.Mode(), Content: data})
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
	if f.Encoding != bootstrapv1.FileEncodingBase64 {
		return data, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), ""))
	if err != nil {
		return nil, &InvalidContentError{Path: f.Path}
	}
	return decoded, nil
}

// InvalidContentError means that a file's content is not what its encoding requires. It does not repeat
// the content, which may be confidential.
type InvalidContentError struct {
	// Path of the file.
	Path string
}

// Error implements error.
func (e *InvalidContentError) Error() string {
	return fmt.Sprintf("the content of file %s is not valid base64", e.Path)
}

// NewBundle puts together what a machine downloads: the managed files, the units with their drop-ins,
// and the kubelet's unit, last, so that it starts when everything that it may need is there. It fails
// with an *InvalidLabelError or an *InvalidKubeletConfigError only.
func NewBundle(spec *bootstrapv1.CloudConfigSpec, managed []File, kubelet KubeletOptions) (*Bundle, error) {
	if err := checkLabels(kubelet.Spec.NodeLabels); err != nil {
		return nil, err
	}
	config, err := KubeletConfigFile(kubelet)
	if err != nil {
		return nil, err
	}
	bundle := &Bundle{Files: append([]File{}, managed...)}
	last := Unit{Name: KubeletUnit, Enable: true, Command: string(bootstrapv1.UnitCommandStart), Own: true}
	for i := range spec.Units {
		u := &spec.Units[i]
		for _, dropIn := range u.DropIns {
			bundle.Files = append(bundle.Files, File{
				Path: unitDirectory + "/" + u.Name + ".d/" + dropIn.Name, Mode: bootstrapv1.DefaultPermissions,
				Unit: u.Name, Content: []byte(dropIn.Content),
			})
		}
		unit := Unit{Name: u.Name, Enable: u.Enabled(), Command: string(u.CommandOrDefault()), Own: u.Content != ""}
		if u.Name == KubeletUnit {
			last.Enable, last.Command = unit.Enable, unit.Command
			continue
		}
		if u.Content != "" {
			bundle.Files = append(bundle.Files, File{
				Path: unitDirectory + "/" + u.Name, Mode: bootstrapv1.DefaultPermissions, Unit: u.Name, Content: []byte(u.Content),
			})
		}
		bundle.Units = append(bundle.Units, unit)
	}
	bundle.Files = append(bundle.Files, File{
		Path: kubeletConfigFile, Mode: bootstrapv1.DefaultPermissions, Unit: KubeletUnit, Content: config,
	}, File{
		Path: unitDirectory + "/" + KubeletUnit, Mode: bootstrapv1.DefaultPermissions, Unit: KubeletUnit, Content: KubeletUnitFile(kubelet),
	})
	bundle.Units = append(bundle.Units, last)
	return bundle, nil
}
