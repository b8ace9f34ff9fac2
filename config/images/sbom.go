package main

import (
	"cmp"
	"debug/buildinfo"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/uuid"
	"github.com/pkg/errors"
)

// writeSBOM writes what an image is made of: what the program says of itself, which is what it was linked from. The certificate
// authorities come from a module of the program that made the image.
func writeSBOM(path, program, reference string, digest v1.Hash, created time.Time) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return errors.Wrap(err, "reading what a program was built from")
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(digest.String())).URN()
	bom.Metadata = &cdx.Metadata{
		Timestamp: created.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: reference, Type: cdx.ComponentTypeContainer, Name: reference, Version: digest.String(),
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: digest.Hex}},
		},
	}
	components := componentsOf(info, modulesOfImage())
	bom.Components = &components
	out, err := os.Create(path)
	if err != nil {
		return errors.Wrap(err, "writing a bill of materials")
	}
	defer out.Close()
	encoder := cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.Encode(bom); err != nil {
		return errors.Wrap(err, "writing a bill of materials")
	}
	return errors.Wrap(out.Close(), "writing a bill of materials")
}

// componentsOf are the standard library and the modules that a program and its image have code or files of, each once.
func componentsOf(info *debug.BuildInfo, more []*debug.Module) []cdx.Component {
	components := []cdx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, module := range append(slices.Clone(info.Deps), more...) {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, library(module.Path, module.Version, module.Sum))
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	return slices.CompactFunc(components, func(a, b cdx.Component) bool { return a.BOMRef == b.BOMRef })
}

func library(path, version, sum string) cdx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cdx.Component{BOMRef: url, PackageURL: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version}
	if sum != "" {
		// The checksum of go.sum, of a module's files, which is none of an archive.
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: sum}}
	}
	return c
}

// authoritiesModule is where baseLayer has the certificate authorities from.
const authoritiesModule = "golang.org/x/crypto/x509roots/fallback"

func modulesOfImage() []*debug.Module {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(info.Deps), func(m *debug.Module) bool { return m.Path != authoritiesModule })
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
