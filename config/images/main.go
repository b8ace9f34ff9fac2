// Program images puts the managers into container images, without a container engine, a registry or a base image: each is the
// program, certificate authorities and a user. It writes, for each manager,
//
//	OUT/<image>/                    an OCI image layout with an index over all platforms
//	OUT/<image>-<os>-<arch>.tar     an archive for `docker load`, `kind load image-archive` and `ctr images import`
//	OUT/<image>-<os>-<arch>.cdx.json  its software bill of materials, CycloneDX
//
// and OUT/images.txt with names, digests and sizes: a line for each platform, and one for the index over all. The same programs give the
// same digests, whoever runs it and when.
//
//	images -programs DIR -out DIR -registry HOST -tag TAG -created SECONDS -platforms linux/amd64,linux/arm64
//
// DIR has the programs in a directory for each platform, such as linux_amd64.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/pkg/errors"
)

// managers are the programs, by the names of their images.
var managers = []struct{ image, program string }{
	{"millwright-core", "core"},
	{"millwright-aws", "aws"},
	{"millwright-azure", "azure"},
	{"millwright-gcp", "gcp"},
	{"millwright-cloudconfig", "cloudconfig"},
}

// maxSize is what an image of one platform may have, compressed, in bytes, unless a flag says otherwise.
const maxSize = 30_000_000

type options struct {
	programs, out, registry, tag, only string
	platforms                          []*v1.Platform
	created                            time.Time
	maxSize                            int64
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return errors.Wrap(err, "making the directory of the images")
	}
	base, err := baseLayer(o.created)
	if err != nil {
		return err
	}
	var lines []string
	for _, m := range managers {
		if o.only != "" && !strings.Contains(","+o.only+",", ","+m.program+",") {
			continue
		}
		report, err := o.write(base, m.image, m.program)
		if err != nil {
			return errors.Wrapf(err, "image %s", m.image)
		}
		lines = append(lines, report...)
	}
	text := strings.Join(lines, "\n") + "\n"
	fmt.Print(text)
	return errors.Wrap(os.WriteFile(filepath.Join(o.out, "images.txt"), []byte(text), 0o644), "writing the list of images")
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.StringVar(&o.programs, "programs", "out/programs", "The directory with the programs, in one for each platform, such as linux_amd64.")
	flags.StringVar(&o.out, "out", "out/images", "The directory to write to.")
	flags.StringVar(&o.registry, "registry", "registry.millwright.dev", "What the images' names begin with.")
	flags.StringVar(&o.tag, "tag", "dev", "The tag of the images.")
	flags.StringVar(&o.only, "only", "", "The programs to make images of, separated by commas; all when empty.")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "The platforms, separated by commas.")
	flags.Int64Var(&o.maxSize, "max-size", maxSize, "How many bytes an image of one platform may have, compressed.")
	created := flags.Int64("created", 0, "When the images were created, in seconds since 1970: the time of the commit.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	o.created = time.Unix(*created, 0).UTC()
	for _, text := range strings.Split(*platforms, ",") {
		p, err := v1.ParsePlatform(text)
		if err != nil || p.OS == "" || p.Architecture == "" {
			return nil, fmt.Errorf("-platforms: %q is not like linux/amd64", text)
		}
		o.platforms = append(o.platforms, p)
	}
	return o, nil
}

func (o *options) reference(image string) string { return o.registry + "/" + image + ":" + o.tag }
