package node

import (
	"path"
	"slices"
	"strings"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// readersByPath are units of images that read files of these paths when they start, and at no other time.
var readersByPath = []struct{ pattern, unit string }{
	{"/etc/containerd/config.toml", "containerd.service"},
	{"/etc/containerd/conf.d/*", "containerd.service"},
	{"/etc/modules-load.d/*", "systemd-modules-load.service"},
}

// readers returns the units that read a file: those that the file names, else those that are known to.
func readers(f *bootstrapv1.File) []Reader {
	var out []Reader
	for _, unit := range f.Units {
		out = append(out, Reader{Unit: unit.Name, Reload: unit.Command == bootstrapv1.FileUnitReload})
	}
	if len(out) > 0 {
		return out
	}
	for _, known := range readersByPath {
		if matched, _ := path.Match(known.pattern, f.Path); matched {
			out = append(out, Reader{Unit: known.unit})
		}
	}
	return out
}

// onlyWritten reports whether a unit cannot be commanded: systemd starts no template, and makes devices and scopes itself.
func onlyWritten(name string) bool {
	return strings.Contains(name, "@.") || slices.Contains([]string{".device", ".scope"}, path.Ext(name))
}

// templateOf returns the template in the spec that a unit is an instance of; nil when there is none.
func templateOf(spec *bootstrapv1.CloudConfigSpec, name string) *bootstrapv1.Unit {
	prefix, instance, found := strings.Cut(name, "@")
	suffix := path.Ext(name)
	if !found || instance == suffix {
		return nil
	}
	for i := range spec.Units {
		if u := &spec.Units[i]; u.Name == prefix+"@"+suffix {
			return u
		}
	}
	return nil
}

// unitFiles returns the unit file and the drop-ins of a unit. Those of a template belong to no unit, and are read by its instances.
func unitFiles(spec *bootstrapv1.CloudConfigSpec, u *bootstrapv1.Unit) []File {
	file := File{Mode: bootstrapv1.DefaultPermissions, Unit: u.Name}
	if onlyWritten(u.Name) {
		file.Unit = ""
		for i := range spec.Units {
			if other := &spec.Units[i]; other != u && templateOf(spec, other.Name) == u && other.CommandOrDefault() != bootstrapv1.UnitCommandStop {
				file.Readers = append(file.Readers, Reader{Unit: other.Name})
			}
		}
	}
	var out []File
	for _, dropIn := range u.DropIns {
		f := file
		f.Path, f.Content = unitDirectory+"/"+u.Name+".d/"+dropIn.Name, []byte(dropIn.Content)
		out = append(out, f)
	}
	if u.Content != "" && u.Name != KubeletUnit {
		file.Path, file.Content = unitDirectory+"/"+u.Name, []byte(u.Content)
		out = append(out, file)
	}
	return slices.Clip(out)
}
