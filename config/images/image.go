package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/pkg/errors"
)

// source is where the code of an image is.
const source = "https://millwright.dev"

// write makes the image of one manager for all platforms, and reports a line for each and one for their index.
func (o *options) write(base v1.Layer, image, program string) ([]string, error) {
	reference, err := name.NewTag(o.reference(image), name.StrictValidation)
	if err != nil {
		return nil, errors.Wrap(err, "-registry and -tag give no name of an image")
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var lines []string
	for _, platform := range o.platforms {
		path := filepath.Join(o.programs, platform.OS+"_"+platform.Architecture, program)
		img, err := o.imageOf(base, image, path, platform)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		file := filepath.Join(o.out, fmt.Sprintf("%s-%s-%s", image, platform.OS, platform.Architecture))
		if err := tarball.WriteToFile(file+".tar", reference, img); err != nil {
			return nil, errors.Wrap(err, "writing an archive")
		}
		digest, err := img.Digest()
		if err != nil {
			return nil, errors.Wrap(err, "reading a digest")
		}
		if err := writeSBOM(file+".cdx.json", path, o.reference(image), digest, o.created); err != nil {
			return nil, err
		}
		size, err := sizeOf(img)
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %d", o.reference(image), platform, digest, size))
		if size > o.maxSize {
			return nil, fmt.Errorf("%s has %d bytes for %s, which is more than %d", image, size, platform, o.maxSize)
		}
	}
	line, err := o.indexLine(image, index)
	if err != nil {
		return nil, err
	}
	return append(lines, line), o.writeLayout(image, reference, index)
}

// indexLine names the index over all platforms, by whose digest a manifest names the image whatever the node is.
func (o *options) indexLine(image string, index v1.ImageIndex) (string, error) {
	digest, err := index.Digest()
	if err != nil {
		return "", errors.Wrap(err, "reading the digest of an index")
	}
	size, err := index.Size()
	if err != nil {
		return "", errors.Wrap(err, "reading the size of an index")
	}
	return fmt.Sprintf("%s index %s %d", o.reference(image), digest, size), nil
}

// imageOf is the image of one program. Its config is all that the managers' Deployments leave open.
func (o *options) imageOf(base v1.Layer, image, path string, platform *v1.Platform) (v1.Image, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "reading a program")
	}
	if info, err := buildinfo.ReadFile(path); err != nil {
		return nil, errors.Wrapf(err, "%s is not a program of Go", path)
	} else if arch := setting(info, "GOARCH"); arch != platform.Architecture {
		return nil, fmt.Errorf("%s is a program for %q, not for %q", path, arch, platform.Architecture)
	}
	layer, err := layerOf(o.created, file{name: "manager", mode: 0o555, content: content})
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.AppendLayers(img, base, layer); err != nil {
		return nil, errors.Wrap(err, "adding layers")
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, errors.Wrap(err, "reading the config")
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: o.created}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{"/manager"}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":   image,
			"org.opencontainers.image.version": o.tag,
			"org.opencontainers.image.source":  source,
		},
	}
	img, err = mutate.ConfigFile(img, config)
	return img, errors.Wrap(err, "writing the config")
}

// writeLayout writes the index as an OCI image layout, instead of what was there before.
func (o *options) writeLayout(image string, reference name.Tag, index v1.ImageIndex) error {
	dir := filepath.Join(o.out, image)
	if err := os.RemoveAll(dir); err != nil {
		return errors.Wrap(err, "removing the former image")
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return errors.Wrap(err, "writing an image layout")
	}
	return errors.Wrap(path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": reference.TagStr(),
		"io.containerd.image.name":          reference.Name(),
	})), "writing an image layout")
}

// sizeOf is how much a node downloads for an image.
func sizeOf(img v1.Image) (int64, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return 0, errors.Wrap(err, "reading a manifest")
	}
	size := manifest.Config.Size
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}
